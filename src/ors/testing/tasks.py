"""The rules about splits and tasks: that they can be asked for, are what they say, and stay as they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ors.core.failures import Failure
from ors.core.ports import TaskQuery, Work
from ors.testing.inspection import Inspection, words_of
from ors.testing.round_trip import canonical, changed
from ors.testing.sampling import spread, spread_of
from ors.testing.stage import Outcome

__all__ = ["METHODS", "Found", "ask", "check_tasks"]

METHODS = ("list_splits", "list_tasks", "num_tasks", "get_task", "get_task_range")
_ASKED = 64
_LISTED = 20_000
_MISSING = object()

Call = Callable[..., Outcome]
"""Calls a task method: on the class, or on an instance that was just made."""


@dataclass
class Found:
    """The tasks of a split: how many, and those that were taken from it, by index, as JSON."""

    split: str
    type: str
    count: int | None
    tasks: dict[int, Any]


def check_tasks(look: Inspection, call: Call, tasks: Any, defined: frozenset[str]) -> list[Found]:
    """Check splits and tasks; returns what an episode can be played with.

    tasks: the `Tasks` of the offering, which answer as a server does. defined: which of the methods the author wrote.
    """
    splits = _splits(look, call, tasks)
    found = []
    for name, type_ in splits:
        if look.options.splits is None or name in look.options.splits:
            found.append(_Split(look, call, tasks, defined, name, type_).check())
    _check_overlap(look, found)
    return found


def ask(tasks: Any, query: TaskQuery) -> Any:
    """What a server answers to a question about tasks: JSON data, or a Failure. For the stage's thread."""

    async def run(work: Work) -> Any:
        value = work.fn()
        return await value if asyncio.iscoroutine(value) or hasattr(value, "__await__") else value

    async def main() -> Any:
        answer = await tasks.query(query, run)
        return answer if isinstance(answer, Failure) else json.loads(answer.body)

    return main()


def _splits(look: Inspection, call: Call, tasks: Any) -> list[tuple[str, str]]:
    look.seen("split-list")
    raw = call("list_splits")
    if raw.error is not None:
        _blame(look, "split-list", "list_splits", raw.error, "it raised")
        return []
    answer = look.run("list_splits", lambda: ask(tasks, TaskQuery("splits"))).value
    if isinstance(answer, Failure):
        look.complain("split-list", answer.detail, "list_splits")
        return []
    if not answer:
        look.complain("split-list", "it names no split", "list_splits", mend="name one: return ['train']")
    return [(split["name"], split.get("type", "validation")) for split in answer]


def _blame(look: Inspection, id: str, method: str, error: BaseException, what: str) -> None:
    """Complain of an error, or of the method not being a class method where that is what it is."""
    text = words_of(error)
    not_bound = (
        isinstance(error, TypeError) and "missing 1 required positional argument" in text and (look.kind == "tools")
    )
    if not_bound:
        look.complain("task-fresh", f"it needs an instance, and is asked of the class: {text}", method)
    elif isinstance(error, AttributeError) and look.kind == "steps":
        look.complain(
            "task-fresh", f"it fails on an instance that was never reset: {text}", method, spot=_at(look, error)
        )
    else:
        look.complain(id, f"{what} {text}", method, spot=_at(look, error))


def _at(look: Inspection, error: BaseException) -> Any:
    return look.own.raised_at(error)


