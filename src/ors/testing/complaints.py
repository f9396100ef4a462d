"""What the check of an environment can complain of, and the complaints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

__all__ = ["RULES", "CheckReport", "Complaint", "EnvironmentCheckError", "EnvironmentCheckWarning", "Level", "Rule"]

Level: TypeAlias = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Rule:
    """A rule: its id, how bad it is to break it, what holds where it is kept, and what to do where it is not."""

    id: str
    level: Level
    text: str
    mend: str


@dataclass(frozen=True)
class Complaint:
    """A rule that is broken, and where: the method, its file and line."""

    rule: Rule
    message: str
    method: str
    file: str | None = None
    line: int | None = None

    @property
    def level(self) -> Level:
        """How bad it is."""
        return self.rule.level

    @property
    def mend(self) -> str:
        """What to do about it."""
        return self.rule.mend

    @property
    def place(self) -> str:
        """File and line, as editors and terminals take them; empty where they are not known."""
        return f"{self.file}:{self.line}" if self.file is not None else ""

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"{self.level}: {self.rule.id}: {self.method}{place}: {self.message}. {self.rule.mend}"


@dataclass
class CheckReport:
    """What came of a check. checked: the rules that could be looked at. skipped: why others could not."""

    environment: str
    complaints: list[Complaint] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def of(self, level: Level) -> list[Complaint]:
        """The complaints of a level."""
        return [complaint for complaint in self.complaints if complaint.level == level]

    @property
    def ok(self) -> bool:
        """Whether nothing is an error."""
        return not self.of("error")

    def __str__(self) -> str:
        if not self.complaints:
            return f"{self.environment}: nothing to complain of ({len(self.checked)} rules)"
        lines = [f"  {complaint}" for level in LEVELS for complaint in self.of(level)]
        return "\n".join([f"{self.environment}: {_count(self)}", *lines])


def _count(report: CheckReport) -> str:
    counts = [(len(report.of(level)), level) for level in LEVELS]
    return ", ".join(f"{count} {level}{'s' if count > 1 else ''}" for count, level in counts if count)


class EnvironmentCheckError(AssertionError):
    """An environment breaks rules. report: all that was found."""

    def __init__(self, report: CheckReport) -> None:
        super().__init__(str(report))
        self.report = report


class EnvironmentCheckWarning(UserWarning):
    """An environment does what is likely to hurt whoever plays it."""


_RULES: tuple[tuple[str, Level, str, str], ...] = (
    # the tasks
    ("splits", "error", "`list_splits` returns splits, each once", "Return names or Split objects"),
    ("name", "error", "the name can stand in a URL", "Return letters, digits, - and _ from name()"),
    (
        "split-overlap",
        "warning",
        "no task to train on is one to test on",
        "Deal tasks so that none is in two splits, and put the split into the task where that tells them apart",
    ),
    ("splits-none", "warning", "there is a split", "Name at least one split, `train` or `test`"),
    (
        "tasks-none",
        "error",
        "tasks can be listed, or counted and picked",
        "Write list_tasks, or num_tasks and get_task",
    ),
    ("task-methods", "error", "task methods work on a class that nothing was done with", "Read what they need in them"),
    ("tasks-repeat", "error", "asking twice gives the same", "Make tasks from split and index alone"),
    ("tasks-changed", "error", "playing changes no task", "Copy what an episode changes of its task"),
    (
        "spec-changed",
        "warning",
        "an episode leaves its task_spec as it was",
        "Copy what it changes; other servers hand the same object to the next session",
    ),
    (
        "tasks-partly",
        "warning",
        "of an OpenEnv environment's five task methods all are there",
        "Write the others, or raise NotImplementedError in them",
    ),
    ("count", "error", "`num_tasks` is the number of tasks there are", "Return the honest total as an int"),
    ("index", "error", "every index in range opens", "get_task must serve 0 to num_tasks - 1"),
    (
        "index-end",
        "error",
        "an index out of range raises IndexError",
        "Check the index, 0 <= index < n, and raise IndexError",
    ),
    ("order", "error", "the lists, the ranges and the indices agree", "Build them all from one function of the index"),
    (
        "order-process",
        "error",
        "the order is the same in a new process",
        "Sort, or seed; sets and hash() differ by process",
    ),
    ("task-json", "error", "a task is a JSON object", "Return a dict of plain values"),
    (
        "task-round-trip",
        "warning",
        "a task comes back from JSON as it was",
        "Use text as keys, and lists for tuples and sets",
    ),
    # the episode
    (
        "constructor",
        "error",
        "an instance is made with task_spec= and secrets=",
        "Take both, or leave __init__ out; give the secrets that it needs, secrets={…}",
    ),
    ("setup", "error", "`setup` works on a new instance", "Make what it needs in __init__ or in setup"),
    ("prompt", "error", "`get_prompt` returns blocks, text or images", "Return a list of TextBlock and ImageBlock"),
    ("prompt-empty", "error", "the prompt is not empty", "Say what is to be done"),
    ("prompt-repeat", "note", "the prompt is the same when it is asked for again", "Draw in setup what it draws"),
    (
        "prompt-answer",
        "warning",
        "the answer does not stand in the prompt",
        "Leave the answer out of what the agent sees",
    ),
    ("teardown", "error", "`teardown` works, also right after setup", "Release only what is there"),
    ("leak-threads", "error", "teardown ends the threads that setup began", "Join or stop them in teardown"),
    ("leak-files", "error", "teardown closes files and sockets", "Close them in teardown"),
    (
        "leak-processes",
        "error",
        "teardown ends the processes that setup began",
        "Terminate and wait for them in teardown",
    ),
    ("leak-tasks", "error", "teardown ends the asyncio tasks that were begun", "Cancel them in teardown"),
    ("hangs", "error", "every method ends", "Give what it waits for a time limit"),
    (
        "shared-state",
        "error",
        "two sessions at once do not see each other",
        "Keep state on self, made in __init__ or setup",
    ),
    ("secret-prompt", "error", "no secret stands in a prompt", "Use secrets for calls of your own and show none"),
    (
        "secret-output",
        "error",
        "no secret stands in a tool's output, or in an error",
        "Use secrets for calls of your own and show none",
    ),
    ("secret-log", "error", "no secret is printed or logged", "Log that there is a secret, not which"),
    # the tools
    ("tools", "error", "what is marked as a tool can be one", "Mend the signature"),
    ("tools-none", "error", "there is a tool", "Mark a method with @tool"),
    ("tool-doc", "warning", "a tool has a docstring: the model reads it", "Say what it does"),
    (
        "parameter-doc",
        "note",
        "parameters are described: the model reads that too",
        "Add `Args:` to the docstring, or Field()",
    ),
    (
        "tool-schema",
        "error",
        "the schema of a tool is a valid JSON Schema",
        "Check json_schema_extra and the annotations",
    ),
    ("tool-format", "warning", "every provider's format takes the tools", "Simplify the parameters"),
    (
        "tool-output",
        "error",
        "a tool returns a ToolOutput that can be written",
        "Return ToolOutput(blocks=…, reward=…)",
    ),
    (
        "tool-raises",
        "warning",
        "an input that the schema accepts raises nothing but ToolError",
        "Raise ToolError, or narrow the parameters",
    ),
    (
        "tool-blocks",
        "warning",
        "a tool's output has a block",
        "Tell the agent what came of it: blocks=[TextBlock(text=…)]",
    ),
    ("reward", "error", "a reward is a finite number or None", "Check for division by zero and overflow"),
    (
        "terminal",
        "error",
        "`is_assistant_message_final` needs a terminal tool, which is listed nowhere else",
        "Mark one tool with @terminal over @tool, and leave it out of list_tools",
    ),
    (
        "task-tools",
        "error",
        "`list_task_tools` returns ToolSpecs whose tools there are",
        "Write a method marked as a tool for each",
    ),
    (
        "blocking",
        "warning",
        "`async def` code does not block",
        "Await an async function, or write the method as plain `def`",
    ),
    (
        "blocking-file",
        "note",
        "`async def` code opens no files",
        "Read once, in a plain `def`, or with asyncio.to_thread",
    ),
    # environments of OpenEnv
    ("reset", "error", "`reset` returns an observation, as often as it is called", "Begin the episode anew in reset"),
    (
        "reset-again",
        "error",
        "`reset` leaves nothing of the episode before",
        "Set all that belongs to an episode in reset",
    ),
    ("reset-seed", "warning", "`reset` with the same seed begins the same episode", "Draw from random.Random(seed)"),
    ("reset-done", "warning", "an episode is not over when it begins", "Return done=False from reset"),
    (
        "reset-task",
        "warning",
        "`reset` takes `split` and `index` where there are tasks",
        "Name two parameters so, each with a default",
    ),
    (
        "step-after-done",
        "warning",
        "a step after the end neither raises nor pays",
        "Return the last observation with done=True and no reward",
    ),
    (
        "step",
        "error",
        "`step` takes an action and returns an observation",
        "Return the observation class that is served",
    ),
    ("state", "error", "`state` can be read", "Make the state in __init__"),
    ("close", "error", "`close` works, also before a reset", "Release only what is there"),
)

RULES: dict[str, Rule] = {id: Rule(id, level, text, mend) for id, level, text, mend in _RULES}
"""Every rule, by its id."""
