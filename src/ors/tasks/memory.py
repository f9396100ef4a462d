"""Tasks that are in memory, or that a function makes all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ors.tasks.declared import DeclaredSource, outside
from ors.tasks.locks import OpeningLock
from ors.tasks.source import Id

__all__ = ["InMemory"]


class InMemory(DeclaredSource[Iterable[Any] | Callable[[], Iterable[Any]]]):
    """Tasks from a list, from anything with a length and positions, or from a function that returns one of them.

    A function is called when its split is first asked for, once in each process.
    """

    def __init__(
        self,
        where: Mapping[str, Iterable[Any] | Callable[[], Iterable[Any]]],
        *,
        id: Id = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(where, id=id, types=types)
        self._lock = OpeningLock()
        self._opened: dict[str, Sequence[Any]] = {}

    def count(self, split: str) -> int:
        """How many tasks a split has."""
        return len(self._tasks(split))

    def get(self, split: str, index: int) -> Any:
        """The task at an index; the object itself, not a copy."""
        tasks = self._tasks(split)
        if not 0 <= index < len(tasks):
            raise outside(split, index, len(tasks))
        return tasks[index]

    def range(self, split: str, start: int, stop: int) -> list[Any]:
        """The tasks from `start` to before `stop`."""
        tasks = self._tasks(split)
        return [tasks[index] for index in range(start, min(stop, len(tasks)))]

    def _tasks(self, split: str) -> Sequence[Any]:
        if (tasks := self._opened.get(split)) is not None:
            return tasks
        with self._lock:
            if split not in self._opened:
                self._opened[split] = _sequence(split, self.where(split))
            return self._opened[split]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": {}}


def _sequence(split: str, given: Any) -> Sequence[Any]:
    tasks = given() if callable(given) else given
    if isinstance(tasks, (str, bytes, Mapping)) or not hasattr(tasks, "__iter__"):
        raise TypeError(f"the tasks of split {split!r} are a list of tasks, not {type(tasks).__name__}")
    return tasks if hasattr(tasks, "__len__") and hasattr(tasks, "__getitem__") else list(tasks)
