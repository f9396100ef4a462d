"""The order of the calls of one session: first in, first out, by counters. A call that waits holds no thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ors.core.ports import Work

__all__ = ["Gate"]


class Gate:
    """Lets works in so that no two overlap that may not.

    A work may start when it conflicts with nothing that runs and nothing that waits before it. Two works conflict when
    either is exclusive; unless both are concurrent, also when they have the same serial key or are both synchronous.
    """

    __slots__ = ("_running", "_waiting")

    def __init__(self) -> None:
        self._running: list[Work] = []
        self._waiting: deque[tuple[Work, Callable[[], None]]] | None = None

    def enter(self, work: Work, start: Callable[[], None]) -> None:
        """Call `start` as soon as `work` may run: now, or from the `leave` of another."""
        if not self._running and not self._waiting:
            self._running.append(work)
            start()
            return
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.append((work, start))
        self._admit()

    def leave(self, work: Work) -> None:
        """`work` has ended, or was given up; those that wait for it may start."""
        self._running.remove(work)
        if self._waiting:
            self._admit()

    def withdraw(self, work: Work) -> None:
        """`work` no longer waits."""
        if self._waiting:
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not work)
            self._admit()

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""
        return not self._running and not self._waiting

    def _admit(self) -> None:
        assert self._waiting is not None
        before: list[Work] = []
        starting: list[Callable[[], None]] = []
        still: deque[tuple[Work, Callable[[], None]]] = deque()
        for work, start in self._waiting:
            if any(_conflict(work, other) for other in self._running) or any(_conflict(work, o) for o in before):
                still.append((work, start))
                before.append(work)
            else:
                self._running.append(work)
                starting.append(start)
        self._waiting = still or None
        # started after the bookkeeping: a start that fails at once leaves again from inside
        for start in starting:
            start()


def _conflict(a: Work, b: Work) -> bool:
    if a.exclusive or b.exclusive:
        return True
    if a.concurrent or b.concurrent:
        return False
    return (a.serial is not None and a.serial == b.serial) or not (a.is_async or b.is_async)
