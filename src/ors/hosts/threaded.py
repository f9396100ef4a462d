"""A host on an event loop of its own, for applications that nobody starts: mounted ones, tests in memory.

Requests may then come from any event loop, even from a new one each time; sessions outlive all of them.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from ors.core.failures import Failure
from ors.core.ports import Document, Host, OfferingSpec, Op, Opened, Outcome, Principal, Start, TaskQuery

__all__ = ["ThreadedHost"]

T = TypeVar("T")
_END_S = 60.0
logger = logging.getLogger("ors.server")


class ThreadedHost:
    """Runs the host that `make` makes in a thread, and takes requests from any event loop."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, Host]]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ors-host", daemon=True)
        self._thread.start()
        try:
            self._host: Any = asyncio.run_coroutine_threadsafe(make(), self._loop).result()
        except BaseException:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            raise
        # nobody says when such an application ends, so its sessions are torn down when the interpreter does
        atexit.register(self._end)

    def offerings(self) -> Mapping[str, OfferingSpec]:
        specs: Mapping[str, OfferingSpec] = self._host.offerings()
        return specs

    async def open(
        self, sid: str, env: str | None, start: Start, principal: Principal, key: str | None
    ) -> Opened | Failure:
        return await self._there(lambda: self._host.open(sid, env, start, principal, key))

    def perform(self, sid: str, principal: Principal, op: Op) -> asyncio.Future[Outcome]:
        async def perform() -> Outcome:
            outcome: Outcome = await self._host.perform(sid, principal, op)
            return outcome

        return asyncio.ensure_future(self._there(perform))

    async def cancel(self, sid: str, principal: Principal, call_id: str) -> Document | Failure:
        return await self._there(lambda: self._host.cancel(sid, principal, call_id))

    async def end(self, sid: str, principal: Principal, why: str = "deleted") -> Document | Failure:
        return await self._there(lambda: self._host.end(sid, principal, why))

    async def touch(self, sid: str, principal: Principal) -> Failure | None:
        async def touch() -> Failure | None:
            failed: Failure | None = await self._host.touch(sid, principal)
            return failed

        return await self._there(touch)

    async def task(self, env: str, query: TaskQuery) -> Document | Failure:
        return await self._there(lambda: self._host.task(env, query))

    async def tasks(self, env: str, split: str) -> AsyncIterator[bytes | Failure]:
        pieces = self._host.tasks(env, split)

        async def following() -> bytes | Failure | None:
            return await anext(pieces, None)

        while (piece := await self._there(following)) is not None:
            yield piece

    async def status(self) -> dict[str, Any]:
        return await self._there(lambda: self._host.status())

    def count(self, env: str) -> int:
        return int(self._host.count(env))

    def about(self, sid: str) -> dict[str, Any] | None:
        about: dict[str, Any] | None = self._host.about(sid)
        return about

    async def drain(self, grace_s: float) -> None:
        await self._there(lambda: self._host.drain(grace_s))

    async def close(self) -> None:
        """Close the host and end its thread."""
        atexit.unregister(self._end)
        await self._there(lambda: self._host.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()

    def _end(self) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._host.drain(0), self._loop).result(_END_S)
        except TimeoutError:
            logger.warning("sessions were not torn down within %g s of the end", _END_S)

    async def _there(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._loop))
