"""Deadlines of many requests at once: `asyncio.timeout` for a client that sets five of them in an episode.

The limits of an event loop share one timer, set for the earliest of them. A limit that is kept, as nearly all are, then
costs an entry in a set and no timer of its own.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

__all__ = ["Limit"]


class _Timer:
    """The timer of one event loop, and the limits that are running on it."""

    __slots__ = ("_due", "_handle", "_loop", "running")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: float | None = None
        self._handle: asyncio.TimerHandle | None = None
        self.running: set[Limit] = set()

    def watch(self, when: float) -> None:
        """Look at the limits no later than then."""
        if self._due is not None and self._due <= when:
            return
        if self._handle is not None:
            self._handle.cancel()
        self._due = when
        self._handle = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        self._due = self._handle = None
        now = self._loop.time()
        for limit in list(self.running):
            limit.expire(now)
        left = [when for limit in self.running if (when := limit.when()) is not None]
        if left:
            self.watch(min(left))


class Limit:
    """`async with Limit(seconds) as limit`: what takes longer is cancelled, and TimeoutError raised.

    seconds: None for no limit; it can be moved all the same. As with `asyncio.timeout`, a cancellation from elsewhere
    stays one.
    """

    __slots__ = ("_before", "_over", "_seconds", "_task", "_timer", "_when")

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._when: float | None = None
        self._over = False

    async def __aenter__(self) -> Limit:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a limit is set inside a task")
        loop = task.get_loop()
        self._task = task
        self._before = task.cancelling()
        timer = self._timer = _timers.get(loop) or _new_timer(loop)
        timer.running.add(self)
        if self._seconds is not None:
            self._when = when = loop.time() + self._seconds
            timer.watch(when)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, where: TracebackType | None
    ) -> None:
        self._timer.running.discard(self)
        if self._over and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from exc

    def when(self) -> float | None:
        """When it is over, by the loop's clock; None without a limit, or when it is over already."""
        return None if self._over else self._when

    def reschedule(self, when: float) -> None:
        """Move the end of it. Too late when it is over."""
        if not self._over:
            self._when = when
            self._timer.watch(when)

    def expire(self, now: float) -> None:
        """Cancel what takes too long."""
        if self._when is not None and self._when <= now and not self._over:
            self._over = True
            self._task.cancel()


def _new_timer(loop: asyncio.AbstractEventLoop) -> _Timer:
    for other in [other for other in list(_timers) if other.is_closed()]:
        _timers.pop(other, None)
    timer = _timers[loop] = _Timer(loop)
    return timer


_timers: dict[asyncio.AbstractEventLoop, _Timer] = {}
