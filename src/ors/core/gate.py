"""The order of the calls of one session: first in, first out, by counters. A call that waits holds no thread.

An exclusive work waits for all that run and holds all that come after it. The rest are let in at once; those that may
not overlap (calls of one tool, synchronous calls) form a chain, whose links the runtime runs one after another on the
thread they belong to, without asking here in between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ors.core.ports import Work

__all__ = ["Gate"]

_SYNCHRONOUS = "\0"


class Gate:
    """Lets works in. `enter` calls `start` with what the work must run after, if anything."""

    __slots__ = ("_count", "_exclusive", "_letting", "_tails", "_waiting")

    def __init__(self) -> None:
        self._count = 0
        self._exclusive = False
        self._letting = False
        self._tails: dict[str, Any] | None = None
        self._waiting: deque[tuple[Work, Callable[[Any], Any]]] | None = None

    def enter(self, work: Work, start: Callable[[Any], Any]) -> None:
        """Call `start(after)` as soon as `work` may be handed to the runtime: now, or from the `leave` of another.

        What `start` returns is what the next of the chain runs after.
        """
        if self._waiting or self._exclusive or (work.exclusive and self._count):
            if self._waiting is None:
                self._waiting = deque()
            self._waiting.append((work, start))
        else:
            self._let_in(work, start)

    def leave(self, work: Work, link: Any = None) -> None:
        """`work` has ended, or was given up; those that wait for it may start."""
        self._count -= 1
        if work.exclusive:
            self._exclusive = False
        elif self._tails is not None and link is not None:
            key = _chain(work)
            if key is not None and self._tails.get(key) is link:
                del self._tails[key]
                self._tails = self._tails or None
        if self._waiting and not self._letting:
            # one whose `start` leaves at once comes back here: the loop goes on instead of a stack that grows
            self._letting = True
            try:
                while self._waiting:
                    head, start = self._waiting[0]
                    if self._exclusive or (head.exclusive and self._count):
                        break
                    self._waiting.popleft()
                    self._let_in(head, start)
            finally:
                self._letting = False

    def withdraw(self, work: Work) -> None:
        """`work` no longer waits; what it held back may start."""
        if self._waiting:
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not work)
            self._count += 1
            self.leave(Work(lambda: None, label="", exclusive=False))

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""
        return not self._count and not self._waiting

    def _let_in(self, work: Work, start: Callable[[Any], Any]) -> None:
        self._count += 1
        if work.exclusive:
            self._exclusive = True
            start(None)
            return
        key = _chain(work)
        if key is None:
            start(None)
            return
        tails = self._tails
        if tails is None:
            tails = self._tails = {}
        before = tails.get(key)
        link = start(before)
        if link is not None:
            tails[key] = link


def _chain(work: Work) -> str | None:
    """The chain that a work belongs to; None when it overlaps with everything."""
    if work.concurrent:
        return None
    return work.serial if work.is_async else _SYNCHRONOUS