class _Split:
    """One split under check."""

    def __init__(
        self, look: Inspection, call: Call, tasks: Any, defined: frozenset[str], name: str, type_: str
    ) -> None:
        self.look, self.call, self.tasks, self.defined = look, call, tasks, defined
        self.name, self.type = name, type_

    def check(self) -> Found:
        look = self.look
        look.seen("task-fails", "task-fresh")
        listed = self._listed()
        count = self._counted(listed)
        if listed is not None and count is not None:
            look.seen("task-count")
            if count < len(listed):
                self._wrong("task-count", f"it says {count} for '{self.name}', and list_tasks has {len(listed)}")
                count = len(listed)
        if count is None:
            return Found(self.name, self.type, None, {})
        picked = self._picked(count, listed)
        self._check_end(count, listed)
        self._check_range(count, picked)
        self._check_twice(picked, listed)
        return Found(self.name, self.type, count, self._as_json(picked))

    def _wrong(self, id: str, message: str) -> None:
        """Complain of a count: of num_tasks where the author wrote it."""
        self.look.complain(id, message, "num_tasks" if "num_tasks" in self.defined else "list_tasks")

    def _listed(self) -> Sequence[Any] | None:
        if "list_tasks" not in self.defined:
            return None
        outcome = self.call("list_tasks", self.name)
        if isinstance(outcome.error, NotImplementedError):
            return None
        if outcome.error is not None:
            _blame(self.look, "task-fails", "list_tasks", outcome.error, f"for '{self.name}' it raised")
            return None
        value = outcome.value
        if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
            words = f"for '{self.name}' it returned {type(value).__name__}"
            self.look.complain("task-fails", words, "list_tasks", mend="return a list of tasks")
            return None
        sized = hasattr(value, "__len__") and hasattr(value, "__getitem__")
        return value if sized else self._drained(value)

    def _drained(self, value: Any) -> list[Any]:
        found: list[Any] = []
        self.look.run("list_tasks", lambda: found.extend(value))
        return found

    def _counted(self, listed: Sequence[Any] | None) -> int | None:
        if listed is not None and "num_tasks" not in self.defined:
            return len(listed)
        outcome = self.call("num_tasks", self.name)
        if isinstance(outcome.error, NotImplementedError):
            why = "nobody knows how many tasks there are"
            self.look.unseen(why, "task-count", "task-index", "task-end", "task-range", "task-agree", "task-order")
            return len(listed) if listed is not None else None
        if outcome.error is not None:
            _blame(self.look, "task-fails", "num_tasks", outcome.error, f"for '{self.name}' it raised")
            return len(listed) if listed is not None else None
        count = outcome.value
        self.look.seen("task-count")
        if isinstance(count, bool) or not hasattr(count, "__index__") or count < 0:
            self._wrong("task-count", f"it says {count!r:.60} for '{self.name}', which is no number of tasks")
            return len(listed) if listed is not None else None
        if count == 0:
            self._wrong("task-count", f"it says 0 for '{self.name}': a split without a task")
        return int(count)

    def _picked(self, count: int, listed: Sequence[Any] | None) -> dict[int, Any]:
        """Tasks from all over the split, as the author returns them."""
        look = self.look
        picked: dict[int, Any] = {}
        for index in spread(count, max(_ASKED, look.options.tasks)):
            if "get_task" not in self.defined:
                picked[index] = listed[index] if listed is not None and index < len(listed) else _MISSING
                continue
            look.seen("task-index")
            outcome = self.call("get_task", self.name, index)
            if isinstance(outcome.error, NotImplementedError):
                if listed is None:
                    return {}
                picked[index] = listed[index] if index < len(listed) else _MISSING
            elif outcome.error is not None:
                # with all from there to the end missing it is the count that is wrong
                past = listed is None or index >= len(listed)
                if past and picked and self.call("get_task", self.name, count - 1).error is not None:
                    words = f"it says {count} for '{self.name}', and there is no task {index}"
                    self._wrong("task-count", f"{words}: {words_of(outcome.error)}")
                else:
                    words = f"task {index} of '{self.name}' cannot be had: it raised"
                    _blame(look, "task-index", "get_task", outcome.error, words)
                break
            else:
                picked[index] = outcome.value
                if listed is not None and index < len(listed):
                    self._agree(index, outcome.value, listed[index])
        return {index: task for index, task in picked.items() if task is not _MISSING}

    def _agree(self, index: int, one: Any, other: Any) -> None:
        look = self.look
        look.seen("task-agree")
        if look.kind == "steps":
            # the guide's own example lists stubs that say less
            if not (isinstance(one, dict) and isinstance(other, dict)):
                return
            one, other = ({k: v for k, v in task.items() if k in one and k in other} for task in (one, other))
        if canonical(one) != canonical(other):
            words = f"task {index} of '{self.name}' is {canonical(one):.80}, and in list_tasks {canonical(other):.80}"
            look.complain("task-agree", words, "get_task")

    def _check_end(self, count: int, listed: Sequence[Any] | None) -> None:
        look = self.look
        if "get_task" not in self.defined:
            look.unseen("get_task is not overridden", "task-end", "task-index", "task-agree")
            return
        past = [count, count + 1000] + ([-1] if look.kind == "steps" else [])
        for index in past:
            outcome = self.call("get_task", self.name, index)
            if isinstance(outcome.error, NotImplementedError):
                return
            look.seen("task-end")
            words = f"for index {index} of '{self.name}', which has {count} tasks, it"
            if outcome.error is None:
                look.complain("task-end", f"{words} returned {canonical(outcome.value):.80}", "get_task")
            elif not isinstance(outcome.error, IndexError):
                spot = look.own.raised_at(outcome.error)
                look.complain("task-end", f"{words} raised {words_of(outcome.error)}", "get_task", spot=spot)
            else:
                continue
            return

    def _check_range(self, count: int, picked: dict[int, Any]) -> None:
        """Slices, against the tasks one by one."""
        look = self.look
        if "get_task_range" not in self.defined:
            look.unseen("get_task_range is not overridden", "task-range")
            return
        cases: list[tuple[int | None, int | None]] = [
            (0, min(3, count)),
            (count - min(2, count), None),
            (count, count + 5),
        ]
        if count <= _ASKED:
            cases.append((None, None))
        for start, stop in cases:
            outcome = self.call("get_task_range", self.name, start, stop)
            if isinstance(outcome.error, NotImplementedError):
                return
            look.seen("task-range")
            asked = f"({start}, {stop}) of '{self.name}'"
            if outcome.error is not None:
                _blame(look, "task-range", "get_task_range", outcome.error, f"for {asked} it raised")
                return
            wanted = range(*slice(start, stop).indices(count))
            try:
                got = list(outcome.value)
            except TypeError:
                look.complain("task-range", f"for {asked} it returned {type(outcome.value).__name__}", "get_task_range")
                return
            if len(got) != len(wanted):
                words = f"for {asked} it returned {len(got)} tasks, not {len(wanted)}"
                if start is None:
                    words += f": num_tasks says {count}"
                look.complain("task-range", words, "get_task_range")
                return
            for index, task in zip(wanted, got, strict=True):
                if look.kind == "tools" and index in picked and canonical(task) != canonical(picked[index]):
                    words = f"for {asked} it returned {canonical(task):.80} as task {index}, which is "
                    look.complain("task-range", f"{words}{canonical(picked[index]):.80}", "get_task_range")
                    return

    def _check_twice(self, picked: dict[int, Any], listed: Sequence[Any] | None) -> None:
        """Ask everything again: what was asked meanwhile must have changed nothing."""
        look = self.look
        look.seen("task-same")
        if listed is not None and len(listed) <= _LISTED:
            before = [canonical(task) for task in listed]
            again = self.call("list_tasks", self.name)
            if again.error is not None:
                words = f"asked a second time for '{self.name}' it raised {words_of(again.error)}"
                look.complain("task-same", words, "list_tasks", spot=look.own.raised_at(again.error))
            else:
                after = [canonical(task) for task in again.value]
                self._compare("list_tasks", before, after)
        if "num_tasks" in self.defined and listed is None:
            first, second = (self.call("num_tasks", self.name) for _ in range(2))
            if first.error is None and second.error is None and first.value != second.value:
                words = f"asked again for '{self.name}' it says {second.value}, after {first.value}"
                look.complain("task-same", words, "num_tasks")
        if "get_task" in self.defined:
            for index, task in list(picked.items())[:8]:
                outcome = self.call("get_task", self.name, index)
                if isinstance(outcome.error, NotImplementedError):
                    return
                if outcome.error is not None or canonical(outcome.value) != canonical(task):
                    said = words_of(outcome.error) if outcome.error else f"{canonical(outcome.value):.80}"
                    words = (
                        f"asked again for task {index} of '{self.name}' it gives {said}, after {canonical(task):.80}"
                    )
                    look.complain("task-same", words, "get_task")
                    return

    def _compare(self, method: str, before: list[str], after: list[str]) -> None:
        if before == after:
            return
        words = f"asked again for '{self.name}' it gives "
        if len(before) != len(after):
            words += f"{len(after)} tasks, after {len(before)}"
        elif sorted(before) == sorted(after):
            words += "the same tasks in another order"
        else:
            place = next(i for i, (one, other) in enumerate(zip(before, after, strict=True)) if one != other)
            words += f"{after[place]:.80} at {place}, after {before[place]:.80}"
        self.look.complain("task-same", words, method)

    def _as_json(self, picked: dict[int, Any]) -> dict[int, Any]:
        """The tasks as an episode gets them, where they can be JSON."""
        look, found = self.look, {}
        method = "get_task" if "get_task" in self.defined else "list_tasks"
        for index in spread_of(list(picked), max(look.options.tasks, 8)):
            look.seen("task-json", "task-round-trip")
            query = TaskQuery("get", self.name, index)
            outcome = look.run(method, lambda query=query: ask(self.tasks, query))  # type: ignore[misc]
            if outcome.error is not None or isinstance(outcome.value, Failure):
                said = words_of(outcome.error) if outcome.error else outcome.value.detail
                known = isinstance(outcome.value, Failure) and outcome.value.kind in ("not_supported", "invalid_index")
                if not known:
                    look.complain("task-json", said, method)
                continue
            found[index] = outcome.value
            look.check_shown(canonical(outcome.value), f"task {index} of '{self.name}'", method)
            if not look.broken("task-same") and (path := changed(picked[index], outcome.value)) is not None:
                words = f"task {index} of '{self.name}' is not the same after it was JSON: {path}"
                look.complain("task-round-trip", words, method)
        return found


def _check_overlap(look: Inspection, found: list[Found]) -> None:
    """The same task in a split to train on and in one to test on."""
    trained = {
        canonical(task): (one, index) for one in found if one.type == "train" for index, task in one.tasks.items()
    }
    tested = [one for one in found if one.type == "test"]
    if not trained or not tested:
        look.unseen("there are not both a split to train on and one to test on", "split-overlap")
        return
    look.seen("split-overlap")
    if look.kind == "steps":
        return  # a stub says nothing of what is behind it
    for one in tested:
        for index, task in one.tasks.items():
            if (other := trained.get(canonical(task))) is not None:
                words = f"task {index} of '{one.split}' is task {other[1]} of '{other[0].split}': {canonical(task):.80}"
                look.complain("split-overlap", words, "get_task" if "get_task" in vars(look.cls) else "list_tasks")
                return
