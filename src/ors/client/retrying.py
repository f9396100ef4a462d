"""When a request is sent again: bounded attempts, jitter, `Retry-After`, one deadline over all, every cause kept."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TypeVar

from ors.errors import ClientError, DeadlineExceeded, MaxRetriesError

__all__ = ["Attempts", "Retry", "may_pass"]

_PASSING = frozenset((408, 425, 429, 502, 503, 504))
_CAUSES_KEPT = 10
_E = TypeVar("_E", bound=MaxRetriesError)


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failed request is sent again, and after how long.

    attempts: further attempts after consecutive failures. first: seconds before the second attempt, doubled for each
    further one. most: the longest of these waits. Every wait is shortened by up to a half at random, so that clients
    that failed together do not come back together. Where a server says when to come back, that is waited for, and
    only the deadline ends it.
    """

    attempts: int = 8
    first: float = 0.25
    most: float = 8.0


def may_pass(error: ClientError) -> bool:
    """Whether the same request can succeed later, going by an answer's status and the server's own word."""
    return error.status in _PASSING and error.retryable is not False


class Attempts:
    """The failures of one request. Made at the first of them, so that what goes well pays nothing."""

    __slots__ = ("_causes", "_deadline", "_failed", "_retry", "_what")

    def __init__(self, retry: Retry, what: str, deadline: float | None) -> None:
        self._retry = retry
        self._what = what
        self._deadline = deadline
        self._failed = 0
        self._causes: list[BaseException] = []

    def forget(self) -> None:
        """The attempt before came far enough that the next failure is the first of its row."""
        self._failed = 0

    def note(self, cause: BaseException) -> None:
        """Keep a cause. The same words in a row are kept once."""
        if not self._causes or str(self._causes[-1]) != str(cause):
            self._causes.append(cause)
            del self._causes[1:-_CAUSES_KEPT]

    async def again(self, cause: Exception, sid: str | None) -> None:
        """Wait before the next attempt. Raises MaxRetriesError or DeadlineExceeded when there is none."""
        self.note(cause)
        told = cause.retry_after if isinstance(cause, ClientError) else None
        if told is None:
            self._failed += 1
            if self._failed > self._retry.attempts:
                raise self._end(MaxRetriesError, f"failed {self._failed} times in a row", sid) from cause
            most = min(self._retry.most, self._retry.first * 2.0 ** min(self._failed - 1, 60))
            wait = most * (0.5 + random.random() / 2)  # noqa: S311 - no secret
        else:
            wait = told + min(1.0, told / 4) * random.random()  # noqa: S311
        if self._deadline is not None and asyncio.get_running_loop().time() + wait > self._deadline:
            raise self.overdue(sid) from cause
        await asyncio.sleep(wait)

    def overdue(self, sid: str | None) -> DeadlineExceeded:
        """The error for a deadline that has passed."""
        return self._end(DeadlineExceeded, "not done within its time", sid)

    def _end(self, kind: type[_E], words: str, sid: str | None) -> _E:
        last = self._causes[-1] if self._causes else None
        error = kind(
            f"{self._what}: {words}" + (f"; the last failure: {last}" if last is not None else ""),
            sid=sid,
            kind="deadline" if kind is DeadlineExceeded else "retries",
            status=getattr(last, "status", None),
        )
        for cause in self._causes[:-1]:
            error.add_note(f"before: {type(cause).__name__}: {cause}")
        error.__cause__ = last
        return error
