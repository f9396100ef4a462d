"""Rules of episodes of an `ors.Environment`: from the constructor to the teardown, one alone and two at once."""

from __future__ import annotations

import asyncio
import copy
import re
import time
from collections.abc import Iterator
from typing import Any

from ors.environment import Environment
from ors.testing.class_state import ClassState
from ors.testing.judge import Judge
from ors.testing.playing import TOOLS_AT_MOST, Play, Sentinels, solo
from ors.testing.resources import Held, left_over
from ors.testing.task_rules import Tasks, plain, same
from ors.testing.tool_rules import tools_to_call
from ors.tools import ToolDefinition

__all__ = ["check_episodes"]

_ANSWERS = re.compile(r"answer|solution|target|label|expected|gold|truth|reference", re.IGNORECASE)
_END_S = 0.01
_SLOW_S = 1.0
"""An environment whose episodes begin more slowly is opened fewer times."""


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
    for spec in specs[:TOOLS_AT_MOST]:
        play = Play(judge, task, judge.secrets)
        if await play.open():
            await play.prompt()
            await play.tool(spec)
            await play.close()
    play = Play(judge, task, judge.secrets)
    if await play.open():
        await play.close()
    return prompt is not None


async def _leaks(judge: Judge, task: Any, table: dict[str, ToolDefinition]) -> None:
    rules = ("leak-threads", "leak-files", "leak-processes", "leak-tasks")
    judge.looked_at(*rules)
    if not judge.few:
        await solo(judge, task, table, judge.secrets)  # what is made once and kept is no leak
    found = []
    for _ in range(2):
        held, running = Held(), asyncio.all_tasks()
        await solo(judge, task, table, judge.secrets)
        await asyncio.sleep(_END_S)  # what was cancelled ends now
        found.append(left_over(held))
        if begun := asyncio.all_tasks() - running:
            found[-1]["leak-tasks"] = sorted(one.get_name() for one in begun)
        if not found[-1]:
            return
    for rule in rules:
        if all(rule in left for left in found):
            names = found[-1][rule]
            # where it is not written, what it should release is told at what takes it
            written = "teardown" if judge.cls.teardown is not Environment.teardown else "setup"
            judge.complain(rule, f"after teardown there are still {', '.join(names[:5])}", written)


async def _prompts(judge: Judge, tasks: Tasks) -> None:
    """The answer must not stand in the prompt: it may by chance, so most tasks that were looked at decide."""
    judge.looked_at("prompt-answer")
    shown: dict[str, int] = {}
    examples = _some(tasks.examples, 2 if judge.few else judge.samples)
    for _, _, task in examples:
        play = Play(judge, task, judge.secrets)
        if await play.open():
            await play.prompt()
            await play.close()
        text = "\n".join(play.texts)
        choices = {*_choices(plain(task))}
        for key in {key for key, value in _answers(plain(task)) if value not in choices and _stands_in(value, text)}:
            shown[key] = shown.get(key, 0) + 1
    for key, count in shown.items():
        if 2 * count > len(examples):
            words = f"the prompt holds the task's {key!r} in {count} of {len(examples)} tasks"
            judge.complain("prompt-answer", words, "get_prompt")


def _some(examples: list[tuple[str, int, Any]], most: int) -> list[tuple[str, int, Any]]:
    """Tasks of every split, the first and the last among them."""
    if len(examples) <= most:
        return examples
    return [examples[place * (len(examples) - 1) // (most - 1)] for place in range(most)]


def _choices(value: Any) -> Iterator[str]:
    """What is offered to choose from: the answer to it stands in the prompt, and may."""
    if isinstance(value, list) and len(value) > 1:
        yield from (str(one).strip() for one in value if isinstance(one, (str, int, float)))
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _choices(item)


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
    first, second = tasks.examples[0][2], tasks.examples[-1][2]
    state = ClassState(judge.cls)
    once = (await solo(judge, first, table, judge.secrets)).transcript
    again = (await solo(judge, first, table, judge.secrets)).transcript
    changed = state.changed()
    if once != again:
        # with what has changed put back it is played as before, unless chance plays along too
        if changed and state.restore() and (await solo(judge, first, table, judge.secrets)).transcript == once:
            words = f"an episode is played in another way after one has changed the class's {changed[0]!r}"
            judge.complain("shared-state", words, changed[0])
        else:
            judge.passed_over("shared-state", "an episode is not played twice in the same way, so nothing can be told")
        return
    judge.looked_at("shared-state")
    one, other = (Play(judge, task, judge.secrets, name) for task, name in ((first, "one"), (second, "other")))
    if await one.open() and await other.open():
        for play in (one, other):
            await play.prompt()
        assert one.env is not None
        specs = (await tools_to_call(judge, one.env, table))[:TOOLS_AT_MOST]
        over: set[Play] = set()
        for spec in specs:
            for play in (other, one):
                if play not in over:
                    output = await play.tool(spec)
                    if output is not None and output.finished:
                        over.add(play)
    await one.close()
    await other.close()
    # alone it is still what it was, so that chance is not taken for a fault
    if one.transcript != once and (await solo(judge, first, table, judge.secrets)).transcript == once:
        where = f"the class's {changed[0]!r} " if changed else "something that they share "
        words = f"with another session beside it an episode is played in another way: {where}is changed by both"
        judge.complain("shared-state", words, changed[0] if changed else "")


async def _secrets(judge: Judge, task: Any, table: dict[str, ToolDefinition]) -> None:
    secrets: dict[str, str] = dict(judge.secrets)
    if not secrets:
        secrets = Sentinels()
        _ = secrets["api_key"]
    quiet = Judge(judge.cls, judge.stage, type(judge.report)(""), splits=(), samples=2, secrets={}, skip=frozenset())
    play = Play(quiet, task, secrets)
    opened = await _unheard(quiet, play, table)
    if not opened and not judge.secrets:
        judge.passed_over("secret-prompt", "it does not open with secrets that are made up; give some: secrets={…}")
    else:
        judge.looked_at("secret-prompt", "secret-output", "secret-log")
    prompts = [("get_prompt", text) for text in play.texts]
    for name, value in secrets.items():
        if len(value) < 4:
            continue
        for rule, heard, where in (
            ("secret-prompt", prompts, "the prompt"),
            ("secret-output", play.outputs, "the output of a tool"),
            ("secret-output", quiet.raised, "the words of an error"),
            ("secret-log", play.printed, "what is printed or logged"),
        ):
            for method, text in heard:
                if value in text:
                    judge.complain(rule, f"the secret {name!r} stands in {where}", method)


async def _unheard(judge: Judge, play: Play, table: dict[str, ToolDefinition]) -> bool:
    """Play an episode whose complaints nobody hears; each tool that there is time for before one ends it."""
    if not await play.open():
        return False
    await play.prompt()
    assert play.env is not None
    for spec in (await tools_to_call(judge, play.env, table))[:TOOLS_AT_MOST]:
        output = await play.tool(spec)
        if output is not None and output.finished:
            break
    await play.close()
    return True
