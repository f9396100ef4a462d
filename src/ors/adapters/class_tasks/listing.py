"""A list of tasks in pieces, each of them short work for one thread.

How many tasks a piece has follows from how long the ones before took: while a piece is made, the threads of other
sessions wait for the interpreter, so it is over soon; and no piece is larger than what a server wants to hold.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from typing import Any

from ors.tasks.either import either

__all__ = ["Changed", "Listing", "iterated", "picked"]

_TARGET_S = 0.0004
_TARGET_BYTES = 128 << 10
_MOST = 8192
_GROWTH = 8

Texts = Callable[[int, int], Any]
"""The JSON texts of the tasks from one place to before another, or something to await for them."""


class Changed(Exception):
    """The tasks are no longer those of which a part has been listed."""


class Listing:
    """The tasks from `start` to before `stop`, or to where they end; each `next` is work for a thread.

    truncated: whether there are more of them than are listed; None: that is looked for at the end. version: what must
    stay the same from the first piece to the last.
    """

    def __init__(
        self,
        texts: Texts,
        start: int,
        stop: int | None,
        *,
        size: int = 1,
        truncated: bool | None = False,
        version: Callable[[], Hashable] | None = None,
    ) -> None:
        self._texts = texts
        self._at = start
        self._stop = stop
        self._size = size
        self.truncated = truncated
        self._version = version
        self._first_version = version() if version is not None else None

    @either
    def next(self) -> Generator[Any, Any, Any]:
        """Some tasks, joined by commas, and whether there may be more. Raises Changed, and what the source raises."""
        wanted = self._size if self._stop is None else min(self._size, self._stop - self._at)
        begun = time.perf_counter()
        texts = (yield self._texts(self._at, self._at + wanted)) if wanted > 0 else []
        self._check_version()
        body = b",".join(texts)
        self._at += len(texts)
        self._adapt(time.perf_counter() - begun, len(body))
        more = wanted > 0 and len(texts) == wanted and self._at != self._stop
        if not more and self.truncated is None:
            self.truncated = bool((yield self._texts(self._at, self._at + 1)))
        return body, more

    def _adapt(self, seconds: float, size: int) -> None:
        factor = min(_GROWTH, _TARGET_S / max(seconds, 1e-9), _TARGET_BYTES / max(size, 1))
        self._size = max(1, min(int(self._size * factor), _MOST))

    def _check_version(self) -> None:
        if self._version is not None and self._version() != self._first_version:
            raise Changed("the tasks were changed while they were listed")


def picked(tasks: Sequence[Any], first: int, encode: Callable[[Callable[[], Any], int], bytes]) -> Texts:
    """The texts of a sequence whose first task has the index `first`, each read by itself."""

    def texts(start: int, stop: int) -> list[bytes]:
        last = min(stop - first, len(tasks))
        return [encode(lambda at=at: tasks[at], first + at) for at in range(start - first, last)]  # type: ignore[misc]

    return texts


def iterated(tasks: Iterator[Any], encode: Callable[[Callable[[], Any], int], bytes]) -> Texts:
    """The texts of what can only be read from its beginning, one piece after the other."""

    def texts(start: int, stop: int) -> list[bytes]:
        found: list[bytes] = []
        for index, task in zip(range(start, stop), tasks, strict=False):
            found.append(encode(lambda task=task: task, index))  # type: ignore[misc]
        return found

    return texts
