"""The rules that an environment is checked by: one line each, and the mend that is named where a check knows no better.

The first word of an id is its area. A rule has one level; `kinds` says which environments it is about: those with tools
(`ors.Environment`) and those of steps (OpenEnv's).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ors.testing.complaints import Level

__all__ = ["RULES", "Kind", "Rule", "chosen"]

Kind: TypeAlias = Literal["tools", "steps"]
_BOTH: tuple[Kind, ...] = ("tools", "steps")
_TOOLS: tuple[Kind, ...] = ("tools",)
_STEPS: tuple[Kind, ...] = ("steps",)


@dataclass(frozen=True)
class Rule:
    """One rule: what is asked (`text`), how bad its breach is, and what usually mends it."""

    id: str
    level: Level
    kinds: tuple[Kind, ...]
    text: str
    mend: str


_ALL = (
    # The class
    Rule("class-served", "error", _BOTH, "the class can be served as it is written", "do what the message says"),
    Rule(
        "class-name",
        "error",
        _BOTH,
        "the name can stand in a URL and is no route of the server",
        "return a name of letters, digits, - and _ from name()",
    ),
    Rule(
        "class-apart",
        "error",
        _BOTH,
        "two sessions at once do not see each other",
        "make it an attribute of the instance, in setup() or __init__(): self.… = …",
    ),
    # Splits and tasks
    Rule(
        "split-list", "error", _BOTH, "list_splits names at least one split, each once", "return Split objects or names"
    ),
    Rule(
        "split-overlap",
        "warning",
        _BOTH,
        "no task of a split to train on is also in a split to test on",
        "deal the tasks to the splits so that none is in two, and put what tells them apart into the task",
    ),
    Rule(
        "task-fresh",
        "error",
        _BOTH,
        "tasks can be asked for before any episode has begun",
        "read what is needed in the method itself, and mark it @classmethod in an ors.Environment",
    ),
    Rule("task-methods", "warning", _STEPS, "all five task methods are there, or say NotImplementedError", "define it"),
    Rule("task-fails", "error", _BOTH, "the task methods answer for every split", "make it answer for every split"),
    Rule(
        "task-same",
        "error",
        _BOTH,
        "asking twice gives the same tasks: nothing is consumed, drawn or moved on",
        "seed what is drawn, and keep no cursor between calls",
    ),
    Rule(
        "task-kept",
        "warning",
        _TOOLS,
        "an episode leaves its task as it was",
        "copy what the episode changes: copy.deepcopy(self.task_spec[…])",
    ),
    Rule(
        "task-count",
        "error",
        _BOTH,
        "num_tasks is the number of tasks that there are",
        "return the true total, as an int, also where the list is cut short",
    ),
    Rule("task-index", "error", _BOTH, "every index below num_tasks is a task", "answer for 0 to num_tasks(split) - 1"),
    Rule("task-agree", "error", _BOTH, "get_task(i) is the task at i of list_tasks", "make both from the same rows"),
    Rule(
        "task-end",
        "error",
        _BOTH,
        "an index past the end raises IndexError",
        "raise IndexError(f'index {index} is outside split {split!r}')",
    ),
    Rule(
        "task-range",
        "error",
        _BOTH,
        "get_task_range(start, stop) is the slice of the tasks",
        "treat start and stop as range(*slice(start, stop).indices(num_tasks(split))) does, or leave the method out",
    ),
    Rule(
        "task-json",
        "error",
        _BOTH,
        "a task can be written as JSON; with tools it is an object",
        "return a dict of str, int, float, bool, None, lists and dicts",
    ),
    Rule(
        "task-round-trip",
        "warning",
        _BOTH,
        "a task is the same after it was written as JSON and read again",
        "use text as keys, and lists, text and numbers as values",
    ),
    Rule(
        "task-order",
        "error",
        _BOTH,
        "the tasks have the same order in a new process",
        "sort what comes from a set, a dict of hashes or a folder, and seed what is shuffled",
    ),
    # The prompt
    Rule("prompt-fails", "error", _TOOLS, "get_prompt returns blocks, text or images", "return [TextBlock(text=…)]"),
    Rule("prompt-empty", "error", _TOOLS, "the prompt says something", "say in get_prompt what the agent is to do"),
    Rule(
        "prompt-answer",
        "warning",
        _TOOLS,
        "the answer of a task is not in its prompt",
        "take it out of the prompt; where the agent has to choose among what is shown, skip this rule",
    ),
    Rule(
        "prompt-same",
        "note",
        _TOOLS,
        "the same task has the same prompt in each episode",
        "seed what is drawn from the task, for instance random.Random(self.task_spec['seed'])",
    ),
    # The tools
    Rule(
        "tool-docstring",
        "warning",
        _TOOLS,
        "every tool has a docstring, which is what the agent reads",
        "say in a docstring what the tool does",
    ),
    Rule(
        "tool-parameters",
        "note",
        _TOOLS,
        "every parameter of a tool is described",
        "describe it under Args: in the docstring, or with Field(description=…)",
    ),
    Rule(
        "tool-name",
        "warning",
        _TOOLS,
        "the name of a tool is one that model providers take",
        "use at most 64 letters without accents, digits and _",
    ),
    Rule(
        "tool-schema",
        "error",
        _TOOLS,
        "the schema of a tool is a JSON Schema of an object",
        "return {'type': 'object', 'properties': {…}}, or None for a tool without input",
    ),
    Rule(
        "tool-formats",
        "warning",
        _TOOLS,
        "the tools can be said in the format of every model provider",
        "change the parameter as the message says",
    ),
    Rule(
        "tool-listed",
        "error",
        _TOOLS,
        "the tools of a task are listed once each, and can be called",
        "list only tools that are marked with @tool, or route the others in _call_tool",
    ),
    Rule(
        "tool-raises",
        "warning",
        _TOOLS,
        "a tool copes with every input that its schema accepts",
        "raise ToolError with words for the agent where the input is at fault",
    ),
    Rule(
        "tool-output",
        "error",
        _TOOLS,
        "a tool returns a ToolOutput that can be written as JSON",
        "return ToolOutput(…)",
    ),
    Rule(
        "tool-blocks",
        "warning",
        _TOOLS,
        "a tool's output has at least one block",
        "tell the agent what came of it: blocks=[TextBlock(text=…)]",
    ),
    Rule(
        "tool-reward",
        "error",
        _TOOLS,
        "a reward is a finite number or None",
        "return None where nothing is scored, and catch divisions by 0",
    ),
    Rule(
        "tool-terminal",
        "error",
        _TOOLS,
        "is_assistant_message_final, terminal_tool and call_terminal_tool agree",
        "mark one tool with @terminal over @tool, and override none of the three",
    ),
    # The episode
    Rule(
        "episode-opens",
        "error",
        _BOTH,
        "an episode of every task can be opened",
        "mend what the message says; if it needs a secret, give it: check_environment(…, secrets={…})",
    ),
    Rule(
        "episode-teardown",
        "error",
        _BOTH,
        "teardown works, whatever the episode came to",
        "check what there is before it is released",
    ),
    Rule(
        "episode-leaks",
        "error",
        _BOTH,
        "threads, files, processes and asyncio tasks of an episode end with it",
        "release in teardown() what setup() and the tools took",
    ),
    Rule(
        "episode-hangs",
        "error",
        _BOTH,
        "no method waits for ever",
        "give what it waits for a time limit; if it only takes long, raise timeout_s",
    ),
    # Asynchronous code
    Rule(
        "async-blocking",
        "warning",
        _BOTH,
        "`async def` code waits for nothing without await: no time.sleep, no synchronous network, no subprocess.run",
        "make the method a plain `def`, or await: asyncio.sleep, an async client, asyncio.to_thread(…)",
    ),
    Rule(
        "async-busy",
        "warning",
        _BOTH,
        "`async def` code does not compute for long in one go: all sessions wait meanwhile",
        "make the method a plain `def`, or move the work: await asyncio.to_thread(…)",
    ),
    Rule(
        "async-files",
        "note",
        _BOTH,
        "`async def` code opens no files",
        "make the method a plain `def`, read once when the module is imported, or await asyncio.to_thread(…)",
    ),
    # Secrets
    Rule(
        "secret-shown",
        "error",
        _BOTH,
        "no secret is in a prompt, an output, an error or a task",
        "keep the secret on the instance under a name with _, and leave it out of all texts",
    ),
    Rule("secret-logged", "error", _BOTH, "no secret is printed or logged", "log the secret's name at most"),
    # Steps
    Rule(
        "reset-same",
        "warning",
        _STEPS,
        "reset with the same seed begins the same episode",
        "draw from random.Random(seed)",
    ),
    Rule(
        "reset-twice",
        "error",
        _STEPS,
        "an instance can be reset again, in the middle of an episode and after its end",
        "set all state of the episode anew in reset()",
    ),
    Rule("reset-done", "warning", _STEPS, "an episode is not over when it begins", "return done=False from reset()"),
    Rule(
        "reset-selects",
        "warning",
        _STEPS,
        "reset takes `split` and `index` where there are tasks",
        "name the parameters split and index, both with defaults",
    ),
    Rule(
        "step-output",
        "error",
        _STEPS,
        "reset and step return observations that can be written as JSON",
        "return an Observation whose fields are text, numbers, lists and dicts",
    ),
    Rule("step-reward", "error", _STEPS, "a reward is a finite number or None", "return None where nothing is scored"),
    Rule(
        "step-raises",
        "warning",
        _STEPS,
        "step copes with every action that its model accepts",
        "answer in the observation",
    ),
    Rule(
        "step-after-done",
        "warning",
        _STEPS,
        "a step after the end neither breaks nor pays",
        "return the last observation again, with done=True and no reward",
    ),
    Rule("state-fails", "error", _STEPS, "the state can be read after reset and written as JSON", "return a State"),
)

RULES: dict[str, Rule] = {rule.id: rule for rule in _ALL}
"""Every rule by its id."""


def chosen(ids: Iterable[str]) -> set[str]:
    """The ids that are meant by ids and areas (`task` is every rule whose id begins with `task-`).

    Raises ValueError for a name that is neither.
    """
    found: set[str] = set()
    for name in ids:
        some = {id for id in RULES if id == name.lower() or id.startswith(f"{name.lower()}-")}
        if not some:
            areas = ", ".join(dict.fromkeys(id.partition("-")[0] for id in RULES))
            raise ValueError(f"there is no rule {name!r}; areas are {areas}, rules stand in ors.testing.RULES")
        found |= some
    return found
