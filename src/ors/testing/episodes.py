"""Rules of episodes of an `ors.Environment`: from the constructor to the teardown, one alone and two at once."""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ors.adapters.ors_output import prompt_document, tool_outcome
from ors.core.failures import Failure
from ors.environment import Environment
from ors.tasks.values import jsonable
from ors.testing.judge import Judge, said
from ors.testing.resources import Held, left_over
from ors.testing.task_rules import Tasks, plain, same
from ors.testing.tool_rules import call_tool, tools_to_call
from ors.tools import ToolDefinition

__all__ = ["check_episodes"]

_ANSWERS = re.compile(r"answer|solution|target|label|expected|gold|truth|reference", re.IGNORECASE)
_TOOLS_AT_MOST = 16
_SLOW_S = 1.0
"""An environment whose episodes begin more slowly is opened fewer times."""
Transcript = list[Any]


class Play:
    """One instance, asked for one thing after another; `None` stands for what went wrong, which is complained of."""

    def __init__(self, judge: Judge, task: Any, secrets: Mapping[str, str]) -> None:
        self.judge = judge
        self.task = jsonable(task)  # an episode gets a copy, as JSON has it
        self.secrets = secrets
        self.env: Environment | None = None
        self.transcript: Transcript = []
        self.texts: list[str] = []
        self.prompts = 0
        """How many of the texts are the prompt's."""
        self.opened = False

    async def open(self) -> bool:
        """The constructor and `setup`. False where either failed; then it has been torn down."""
        judge = self.judge
        judge.looked_at("constructor", "setup")
        try:
            env = await judge.stage.run(
                judge.cls,
                task_spec=self.task,
                secrets=self.secrets if type(self.secrets) is _Sentinels else dict(self.secrets),
            )
        except Exception as exc:
            judge.complain("constructor", f"it raises {said(exc)}", "__init__", exc)
            return False
        self.env = env
        try:
            await judge.stage.run(env.setup)
        except Exception as exc:
            judge.complain("setup", f"it raises {said(exc)}", "setup", exc)
            await self.close()
            return False
        self.opened = True
        return True

    async def prompt(self) -> bytes | None:
        """The prompt as it is sent."""
        judge, env = self.judge, self.env
        assert env is not None
        judge.looked_at("prompt", "prompt-empty")
        try:
            value = await judge.stage.run(env.get_prompt)
        except Exception as exc:
            judge.complain("prompt", f"it raises {said(exc)}", "get_prompt", exc)
            return None
        document = prompt_document("it", value)
        if isinstance(document, Failure):
            judge.complain("prompt", document.detail.removeprefix("it "), "get_prompt")
            return None
        blocks = json.loads(document.body)
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        if not any(text.strip() for text in texts) and len(texts) == len(blocks):
            judge.complain("prompt-empty", "it says nothing", "get_prompt")
        self.texts += texts
        self.prompts = len(self.texts)
        self.transcript.append(document.body.decode())
        return document.body

    async def tool(self, spec: Any) -> Any:
        """Call a tool."""
        assert self.env is not None
        output = await call_tool(self.judge, self.env, spec)
        outcome = tool_outcome(spec.name, output) if output is not None else None
        body = getattr(outcome, "body", b"").decode()
        self.texts.append(json.dumps(json.loads(body), ensure_ascii=False) if body else "")
        self.transcript.append((spec.name, body))
        return output

    async def close(self) -> None:
        """`teardown`."""
        if self.env is not None:
            env, self.env = self.env, None
            await self.judge.attempt("teardown", "teardown", env.teardown)


