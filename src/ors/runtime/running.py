"""A work under way, and where the code of a session runs."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from ors.core.failures import Failure, failure
from ors.core.ports import Latch, ToolOutcome, Work
from ors.runtime.capture import Output

if TYPE_CHECKING:
    from ors.runtime.author_loop import AuthorLoop
    from ors.runtime.lanes import Lane

__all__ = ["CUT", "Affinity", "Home", "Running"]

logger = logging.getLogger("ors.runtime")

Affinity: TypeAlias = Literal["any", "session", "class"]

CUT = failure("call_cancelled", "the call was cut before it could start")
_FINISHED = failure("episode_finished", "the episode finished before this call could start")


class Home:
    """Where the code of one session runs."""

    __slots__ = ("affinity", "author", "group", "lane")

    def __init__(self, group: str, affinity: Affinity) -> None:
        self.group = group
        self.affinity = affinity
        self.author: AuthorLoop | None = None
        self.lane: Lane | None = None


class Running(msgspec.Struct, eq=False):
    """A work under way."""

    work: Work
    home: Home
    context: contextvars.Context
    on_done: Callable[[Any], None]
    on_gone: Callable[[bool], None] | None = None
    after: Running | None = None
    latch: Latch | None = None
    next: Running | None = None
    output: Output | None = None
    continuation: Any = None
    lane: Lane | None = None
    author: AuthorLoop | None = None
    task: asyncio.Task[None] | None = None
    seconds: float | None = None
    limit: asyncio.TimerHandle | None = None
    queued: float = 0.0
    begun: float = 0.0
    cut: str | None = None
    over: bool = False
    done: bool = False
    gone: bool = False

    def awaitable(self) -> Any:
        """What the author loop awaits: the work, or what its synchronous part returned."""
        return self.continuation if self.continuation is not None else self.work.fn()

    def barred(self) -> Any:
        """What to answer instead of running: the work was cut, or the episode ended before its turn came."""
        if self.cut is not None:
            return CUT
        if self.latch is not None and self.latch.closed and self.continuation is None:
            return _FINISHED
        return None

    def ended(self, result: Any) -> Running | None:
        """The code has ended: close the latch where it ended the episode, and return what runs next."""
        if self.latch is not None and type(result) is ToolOutcome and result.finished and self.cut is None:
            self.latch.closed = True
        self.over = True
        following, self.next = self.next, None
        return following

    def discard(self) -> None:
        """It was cut before its continuation began: close that, and the coroutine that it was given to await."""
        if self.continuation is not None:
            for given in self.continuation.cr_frame.f_locals.values():
                if type(given) is CoroutineType:
                    given.close()
            self.continuation.close()

    def uncaught(self, exc: BaseException) -> Failure:
        """What an exception that no adapter caught becomes."""
        label = self.work.label
        try:
            if self.cut is None:
                logger.error("%s let %s through", label, type(exc).__name__, exc_info=exc)
            return failure("internal", f"{label}: {type(exc).__name__}: {exc}", ran="yes")
        except BaseException:  # what was raised raises when it is shown
            return failure("internal", f"{label} raised something that cannot be shown", ran="yes")
