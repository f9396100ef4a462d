"""What a source of tasks is: splits, how many tasks each has, and any task by its index."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable
from typing import TYPE_CHECKING, Any

from ors.errors import TaskFileError
from ors.jsontext import JSONValueError, dump
from ors.tasks.either import either

if TYPE_CHECKING:
    from ors.tasks.composed import Filter, Map

__all__ = ["Id", "TaskSource", "as_source", "bad_task", "encode_task", "is_source"]

Id = str | Callable[[Any], Any] | None
"""Where the author's id of a task is: the name of a field, a function of the task, or nowhere."""

_METHODS = ("splits", "count", "get", "range")


class TaskSource(ABC):
    """Tasks by split and index. A subclass defines `splits`, `count` and `get`; the rest follows from them.

    Each method may be synchronous or a coroutine function in a subclass; the sources of this package are synchronous.
    None of them may depend on an event loop: they are called in threads, several at once.
    """

    id: Id = None

    @abstractmethod
    def splits(self) -> Any:
        """The splits: names, or `Split`s where the type is not to be told from the name."""

    @abstractmethod
    def count(self, split: str) -> Any:
        """How many tasks a split has; None when that is unknown or there is no end."""

    @abstractmethod
    def get(self, split: str, index: int) -> Any:
        """The task at an index, from 0 on. Raises IndexError outside, TaskFileError where it cannot be read."""

    @either
    def range(self, split: str, start: int, stop: int) -> Generator[Any, Any, Any]:
        """The tasks from `start` to before `stop`, `0 <= start <= stop`; fewer where the split ends before."""
        count = yield self.count(split)
        found: list[Any] = []
        try:
            for index in range(start, stop if count is None else min(stop, count)):
                found.append((yield self.get(split, index)))
        except IndexError:
            if count is not None:
                raise
        return found

    def texts(self, split: str, start: int, stop: int) -> Any:
        """What `range` has, as one strict JSON text for each task.

        A task that cannot be read or cannot be JSON is `{"error": …}` in its place, so that indices stay true. What
        is wrong with a whole split, and not with one of its tasks, is raised.
        """
        return self.texts_as(split, start, stop, start)

    @either
    def texts_as(self, split: str, start: int, stop: int, first: int) -> Generator[Any, Any, Any]:
        """What `texts` has, where errors count from `first` on: the indices of a union are not those of its parts."""
        try:
            tasks = yield self.range(split, start, stop)
        except NotImplementedError:  # it is no fault of one task that a stream has no places
            raise
        except Exception:
            return (yield self._texts_one_by_one(split, start, stop, first))
        return [encode_task(task, split, index) for index, task in enumerate(tasks, first)]

    @either
    def _texts_one_by_one(self, split: str, start: int, stop: int, first: int) -> Generator[Any, Any, Any]:
        count = yield self.count(split)
        found: list[bytes] = []
        for index in range(start, stop if count is None else min(stop, count)):
            named = index - start + first
            try:
                task = yield self.get(split, index)
            except Exception as exc:
                if isinstance(exc, TaskFileError) and exc.row is None:
                    raise
                if count is None and isinstance(exc, IndexError):
                    break
                found.append(bad_task(split, named, exc))
            else:
                found.append(encode_task(task, split, named))
        return found

    @either
    def key(self, split: str, index: int) -> Generator[Any, Any, Any]:
        """What identifies a task wherever it stands: the author's id, else the SHA-256 of its canonical JSON."""
        from ors.tasks.keys import task_key

        task = yield self.get(split, index)
        try:
            return task_key(task, self.id)
        except JSONValueError as exc:
            raise JSONValueError(f"task {index} of split '{split}' has no key: {exc}") from None

    @property
    def has_ids(self) -> bool:
        """Whether keys are ids of the author's, not hashes."""
        return self.id is not None

    def version(self, split: str) -> Hashable:
        """Something that differs after the tasks of a split changed; None where they never do, or nobody can tell."""
        return None

    def tag(self, split: str) -> Hashable:
        """The version, where it differs whatever changed in the tasks; else None. Answers to clients carry it."""
        return self.version(split)

    def filter(self, fn: Callable[[Any], Any]) -> Filter:
        """The tasks for which `fn` says yes, in the same order."""
        from ors.tasks.composed import Filter

        return Filter(self, fn)

    def map(self, fn: Callable[[Any], Any], *, id: Id = None) -> Map:
        """What `fn` makes of each task, when it is asked for."""
        from ors.tasks.composed import Map

        return Map(self, fn, id=id)


class _Adopted(TaskSource):
    """An object that has the methods of a source without being one."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        found = getattr(inner, "id", None)
        self.id = found if isinstance(found, str) or callable(found) else None
        for name in ("texts", "key", "version", "tag", "iterate"):
            if callable(method := getattr(inner, name, None)):
                self.__dict__[name] = method

    def splits(self) -> Any:
        return self._inner.splits()

    def count(self, split: str) -> Any:
        return self._inner.count(split)

    def get(self, split: str, index: int) -> Any:
        return self._inner.get(split, index)

    def range(self, split: str, start: int, stop: int) -> Any:
        return self._inner.range(split, start, stop)


def is_source(value: Any) -> bool:
    """Whether a value is a source: a `TaskSource`, or an object with `splits`, `count`, `get` and `range`."""
    if isinstance(value, TaskSource):
        return True
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in _METHODS)


def as_source(value: Any) -> TaskSource:
    """The source that a value is, with all methods. Raises TypeError for anything else."""
    if isinstance(value, TaskSource):
        return value
    if not is_source(value):
        raise TypeError(f"{type(value).__name__} is no source of tasks; one has {', '.join(_METHODS)}")
    return _Adopted(value)


def encode_task(task: Any, split: str, index: int) -> bytes:
    """A task as strict JSON; one that cannot be JSON is `{"error": …}`."""
    from ors.tasks.values import task_json

    try:
        return task_json(task)
    except Exception as exc:
        return bad_task(split, index, exc)


def bad_task(split: str, index: int, exc: Exception) -> bytes:
    """What stands in the place of a task that cannot be had: `{"error": …}` naming split, index and reason."""
    ours = isinstance(exc, (JSONValueError, TaskFileError))
    words = str(exc) if ours else f"{type(exc).__name__}: {exc}"
    return dump(
        {"error": f"task {index} of split '{split}' cannot be JSON: {words}".encode("utf-8", "replace").decode()}
    )