async def check_episodes(judge: Judge, tasks: Tasks, table: dict[str, ToolDefinition]) -> None:
    """Every rule of episodes, on some of the tasks."""
    if not tasks.examples:
        judge.passed_over("setup", "there is no task to play")
        return
    broken = {complaint.rule.id for complaint in judge.report.complaints}
    if "task-json" in broken:
        judge.passed_over("setup", "a server cannot open a task that is no JSON object")
        return
    before = [(split, index, copy.deepcopy(task)) for split, index, task in tasks.examples]
    task = tasks.examples[0][2]
    if not await _whole(judge, task, table):
        return
    await _leaks(judge, task, table)
    await _prompts(judge, tasks)
    await _two_at_once(judge, tasks, table)
    await _secrets(judge, task, table)
    if "tasks-repeat" in broken:
        return  # they are others each time, played or not
    judge.looked_at("tasks-changed")
    for (split, index, kept), (_, _, given) in zip(before, tasks.examples, strict=True):
        if not same(given, kept):
            judge.complain("tasks-changed", f"task {index} of {split!r} is another after an episode", "")
            return
        try:
            now = await tasks.one(split, index)
        except Exception:
            return  # another rule has said so
        if not same(now, kept):
            judge.complain("tasks-changed", f"task {index} of {split!r} is another after episodes", "")
            return


async def _whole(judge: Judge, task: Any, table: dict[str, ToolDefinition]) -> bool:
    """An episode, and one of its own for each tool; another that ends right after setup."""
    begun = time.monotonic()
    play = Play(judge, task, judge.secrets)
    if not await play.open():
        return False
    prompt = await play.prompt()
    if time.monotonic() - begun > _SLOW_S:
        judge.few = True
    if prompt is not None:
        judge.looked_at("prompt-repeat")
        if await play.prompt() != prompt:
            judge.complain("prompt-repeat", "asked twice in one episode it says something else", "get_prompt")
    assert play.env is not None
    specs = await tools_to_call(judge, play.env, table)
    await play.close()
    for spec in specs[:_TOOLS_AT_MOST]:
        play = Play(judge, task, judge.secrets)
        if await play.open():
            await play.prompt()
            await play.tool(spec)
            await play.close()
    play = Play(judge, task, judge.secrets)
    if await play.open():
        await play.close()
    return prompt is not None


async def _solo(judge: Judge, task: Any, table: dict[str, ToolDefinition], secrets: Mapping[str, str]) -> Play:
    """An episode in which each tool is called until one ends it."""
    play = Play(judge, task, secrets)
    if await play.open():
        await play.prompt()
        assert play.env is not None
        for spec in (await tools_to_call(judge, play.env, table))[:_TOOLS_AT_MOST]:
            output = await play.tool(spec)
            if output is not None and output.finished:
                break
        await play.close()
    return play


async def _leaks(judge: Judge, task: Any, table: dict[str, ToolDefinition]) -> None:
    rules = ("leak-threads", "leak-files", "leak-processes")
    judge.looked_at(*rules)
    if not judge.few:
        await _solo(judge, task, table, judge.secrets)  # what is made once and kept is no leak
    found = []
    for _ in range(2):
        held = Held()
        await _solo(judge, task, table, judge.secrets)
        found.append(left_over(held))
        if not found[-1]:
            return
    for rule in rules:
        if all(rule in left for left in found):
            names = found[-1][rule]
            judge.complain(rule, f"after teardown there are still {', '.join(names[:5])}", "teardown")


async def _prompts(judge: Judge, tasks: Tasks) -> None:
    """The answer must not stand in the prompt: it may by chance, so most tasks that were looked at decide."""
    judge.looked_at("prompt-answer")
    shown: dict[str, int] = {}
    examples = tasks.examples[: 2 if judge.few else judge.samples]
    for _, _, task in examples:
        play = Play(judge, task, judge.secrets)
        if await play.open():
            await play.prompt()
            await play.close()
        text = "\n".join(play.texts)
        for key in {key for key, value in _answers(plain(task)) if _stands_in(value, text)}:
            shown[key] = shown.get(key, 0) + 1
    for key, count in shown.items():
        if 2 * count > len(examples):
            words = f"the prompt holds the task's {key!r} in {count} of {len(examples)} tasks"
            judge.complain("prompt-answer", words, "get_prompt")


