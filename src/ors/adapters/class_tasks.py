"""The task methods of an environment class → `Tasks`. Each question is one work, run away from the event loop.

A split that was listed is kept: counting, picking and slicing then cost no second listing. `/tasks` lists afresh. What
an episode gets is a copy, so that none can change the task of another.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from ors.adapters.explain import ErrorDetail, explain
from ors.core.failures import Failure, failure
from ors.core.ports import Document, RunWork, TaskQuery, TaskRef, Work
from ors.environment import Environment
from ors.errors import AuthoringError
from ors.jsontext import JSONValueError, dump
from ors.tasks.values import jsonable, task_json
from ors.types import Split

__all__ = ["ClassTasks"]

_PIECE = 256 << 10
_MOST_UNCOUNTED = 100_000


class ClassTasks:
    """The tasks of one environment class; nothing is shared with its parent or its subclasses."""

    def __init__(self, cls: type[Environment], errors: ErrorDetail) -> None:
        self._cls = cls
        self._errors = errors
        self._splits: list[Split] | None = None
        self._kept: dict[str, Sequence[Any]] = {}
        self._counted: dict[str, int] = {}
        self.lists = _defines(cls, "list_tasks")
        self._counts = _defines(cls, "num_tasks")
        self._gets = _defines(cls, "get_task")
        self._ranges = _defines(cls, "get_task_range")
        if not _defines(cls, "list_splits"):
            raise AuthoringError(f"{cls.__name__} does not define list_splits; name its splits there")

    async def query(self, query: TaskQuery, run: RunWork) -> Document | Failure:
        if query.kind == "splits":
            splits = await self._load_splits(run)
            return splits if isinstance(splits, Failure) else Document(dump([split.model_dump() for split in splits]))
        if (wrong := await self._check_split(query.split, run)) is not None:
            return wrong
        if query.kind == "count":
            count = await self._count(query.split, run)
            return count if isinstance(count, Failure) else Document(dump(count))
        if query.kind == "get":
            body = await self._one(query.split, query.index, run, task_json)
            return body if isinstance(body, Failure) else Document(body)
        return await self._range(query, run)

    async def resolve(self, ref: TaskRef, run: RunWork) -> Any:
        if (wrong := await self._check_split(ref.split, run)) is not None:
            return wrong
        return await self._one(ref.split, ref.index, run, jsonable)

    async def stream(self, split: str, run: RunWork) -> AsyncIterator[bytes | Failure]:
        if (wrong := await self._check_split(split, run)) is not None:
            yield wrong
            return
        tasks = await self._list(split, run, afresh=True)
        if isinstance(tasks, Failure):
            if tasks.kind == "not_supported":
                words = "list_tasks is not supported for this environment. Use the index-based API"
                tasks = failure("not_supported", f"{words} (num_tasks + get_task) instead.", ran="yes")
            yield tasks
            return
        start, total, before = 0, None, b"["
        while total is None or start < total:
            some = await run(Work(lambda at=start, of=total: self._encode_some(tasks, split, at, of), label="tasks"))  # type: ignore[misc]
            if isinstance(some, Failure):
                yield some
                return
            piece, start, total = some
            yield before + piece
            before = b","
        yield b"]"

    # Splits

    async def _check_split(self, name: str, run: RunWork) -> Failure | None:
        splits = await self._load_splits(run)
        if not isinstance(splits, Failure) and name not in (split.name for split in splits):
            splits = await self._load_splits(run, afresh=True)
        if isinstance(splits, Failure):
            return splits
        names = [split.name for split in splits]
        if name in names:
            return None
        return failure("unknown_split", f"Invalid split '{name[:200]}'; the splits are {', '.join(names) or 'none'}")

    async def _load_splits(self, run: RunWork, afresh: bool = False) -> list[Split] | Failure:
        if self._splits is None or afresh:
            splits = await self._ask(run, "list_splits", lambda: self._cls.list_splits(), self._splits_of)
            if isinstance(splits, Failure):
                return splits
            self._splits = splits
        return self._splits

    def _splits_of(self, listed: Any) -> list[Split] | Failure:
        where = f"{self._cls.__name__}.list_splits"
        try:
            splits = [Split.of(item) for item in listed]
        except (TypeError, ValueError, KeyError) as exc:
            return failure("bad_splits", f"{where} returned no list of splits: {exc}", ran="yes")
        if len({split.name for split in splits}) != len(splits):
            return failure("bad_splits", f"{where} names a split twice", ran="yes")
        return splits

    # Tasks

    async def _list(self, split: str, run: RunWork, afresh: bool = False) -> Any:
        tasks = None if afresh else self._kept.get(split)
        if tasks is None:
            tasks = await self._ask(run, "list_tasks", lambda: self._cls.list_tasks(split), self._listed)
            if not isinstance(tasks, Failure):
                self._kept[split] = tasks
        return tasks

    async def _count(self, split: str, run: RunWork) -> int | Failure:
        if self.lists and not self._counts:
            tasks = await self._list(split, run)
            if isinstance(tasks, Failure):
                return tasks
            if type(tasks) is list:
                return len(tasks)
            return await self._ask(run, "list_tasks", lambda: len(tasks), self._count_of)  # type: ignore[no-any-return]
        return await self._ask(run, "num_tasks", lambda: self._cls.num_tasks(split), self._count_of)  # type: ignore[no-any-return]

    def _count_of(self, count: Any) -> int | Failure:
        if isinstance(count, bool) or not hasattr(count, "__index__") or count < 0:
            words = f"{self._cls.__name__}.num_tasks returned {count!r:.100}; a count is an integer"
            return failure("task_failed", words, ran="yes")
        return int(count)

    async def _one(self, split: str, index: int, run: RunWork, make: Callable[[Any], Any]) -> Any:
        """What `make` makes of the task at an index."""
        if index < 0:
            return failure("invalid_index", f"Invalid index {index}; indices start at 0")
        if self.lists and not self._gets:
            tasks = await self._list(split, run)
            if isinstance(tasks, Failure):
                return tasks
            return await run(Work(lambda: self._take(tasks, split, index, make), label="task"))
        if (wrong := await self._check_end(split, index, run)) is not None:
            return wrong
        task = await self._ask(run, "get_task", lambda: self._cls.get_task(split, index))
        if isinstance(task, Failure):
            return task
        return await run(Work(lambda: self._make(task, split, index, make), label="task"))

    async def _check_end(self, split: str, index: int, run: RunWork) -> Failure | None:
        """Refuse an index past the end where the author says how many tasks there are; not all `get_task` do."""
        if not self._counts or index < self._counted.get(split, 0):
            return None
        count = await self._count(split, run)
        if isinstance(count, Failure):  # there may be no end
            return None
        self._counted[split] = count
        return _past_the_end(split, index, count) if index >= count else None

    def _take(self, tasks: Any, split: str, index: int, make: Callable[[Any], Any]) -> Any:
        try:
            if index >= (count := len(tasks)):
                return _past_the_end(split, index, count)
            task = tasks[index]
        except BaseException as exc:  # the sequence may be the author's own
            return self._raised("list_tasks", exc)
        return self._make(task, split, index, make)

    def _make(self, task: Any, split: str, index: int, make: Callable[[Any], Any]) -> Any:
        try:
            return make(task)
        except Exception as exc:
            return failure("bad_task", self._no_json(split, index, exc), ran="yes")

    async def _range(self, query: TaskQuery, run: RunWork) -> Document | Failure:
        split, start, stop = query.split, query.start, query.stop
        tasks = await self._list(split, run) if self.lists and not self._ranges else None
        if isinstance(tasks, Failure):
            if tasks.kind != "not_supported" or not self._gets:
                return tasks
            tasks = None  # too many to list, but each can be had by its index
        if tasks is not None:
            body = await run(Work(lambda: self._encode_slice(tasks, split, start, stop), label="task_range"))
        else:
            if (start is not None and start < 0) or (stop is not None and stop < 0):
                count = await self._count(split, run)
                if isinstance(count, Failure):
                    return count
                wanted = range(*slice(start, stop).indices(count))
                start, stop = wanted.start, max(wanted.stop, wanted.start)
            first = start or 0
            if stop is not None and stop <= first:
                return Document(b"[]")
            chosen = await self._slice(split, start, stop, run)
            if isinstance(chosen, Failure):
                return chosen
            body = await run(Work(lambda: self._encode(chosen, split, first), label="task_range"))
        return body if isinstance(body, Failure) else Document(body)

    async def _slice(self, split: str, start: int | None, stop: int | None, run: RunWork) -> Any:
        cls = self._cls
        if self._ranges:
            return await self._ask(run, "get_task_range", lambda: cls.get_task_range(split, start, stop), self._ranged)
        count = await self._count(split, run)
        if not isinstance(count, Failure):
            wanted = range(*slice(start, stop).indices(count))
        elif count.kind == "not_supported" and stop is not None:
            # nobody knows how many there are, but which are wanted is said in full
            wanted = range(start or 0, stop)
            if len(wanted) > _MOST_UNCOUNTED:
                return failure("invalid_index", f"at most {_MOST_UNCOUNTED} tasks of a split without a count at once")
        else:
            return count
        ends = isinstance(count, Failure)
        return await self._ask(run, "get_task", lambda: _pick(lambda at: cls.get_task(split, at), wanted, ends))

    # Author code

    async def _ask(
        self, run: RunWork, method: str, call: Callable[[], Any], finish: Callable[[Any], Any] = lambda value: value
    ) -> Any:
        """Run a class method and return what `finish` makes, also there, of what it returned; or a failure."""

        async def settle(value: Awaitable[Any]) -> Any:
            try:
                return finish(await value)
            except BaseException as exc:
                return self._raised(method, exc)

        def work() -> Any:
            try:
                value = call()
                return settle(value) if inspect.isawaitable(value) else finish(value)
            except BaseException as exc:
                return self._raised(method, exc)

        return await run(Work(work, label=method, serial=self._cls.name()))

    def _raised(self, method: str, exc: BaseException) -> Failure:
        words = explain(exc, self._errors, "Internal Server Error")
        if isinstance(exc, NotImplementedError):
            return failure("not_supported", f"{method} is not supported for this environment", ran="yes")
        if isinstance(exc, IndexError) and method.startswith("get_task"):
            return failure("invalid_index", f"Invalid index: {exc}" if str(exc) else "Invalid index", ran="yes")
        return failure("task_failed", words, ran="yes")

    def _listed(self, value: Any) -> Any:
        return self._sequence_of("list_tasks", value)

    def _ranged(self, value: Any) -> Any:
        return self._sequence_of("get_task_range", value)

    def _sequence_of(self, method: str, value: Any) -> Any:
        """A list, or whatever has a length and positions."""
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
            words = f"{self._cls.__name__}.{method} returned {type(value).__name__}; return a list"
            return failure("task_failed", words, ran="yes")
        return value if hasattr(value, "__len__") and hasattr(value, "__getitem__") else list(value)

    # JSON

    def _no_json(self, split: str, index: int, exc: Exception) -> str:
        words = str(exc) if type(exc) is JSONValueError else explain(exc, self._errors, "its environment failed")
        return f"task {index} of split '{split}' cannot be JSON: {words}"

    def _encode_one(self, task: Any, split: str, index: int) -> bytes:
        """A task that cannot be JSON holds its place as `{"error": …}`, so that indices stay true."""
        try:
            return task_json(task)
        except Exception as exc:
            return dump({"error": self._no_json(split, index, exc)})

    def _encode(self, tasks: Iterable[Any], split: str, first: int) -> Any:
        try:
            parts = [self._encode_one(task, split, index) for index, task in enumerate(tasks, first)]
        except BaseException as exc:  # the sequence may be the author's own
            return self._raised("the list of tasks", exc)
        return b"[" + b",".join(parts) + b"]"

    def _encode_slice(self, tasks: Any, split: str, start: int | None, stop: int | None) -> Any:
        try:
            wanted = range(*slice(start, stop).indices(len(tasks)))
            chosen = [tasks[index] for index in wanted]
        except BaseException as exc:
            return self._raised("list_tasks", exc)
        return self._encode(chosen, split, wanted.start)

    def _encode_some(self, tasks: Any, split: str, start: int, total: int | None) -> Any:
        """Encode tasks from `start` on until there is a piece; returns it, where the next starts, and how many are."""
        parts: list[bytes] = []
        size, index = 0, start
        try:
            total = len(tasks) if total is None else total
        except BaseException as exc:
            return self._raised("list_tasks", exc)
        while index < total and size < _PIECE:
            try:
                part = self._encode_one(tasks[index], split, index)
            except Exception as exc:
                part = dump({"error": self._no_json(split, index, exc)})
            parts.append(part)
            size += len(part)
            index += 1
        return b",".join(parts), index, total


def _past_the_end(split: str, index: int, count: int) -> Failure:
    return failure("invalid_index", f"Invalid index {index}; split '{split}' has {count} tasks")


def _defines(cls: type, method: str) -> bool:
    """Whether a class, or a parent other than Environment itself, defines a method."""
    return inspect.getattr_static(cls, method, None) is not inspect.getattr_static(Environment, method)


def _pick(get: Callable[[int], Any], wanted: range, ends: bool) -> Any:
    """The tasks at these places, or something to await for them. `ends`: an IndexError means that there are no more."""
    found: list[Any] = []
    try:
        for index in wanted:
            task = get(index)
            if inspect.isawaitable(task):
                return _pick_later(get, wanted[len(found) + 1 :], ends, found, task)
            found.append(task)
    except IndexError:
        if not ends:
            raise
    return found


async def _pick_later(
    get: Callable[[int], Any], wanted: range, ends: bool, found: list[Any], task: Awaitable[Any]
) -> list[Any]:
    try:
        found.append(await task)
        for index in wanted:
            found.append(await get(index))
    except IndexError:
        if not ends:
            raise
    return found
