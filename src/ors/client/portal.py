"""One thread with an event loop for each process: synchronous callers and pings live there."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["Portal", "current_loop", "portal"]

_T = TypeVar("_T")
_STOP_S = 10.0


class Portal:
    """A thread that runs coroutines for others. It starts when it is made."""

    def __init__(self) -> None:
        self.loop = _new_loop()
        self._thread = threading.Thread(target=self._run, name="ors-client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine there and wait for it. An interrupt here cancels it there."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("the synchronous client cannot be used inside its own event loop")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            # also when the waiting thread is interrupted: nobody would read the result
            future.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        """Run a coroutine there without waiting."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def stop(self) -> None:
        """Cancel what runs, close every connection, end the thread."""
        if not self._thread.is_alive():
            return
        try:
            self.submit(self._end()).result(_STOP_S)
        except (concurrent.futures.TimeoutError, concurrent.futures.CancelledError, RuntimeError):
            pass
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_STOP_S)
        if not self._thread.is_alive():
            self.loop.close()

    async def _end(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=_STOP_S / 2)
        # the connections of this loop close with its asynchronous generators
        await self.loop.shutdown_asyncgens()


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


_lock = threading.Lock()
_portal: Portal | None = None
_of_the_parent: list[Portal] = []


def portal() -> Portal:
    """The portal of this process."""
    global _portal
    made = _portal
    if made is None:
        with _lock:
            made = _portal
            if made is None:
                made = _portal = Portal()
    return made


def current_loop() -> asyncio.AbstractEventLoop | None:
    """The loop of this process's portal, if it has one."""
    return None if _portal is None else _portal.loop


def _forget() -> None:
    """In a forked child there is no such thread. The loop is kept: closing it would reach into the parent's."""
    global _lock, _portal
    _lock = threading.Lock()
    if _portal is not None:
        _of_the_parent.append(_portal)
    _portal = None


def _stop() -> None:
    global _portal
    made, _portal = _portal, None
    if made is not None:
        made.stop()


atexit.register(_stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