def _answers(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _answers(item, name if _ANSWERS.search(name) or not key else key)
    elif isinstance(value, list):
        for item in value:
            yield from _answers(item, key)
    elif _ANSWERS.search(key) and isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield key, str(value).strip()


def _stands_in(answer: str, text: str) -> bool:
    return len(answer) >= 4 and re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text) is not None


async def _two_at_once(judge: Judge, tasks: Tasks, table: dict[str, ToolDefinition]) -> None:
    judge.looked_at("shared-state")
    first, second = tasks.examples[0][2], tasks.examples[-1][2]
    kept = _class_state(judge.cls)
    once = (await _solo(judge, first, table, judge.secrets)).transcript
    again = (await _solo(judge, first, table, judge.secrets)).transcript
    changed = [name for name, value in _class_state(judge.cls).items() if kept.get(name) != value]
    if once != again:
        if changed:
            words = f"an episode is played in another way after one has changed the class's {changed[0]!r}"
            judge.complain("shared-state", words, changed[0])
        else:
            judge.passed_over("shared-state", "an episode is not played twice in the same way, so nothing can be told")
        return
    one, other = (Play(judge, task, judge.secrets) for task in (first, second))
    if await one.open() and await other.open():
        for play in (one, other):
            await play.prompt()
        assert one.env is not None
        specs = (await tools_to_call(judge, one.env, table))[:_TOOLS_AT_MOST]
        over: set[Play] = set()
        for spec in specs:
            for play in (other, one):
                if play not in over:
                    output = await play.tool(spec)
                    if output is not None and output.finished:
                        over.add(play)
    await one.close()
    await other.close()
    if one.transcript != once:
        where = f"the class's {changed[0]!r} " if changed else "something that they share "
        words = f"with another session beside it an episode is played in another way: {where}is changed by both"
        judge.complain("shared-state", words, changed[0] if changed else "")


def _class_state(cls: type) -> dict[str, str]:
    """What the class holds that can be changed."""
    held: dict[str, Any] = {}
    for base in reversed(cls.__mro__[: cls.__mro__.index(Environment)]):
        held |= {name: value for name, value in vars(base).items() if isinstance(value, (list, dict, set, bytearray))}
    return {name: repr(value) for name, value in held.items() if not name.startswith("__")}


class _Sentinels(dict[str, str]):
    """Secrets of whatever name is asked for, each of which can be found again."""

    def __missing__(self, name: str) -> str:
        value = self[name] = f"ors-check-{name}-{id(self):x}"
        return value

    def get(self, name: str, default: Any = None) -> Any:
        return self[name]

    def __contains__(self, name: object) -> bool:
        return True


async def _secrets(judge: Judge, task: Any, table: dict[str, ToolDefinition]) -> None:
    secrets: dict[str, str] = dict(judge.secrets)
    if not secrets:
        secrets = _Sentinels()
        _ = secrets["api_key"]
    quiet = Judge(judge.cls, judge.stage, type(judge.report)(""), splits=(), samples=2, secrets={}, skip=frozenset())
    before = len(judge.stage.printed.getvalue())
    play = await _solo(quiet, task, table, secrets)
    if not play.opened and not judge.secrets:
        judge.passed_over("secret-prompt", "it does not open with secrets that are made up; give some: secrets={…}")
    else:
        judge.looked_at("secret-prompt", "secret-output", "secret-log")
    log = judge.stage.printed.getvalue()[before:]
    prompts = "\n".join(play.texts[: play.prompts])
    outputs = "\n".join(play.texts[play.prompts :])
    for name, value in secrets.items():
        if len(value) < 4:
            continue
        for rule, text, method, where in (
            ("secret-prompt", prompts, "get_prompt", "the prompt"),
            ("secret-output", outputs, "", "the output of a tool"),
            ("secret-log", log, "", "what is printed or logged"),
        ):
            if value in text:
                judge.complain(rule, f"the secret {name!r} stands in {where}", method)
