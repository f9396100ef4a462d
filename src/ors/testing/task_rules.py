"""Rules of tasks: how many there are, in which order, that asking changes nothing, and that they are JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

from ors.tasks.values import jsonable, task_json
from ors.testing.judge import Judge, said
from ors.types import Split

__all__ = ["Tasks", "check_tasks", "plain", "same"]

_LISTED_AT_MOST = 20_000


class Tasks:
    """The task methods of a class, however they are reached, and what is known of its splits."""

    def __init__(self, judge: Judge, call: Callable[..., Any], defines: Callable[[str], bool]) -> None:
        self.judge = judge
        self.call = call
        self.defines = defines
        self.counts: dict[str, int] = {}
        self.examples: list[tuple[str, int, Any]] = []
        """Some tasks, as they were given: split, index, task."""

    async def ask(self, method: str, *args: Any) -> Any:
        """Ask a task method. Raises what it raises."""
        return await self.judge.stage.run(self.call, method, *args)

    async def one(self, split: str, index: int) -> Any:
        """A task by its place."""
        if self.defines("get_task"):
            return await self.ask("get_task", split, index)
        return (await self.ask("list_tasks", split))[index]


async def check_tasks(tasks: Tasks) -> None:
    """Every rule of tasks, on every split that was asked for."""
    judge = tasks.judge
    listed = await judge.attempt("splits", "list_splits", tasks.call, "list_splits")
    if listed is judge.FAILED:
        return
    names = _names(judge, listed)
    if names is None:
        return
    judge.looked_at("splits-none")
    if not names:
        judge.complain("splits-none", "it returns none", "list_splits")
    again = _names(judge, await tasks.ask("list_splits"))
    judge.looked_at("tasks-repeat")
    if again != names:
        judge.complain("tasks-repeat", f"it returned {names}, and then {again}", "list_splits")
    if not any(tasks.defines(method) for method in ("list_tasks", "get_task")):
        judge.complain("tasks-none", "it defines neither list_tasks nor num_tasks and get_task", "")
        return
    for name in names:
        if not judge.only_splits or name in judge.only_splits:
            await _check_split(tasks, name)


def _names(judge: Judge, listed: Any) -> list[str] | None:
    try:
        names = [Split.of(item).name for item in listed]
    except Exception as exc:
        judge.complain("splits", f"it returns no list of splits: {said(exc)}", "list_splits", exc)
        return None
    if len(set(names)) < len(names):
        judge.complain("splits", f"it names a split twice: {names}", "list_splits")
    return names


async def _check_split(tasks: Tasks, split: str) -> None:
    judge = tasks.judge
    listing = await _listing(tasks, split)
    count = await _count(tasks, split, listing)
    if count is None:
        return
    tasks.counts[split] = count
    if listing is not None:
        if len(listing) > count:
            judge.complain("count", f"it says {count} of {split!r}, and list_tasks lists {len(listing)}", "num_tasks")
        if not tasks.defines("num_tasks") or len(listing) == count:
            await _check_listing_again(tasks, split, listing)
    await _check_indices(tasks, split, count, listing)
    await _check_ranges(tasks, split, count)


async def _listing(tasks: Tasks, split: str) -> Sequence[Any] | None:
    if not tasks.defines("list_tasks"):
        return None
    judge = tasks.judge
    judge.looked_at("task-methods")
    try:
        if tasks.defines("num_tasks") and await tasks.ask("num_tasks", split) > _LISTED_AT_MOST:
            return None
        return list(await tasks.ask("list_tasks", split))
    except NotImplementedError:
        return None
    except Exception as exc:
        judge.complain("task-methods", f"for {split!r} it raises {said(exc)}", "list_tasks", exc)
        return None


async def _count(tasks: Tasks, split: str, listing: Sequence[Any] | None) -> int | None:
    if not tasks.defines("num_tasks"):
        return len(listing) if listing is not None else None
    judge = tasks.judge
    judge.looked_at("count")
    try:
        count = await tasks.ask("num_tasks", split)
    except NotImplementedError:
        return len(listing) if listing is not None else None
    except Exception as exc:
        judge.complain("task-methods", f"for {split!r} it raises {said(exc)}", "num_tasks", exc)
        return None
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        judge.complain("count", f"for {split!r} it returns {count!r:.100}, which is no count", "num_tasks")
        return None
    return count


async def _check_listing_again(tasks: Tasks, split: str, listing: Sequence[Any]) -> None:
    judge = tasks.judge
    judge.looked_at("tasks-repeat")
    again = list(await tasks.ask("list_tasks", split))
    if not same(again, listing):
        judge.complain("tasks-repeat", f"asked twice for {split!r} it gives other tasks", "list_tasks")


async def _check_indices(tasks: Tasks, split: str, count: int, listing: Sequence[Any] | None) -> None:
    judge = tasks.judge
    if not tasks.defines("get_task"):
        for index in judge.chosen(count):
            assert listing is not None
            _check_task(tasks, split, index, listing[index], "list_tasks")
        return
    judge.looked_at("index", "index-end", "tasks-repeat")
    for index in judge.chosen(count):
        try:
            task = await tasks.ask("get_task", split, index)
            kept = copy.deepcopy(task)
            again = await tasks.ask("get_task", split, index)
        except NotImplementedError:
            return
        except Exception as exc:
            words = f"index {index} of {split!r}, which has {count} tasks, raises {said(exc)}"
            judge.complain("index", words, "get_task", exc)
            return
        if not same(again, kept):
            judge.complain(
                "tasks-repeat", f"index {index} of {split!r} is another task when asked for again", "get_task"
            )
        if listing is not None and index < len(listing) and tasks.defines("list_tasks"):
            judge.looked_at("order")
            if not _agree(listing[index], kept):
                judge.complain(
                    "order", f"index {index} of {split!r} is not the task that list_tasks has there", "get_task"
                )
        _check_task(tasks, split, index, kept, "get_task")
    for index in (count, count + 1000, -1):
        try:
            await tasks.ask("get_task", split, index)
        except IndexError:
            continue
        except NotImplementedError:
            return
        except Exception as exc:
            words = f"index {index} of {split!r}, which has {count} tasks, raises {said(exc)}, not IndexError"
            judge.complain("index-end", words, "get_task", exc)
        else:
            words = f"index {index} of {split!r}, which has {count} tasks, gives a task"
            judge.complain("index-end", words, "get_task")


async def _check_ranges(tasks: Tasks, split: str, count: int) -> None:
    if not tasks.defines("get_task_range") or not count:
        return
    judge = tasks.judge
    judge.looked_at("order")
    for start, stop in ((0, min(3, count)), (max(0, count - 2), count)):
        try:
            part = list(await tasks.ask("get_task_range", split, start, stop))
            one_by_one = [await tasks.one(split, index) for index in range(start, stop)]
        except NotImplementedError:
            return
        except Exception as exc:
            words = f"for {split!r} from {start} to {stop} it raises {said(exc)}"
            judge.complain("task-methods", words, "get_task_range", exc)
            return
        if len(part) != stop - start:
            words = f"for {split!r} from {start} to {stop} it gives {len(part)} tasks"
            judge.complain("count", words, "get_task_range")
        elif not all(_agree(one, other) for one, other in zip(part, one_by_one, strict=True)):
            words = f"for {split!r} from {start} to {stop} it gives others than the indices do"
            judge.complain("order", words, "get_task_range")


def _check_task(tasks: Tasks, split: str, index: int, task: Any, method: str) -> None:
    judge = tasks.judge
    judge.looked_at("task-json", "task-round-trip")
    if len(tasks.examples) < 3 * judge.samples:
        tasks.examples.append((split, index, task))
    where = f"task {index} of {split!r}"
    try:
        text = task_json(task)
    except Exception as exc:
        judge.complain("task-json", f"{where} is no JSON: {said(exc)}", method, exc)
        return
    back = json.loads(text)
    if isinstance(task, dict) and back != task:
        changed = [key for key in task if not isinstance(key, str) or back.get(key) != task[key]]
        words = f"{where} comes back from JSON as another, in {', '.join(map(repr, changed[:3]))}"
        judge.complain("task-round-trip", words, method)


def plain(value: Any) -> Any:
    """A value as JSON has it; what has no JSON form is told apart by how Python writes it."""
    try:
        return jsonable({"": value})[""]
    except Exception:  # the rule of tasks says what is wrong with it
        return repr(value)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON."""
    return bool(plain(one) == plain(other))


def _agree(one: Any, other: Any) -> bool:
    """Whether two tasks may be the same one: what a list shows of a task may be less than the task."""
    one, other = plain(one), plain(other)
    if isinstance(one, dict) and isinstance(other, dict) and (shared := one.keys() & other.keys()):
        return all(same(one[key], other[key]) for key in shared)
    return same(one, other)
