"""The tasks of a class as a source: what its own task methods say, what the source that it declares has, and the rest.

| Question | Answered by the first of these that there is |
| --- | --- |
| splits | `list_splits`, the source |
| all tasks | `list_tasks`, the source with `get_task` in its place where that is the class's own |
| count | `num_tasks`, the source, the length of `list_tasks`, the length of `get_task_range` |
| one task | `get_task`, the source, `list_tasks`, `get_task_range` |
| a range | `get_task_range`, `get_task` for each index, the source, `list_tasks` |

A method is the class's own where the class, or a parent nearer than the base of all, defines it. `list_tasks` is called
once for a split and its tasks are kept, never once for each index.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Hashable, Mapping, Sequence
from typing import Any

from ors.errors import AuthoringError
from ors.tasks.declared import outside
from ors.tasks.either import either
from ors.tasks.source import TaskSource, as_source, is_source

__all__ = ["TaskMethods", "origin_of"]

METHODS = ("list_splits", "list_tasks", "num_tasks", "get_task", "get_task_range")


class TaskMethods(TaskSource):
    """The tasks of `cls`, whose methods come from `base` where they are not its own.

    without: a method that does not count, because it is the one that asks (through `super()`, in the end).
    """

    def __init__(self, cls: type, base: type, without: str | None = None) -> None:
        self.cls = cls
        self.own = frozenset(name for name in METHODS if name != without and _differs(cls, base, name))
        declared = getattr(cls, "tasks", None)
        self.source = as_source(declared) if is_source(declared) else None
        self.id = self.source.id if self.source is not None else None
        self._lists: dict[str, Sequence[Any]] = {}
        self._counts: dict[str, int] = {}

    @property
    def plain(self) -> bool:
        """Whether every task is the source's as it is."""
        return self.source is not None and not self.own & {"get_task", "get_task_range"}

    def splits(self) -> Any:
        """What `list_splits` returns, or the source's."""
        if "list_splits" in self.own:
            return self._call("list_splits")
        if self.source is not None:
            return self.source.splits()
        raise NotImplementedError(f"{self.cls.__name__} does not define list_splits")

    @either
    def count(self, split: str) -> Generator[Any, Any, Any]:
        """How many tasks a split has; None where the source does not know. Raises NotImplementedError."""
        if "num_tasks" in self.own:
            count = yield self._call("num_tasks", split)
            if isinstance(count, bool) or not hasattr(count, "__index__") or count < 0:
                raise AuthoringError(
                    f"{self.cls.__name__}.num_tasks returned {count!r:.100}; a count is an integer from 0 on"
                )
            return int(count)
        if self.source is not None:
            return (yield self.source.count(split))
        if "list_tasks" in self.own:
            return len((yield self.listed(split)))
        if "get_task_range" in self.own:
            return len((yield self._sequence("get_task_range", split, None, None)))
        raise NotImplementedError(f"{self.cls.__name__} does not define list_tasks or num_tasks")

    @either
    def get(self, split: str, index: int) -> Generator[Any, Any, Any]:
        """The task at an index. Raises IndexError outside, NotImplementedError where tasks cannot be picked."""
        if "get_task" in self.own:
            yield self._check_end(split, index)
            return (yield self._call("get_task", split, index))
        if self.source is not None:
            return (yield self.source.get(split, index))
        if "list_tasks" in self.own:
            tasks = yield self.listed(split)
            if not 0 <= index < len(tasks):
                raise outside(split, index, len(tasks))
            return tasks[index]
        if "get_task_range" in self.own:
            tasks = yield self._sequence("get_task_range", split, index, index + 1)
            if not len(tasks):
                raise outside(split, index, None)
            return tasks[0]
        raise NotImplementedError(f"{self.cls.__name__} does not define list_tasks or get_task")

    @either
    def range(self, split: str, start: int, stop: int | None) -> Generator[Any, Any, Any]:
        """The tasks from `start` to before `stop`; without `stop` to the end, where `get_task_range` knows that."""
        if "get_task_range" in self.own:
            return (yield self._sequence("get_task_range", split, start, stop))
        if stop is None:
            raise ValueError("a range without an end is for get_task_range alone")
        if "get_task" in self.own:
            return (yield self._picked(split, start, stop))
        if self.source is not None:
            return (yield self.source.range(split, start, stop))
        tasks = yield self.listed(split)
        return [tasks[index] for index in range(start, min(stop, len(tasks)))]

    @either
    def texts_as(self, split: str, start: int, stop: int, first: int) -> Generator[Any, Any, Any]:
        """The source's texts, where its tasks are not changed here."""
        if self.plain:
            assert self.source is not None
            if first == start:
                return (yield self.source.texts(split, start, stop))
            return (yield self.source.texts_as(split, start, stop, first))
        return (yield super().texts_as(split, start, stop, first))

    def version(self, split: str) -> Hashable:
        """The source's, where its tasks are not changed here."""
        return self.source.version(split) if self.plain and self.source is not None else None

    def tag(self, split: str) -> Hashable:
        """The source's, where its tasks are not changed here."""
        return self.source.tag(split) if self.plain and self.source is not None else None

    @either
    def key(self, split: str, index: int) -> Generator[Any, Any, Any]:
        """The source's key, where its tasks are not changed here."""
        if self.plain:
            assert self.source is not None
            return (yield self.source.key(split, index))
        return (yield super().key(split, index))

    @property
    def keys_are_derived(self) -> bool:
        """Whether a key follows from the task and `id` alone."""
        if not self.plain or self.source is None:
            return True
        return type(self.source).key is TaskSource.key and "key" not in vars(self.source)

    # What class methods return

    @either
    def all(self, split: str) -> Generator[Any, Any, Any]:
        """Every task of a split. Raises NotImplementedError where that is not known to be a list with an end."""
        if "list_tasks" in self.own:
            return (yield self.listed(split))
        if self.source is None:
            raise NotImplementedError(f"{self.cls.__name__} does not define list_tasks")
        count = yield self.count(split)
        if count is None:
            raise NotImplementedError(f"{self.cls.__name__} cannot list split {split!r}: nobody knows where it ends")
        return list((yield self.range(split, 0, count)))

    @either
    def slice(self, split: str, start: int | None, stop: int | None) -> Generator[Any, Any, Any]:
        """The tasks of a Python slice."""
        first, last = yield self.bounds(split, start, stop)
        return [] if last is not None and last <= first else list((yield self.range(split, first, last)))

    @either
    def bounds(self, split: str, start: int | None, stop: int | None) -> Generator[Any, Any, Any]:
        """A Python slice as two positions; the second is None where `get_task_range` finds the end itself."""
        if self.source is None and not self.own - {"list_splits", "num_tasks"}:
            raise NotImplementedError(f"{self.cls.__name__} does not define list_tasks or get_task")
        first, ends = start or 0, stop is not None
        if first >= 0 and ((ends and stop >= 0) or (not ends and "get_task_range" in self.own)):  # type: ignore[operator]
            return first, stop
        if (count := (yield self.count(split))) is None:
            words = f"nobody knows where split {split!r} ends: a range needs a start and a stop, both 0 or more"
            raise NotImplementedError(words)
        wanted = range(*slice(start, stop).indices(count))
        return wanted.start, max(wanted.start, wanted.stop)

    # The class's own methods

    @either
    def listed(self, split: str, *, afresh: bool = False) -> Generator[Any, Any, Any]:
        """What `list_tasks` returns, as something with a length and positions; kept until it is wanted afresh."""
        tasks = None if afresh else self._lists.get(split)
        if tasks is None:
            if "list_tasks" not in self.own:
                raise NotImplementedError(f"{self.cls.__name__} does not define list_tasks")
            tasks = self._lists[split] = yield self._sequence("list_tasks", split)
        return tasks

    @either
    def _check_end(self, split: str, index: int) -> Generator[Any, Any, Any]:
        """Refuse an index past the end where the author says how many tasks there are; not all `get_task` do."""
        if "num_tasks" not in self.own or index < self._counts.get(split, 0):
            return
        try:
            count = self._counts[split] = yield self.count(split)
        except Exception:  # there may be no end
            return
        if index >= count:
            raise outside(split, index, count)

    @either
    def _picked(self, split: str, start: int, stop: int) -> Generator[Any, Any, Any]:
        """The tasks of a range by `get_task`; of a split without a count, as many as there are."""
        try:
            count = yield self.count(split)
        except NotImplementedError:
            count = None
        found: list[Any] = []
        try:
            for index in range(start, stop if count is None else min(stop, count)):
                found.append((yield self._call("get_task", split, index)))
        except IndexError:
            if count is not None:
                raise
        return found

    @either
    def _sequence(self, method: str, *arguments: Any) -> Generator[Any, Any, Any]:
        """What a method returns, as a list or whatever has a length and positions."""
        value = yield self._call(method, *arguments)
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
            raise AuthoringError(f"{self.cls.__name__}.{method} returned {type(value).__name__}; return a list")
        return value if hasattr(value, "__len__") and hasattr(value, "__getitem__") else list(value)

    @either
    def _call(self, method: str, *arguments: Any) -> Generator[Any, Any, Any]:
        try:
            return (yield getattr(self.cls, method)(*arguments))
        except Exception as exc:
            _note_origin(exc, method)
            raise


def origin_of(exc: BaseException) -> str | None:
    """The task method that raised an exception, where that is known."""
    return getattr(exc, "__ors_task_method__", None)


def _note_origin(exc: Exception, method: str) -> None:
    try:
        exc.__ors_task_method__ = method  # type: ignore[attr-defined]
    except Exception:  # it takes no attributes
        pass


def _differs(cls: type, base: type, name: str) -> bool:
    return inspect.getattr_static(cls, name, None) is not inspect.getattr_static(base, name)
