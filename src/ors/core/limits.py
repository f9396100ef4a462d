"""What all sessions of an owner process share: time limits, counts, and the results kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ors.core.calls import ResultStore

__all__ = ["Limits"]


class Limits:
    """Times are in seconds. `calls` counts those that run or wait, over all sessions."""

    __slots__ = ("call_s", "calls", "clock", "max_calls", "quiet", "retry_after", "setup_s", "store", "teardown_s")

    def __init__(
        self,
        clock: Callable[[], float],
        store: ResultStore,
        *,
        max_calls: int = 100_000,
        call_s: float | None = None,
        setup_s: float | None = None,
        teardown_s: float = 30.0,
        retry_after: float = 2.0,
    ) -> None:
        self.clock = clock
        self.store = store
        self.max_calls = max_calls
        self.call_s = call_s
        self.setup_s = setup_s
        self.teardown_s = teardown_s
        self.retry_after = retry_after
        self.calls = 0
        self.quiet: asyncio.Future[None] | None = None

    def leave(self) -> None:
        """A call has ended; whoever waits for the last one is told."""
        self.calls -= 1
        if self.quiet is not None and self.calls == 0 and not self.quiet.done():
            self.quiet.set_result(None)
