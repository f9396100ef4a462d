"""Sources made of other sources: several as one, some of the tasks, something else made of each."""

from __future__ import annotations

import inspect
from array import array
from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass, field
from typing import Any

from ors.tasks.declared import outside
from ors.tasks.either import either
from ors.tasks.locks import OpeningLock
from ors.tasks.source import Id, TaskSource, as_source

__all__ = ["Filter", "Map", "Union", "union"]

_CHUNK = 256
_MOST_MISSES = 1_000_000


def union(*sources: Any) -> Union:
    """The splits of several sources; the tasks of a split that several have stand one after another."""
    return Union(*sources)


class Union(TaskSource):
    """Several sources as one. Of those that have the same split, only the last may have no count."""

    def __init__(self, *sources: Any) -> None:
        self._sources = [as_source(source) for source in sources]

    @property
    def has_ids(self) -> bool:
        """Whether the keys of all parts are ids."""
        return all(source.has_ids for source in self._sources)

    @either
    def splits(self) -> Generator[Any, Any, Any]:
        """The splits of all parts, each once, as the first part that has it names it."""
        found: dict[str, Any] = {}
        for source in self._sources:
            for split in (yield source.splits()):
                found.setdefault(_name(split), split)
        return list(found.values())

    @either
    def count(self, split: str) -> Generator[Any, Any, Any]:
        """The sum of the parts' counts; None where one has none."""
        total = 0
        for source in (yield self._parts(split)):
            count = yield source.count(split)
            if count is None:
                return None
            total += count
        return total

    @either
    def get(self, split: str, index: int) -> Generator[Any, Any, Any]:
        """The task at an index."""
        source, place = yield self._find(split, index)
        return (yield source.get(split, place))

    @either
    def key(self, split: str, index: int) -> Generator[Any, Any, Any]:
        """The key that the task has in its part."""
        source, place = yield self._find(split, index)
        return (yield source.key(split, place))

    @either
    def range(self, split: str, start: int, stop: int) -> Generator[Any, Any, Any]:
        """The tasks from `start` to before `stop`, from as many parts as they are in."""
        found: list[Any] = []
        for source, before, first, last in (yield self._spans(split, start, stop)):
            found += yield source.range(split, first - before, last - before)
        return found

    @either
    def texts_as(self, split: str, start: int, stop: int, first: int) -> Generator[Any, Any, Any]:
        """The parts' texts."""
        found: list[bytes] = []
        for source, before, begin, end in (yield self._spans(split, start, stop)):
            found += yield source.texts_as(split, begin - before, end - before, begin - start + first)
        return found

    def version(self, split: str) -> Hashable:
        """The parts' versions."""
        return tuple(source.version(split) for source in self._sources if split in _names(source))

    def tag(self, split: str) -> Hashable:
        """The parts' tags; None where one has none."""
        tags = tuple(source.tag(split) for source in self._sources if split in _names(source))
        return tags if tags and None not in tags else None

    @either
    def _parts(self, split: str) -> Generator[Any, Any, Any]:
        found = []
        for source in self._sources:
            if split in map(_name, (yield source.splits())):
                found.append(source)
        if not found:
            raise KeyError(f"no source of the union has the split {split!r:.200}")
        return found

    @either
    def _find(self, split: str, index: int) -> Generator[Any, Any, Any]:
        for source, before, first, _ in (yield self._spans(split, index, index + 1)):
            return source, first - before
        raise outside(split, index, (yield self.count(split)))

    @either
    def _spans(self, split: str, start: int, stop: int) -> Generator[Any, Any, Any]:
        """Which part has which of these indices: (part, how many stand before it, first, one past the last)."""
        before, found = 0, []
        parts = yield self._parts(split)
        for number, source in enumerate(parts, 1):
            if before >= stop:
                break
            count = yield source.count(split)
            if count is None and number < len(parts):
                raise ValueError(
                    f"part {number} of the union has no count of split {split!r}; only the last may have none"
                )
            first, last = max(start, before), stop if count is None else min(stop, before + count)
            if 0 <= first < last:
                found.append((source, before, first, last))
            before += count or 0
        return found


class Map(TaskSource):
    """What a function makes of each task of a source. It may be asynchronous, and may change the dict it is given."""

    def __init__(self, source: Any, fn: Callable[[Any], Any], *, id: Id = None) -> None:
        self._source = as_source(source)
        self._fn = fn
        self.id = id

    @property
    def has_ids(self) -> bool:
        """Whether keys are ids, its own or the source's."""
        return self.id is not None or self._source.has_ids

    def splits(self) -> Any:
        """The source's."""
        return self._source.splits()

    def count(self, split: str) -> Any:
        """The source's."""
        return self._source.count(split)

    def version(self, split: str) -> Hashable:
        """The source's."""
        return self._source.version(split)

    def tag(self, split: str) -> Hashable:
        """The source's."""
        return self._source.tag(split)

    @either
    def get(self, split: str, index: int) -> Generator[Any, Any, Any]:
        """What the function makes of the task at an index."""
        return (yield self._fn(_own((yield self._source.get(split, index)))))

    @either
    def range(self, split: str, start: int, stop: int) -> Generator[Any, Any, Any]:
        """What the function makes of the tasks from `start` to before `stop`."""
        found: list[Any] = []
        for task in (yield self._source.range(split, start, stop)):
            found.append((yield self._fn(_own(task))))
        return found

    @either
    def key(self, split: str, index: int) -> Generator[Any, Any, Any]:
        """The id where the source has ids, else the hash of what the function makes."""
        if self.id is None and self._source.has_ids:
            return (yield self._source.key(split, index))
        return (yield super().key(split, index))


def _own(task: Any) -> Any:
    return dict(task) if type(task) is dict else task


@dataclass
class _Scan:
    """The places of the fitting tasks among the first `scanned` ones of a split."""

    version: Hashable
    places: array[int] = field(default_factory=lambda: array("Q"))
    scanned: int = 0
    ended: bool = False


class Filter(TaskSource):
    """The tasks of a source that fit. The source is read as far as is needed to know; 8 bytes are kept for each fit.

    A task that cannot be read keeps its place, so that its error is seen.
    """

    def __init__(self, source: Any, fn: Callable[[Any], Any]) -> None:
        self._source = as_source(source)
        self._fn = fn
        self._lock = OpeningLock()
        self._scans: dict[str, _Scan] = {}

    @property
    def has_ids(self) -> bool:
        """Whether the source has ids."""
        return self._source.has_ids

    def splits(self) -> Any:
        """The source's."""
        return self._source.splits()

    @either
    def count(self, split: str) -> Generator[Any, Any, Any]:
        """How many tasks fit, for which all are read; None where the source has no count."""
        if (yield self._source.count(split)) is None:
            return None
        return len((yield self._scan(split, None)))

    @either
    def get(self, split: str, index: int) -> Generator[Any, Any, Any]:
        """The task at an index among those that fit."""
        return (yield self._source.get(split, (yield self._place(split, index))))

    @either
    def key(self, split: str, index: int) -> Generator[Any, Any, Any]:
        """The key of the task in the source."""
        return (yield self._source.key(split, (yield self._place(split, index))))

    @either
    def range(self, split: str, start: int, stop: int) -> Generator[Any, Any, Any]:
        """The tasks from `start` to before `stop` among those that fit."""
        found: list[Any] = []
        for place in (yield self._scan(split, stop))[start:stop]:
            found.append((yield self._source.get(split, place)))
        return found

    def version(self, split: str) -> Hashable:
        """The source's."""
        return self._source.version(split)

    def tag(self, split: str) -> Hashable:
        """The source's."""
        return self._source.tag(split)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_scans": {}}

    @either
    def _place(self, split: str, index: int) -> Generator[Any, Any, Any]:
        places = yield self._scan(split, index + 1) if index >= 0 else ()
        if not 0 <= index < len(places):
            raise outside(split, index, None if index < 0 else len(places))
        return places[index]

    @either
    def _scan(self, split: str, wanted: int | None) -> Generator[Any, Any, Any]:
        """The places of the first `wanted` tasks that fit, or of all."""
        version = self._source.version(split)
        scan = self._scans.get(split)
        if scan is None or scan.version != version:
            scan = self._scans[split] = _Scan(version)
        misses = 0
        while not scan.ended and (wanted is None or len(scan.places) < wanted):
            start = scan.scanned
            tasks, ended = yield self._chunk(split, start)
            fits = array("Q")
            for place, task in enumerate(tasks, start):
                if isinstance(task, _Unreadable) or self._fits(task, split, place):
                    fits.append(place)
            misses = 0 if fits else misses + len(tasks)
            with self._lock:
                # another thread may have read the same ones meanwhile
                if scan.scanned == start:
                    scan.places += fits
                    scan.scanned, scan.ended = start + len(tasks), ended
            if wanted is not None and misses >= _MOST_MISSES:
                raise ValueError(f"none of {misses} tasks of split {split!r} one after another fits the filter")
        return scan.places

    @either
    def _chunk(self, split: str, start: int) -> Generator[Any, Any, Any]:
        """The next tasks, and whether they are the last."""
        count = yield self._source.count(split)
        stop = start + _CHUNK if count is None else min(start + _CHUNK, count)
        try:
            tasks = list((yield self._source.range(split, start, stop)))
        except Exception:
            tasks = []
            for index in range(start, stop):
                try:
                    tasks.append((yield self._source.get(split, index)))
                except IndexError:
                    break
                except Exception:
                    tasks.append(_Unreadable())
        return tasks, start + len(tasks) < stop or stop == count

    def _fits(self, task: Any, split: str, place: int) -> bool:
        try:
            fits = self._fn(task)
        except Exception as exc:
            words = f"the filter failed on task {place} of split {split!r}: {type(exc).__name__}: {exc}"
            raise ValueError(words) from exc
        if inspect.isawaitable(fits):
            raise TypeError("the function of a filter is not asynchronous")
        return bool(fits)


class _Unreadable:
    """In the place of a task that cannot be had."""


def _name(split: Any) -> str:
    if isinstance(split, str):
        return split
    return str(split["name"] if isinstance(split, dict) else split.name)


def _names(source: TaskSource) -> list[str]:
    splits = source.splits()
    if inspect.isawaitable(splits):
        splits.close()  # type: ignore[attr-defined]
        return []
    return [_name(split) for split in splits]
