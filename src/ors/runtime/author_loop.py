"""The loop on which authors' asynchronous code runs: one thread, away from the server's own loop.

What blocks it (an `async def` with a blocking body) delays the other asynchronous code of the same offering, never the
server. A loop that stays blocked is written off and another takes its place; see `watchdog`.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ors.runtime.capture import OUTPUT
from ors.runtime.mailbox import Mailbox

if TYPE_CHECKING:
    from ors.runtime.runtime import Running

__all__ = ["AuthorLoop"]

logger = logging.getLogger("ors.runtime")
_numbers = itertools.count(1)
_alive: weakref.WeakSet[AuthorLoop] = weakref.WeakSet()


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class AuthorLoop:
    """One thread that runs one event loop. All methods but the private ones are called on the owner's loop."""

    def __init__(self, owner: asyncio.AbstractEventLoop, name: str, finished: Callable[[Running, Any], None]) -> None:
        self._owner = owner
        self._finished = finished
        self._tasks: set[asyncio.Task[None]] = set()
        self.loop = _new_loop()
        self.lost = False
        self.answered = 0.0
        self._asked = 0.0
        self._inbox: Mailbox[Running] = Mailbox(self.loop, self._begin)
        self._outbox: Mailbox[tuple[Running, Any]] = Mailbox(owner, self._deliver)
        _alive.add(self)
        self.thread = threading.Thread(target=self._run, name=f"ors-author-{name}-{next(_numbers)}", daemon=True)
        self.thread.start()

    def submit(self, running: Running) -> None:
        """Run an asynchronous work."""
        self._inbox.post_from(self._owner, running)

    def submit_from_lane(self, running: Running) -> None:
        """Run what a lane's work returned to await; called on the lane's thread."""
        self._inbox.post(running)

    def cancel(self, running: Running) -> None:
        """Cancel a work's task, if it has begun."""
        self.loop.call_soon_threadsafe(self._cancel, running)

    def probe(self, now: float) -> float:
        """Ask for a sign of life; returns for how many seconds the last request has been unanswered."""
        if self.answered >= self._asked:
            self._asked = now
            self.loop.call_soon_threadsafe(self._answer)
            return 0.0
        return now - self._asked

    def stop(self) -> None:
        """Cancel what still runs and let the thread end; `join` waits for it."""
        try:
            self.loop.call_soon_threadsafe(self._stop)
        except RuntimeError:
            pass

    def join(self, timeout: float) -> None:
        """Wait for the thread; one whose loop is blocked for good is not waited for."""
        if not self.lost:
            self.thread.join(timeout)

    def _answer(self) -> None:
        self.answered = time.monotonic()

    def _begin(self, running: Running) -> None:
        before, running.after = running.after, None
        if before is not None and not before.over:
            before.next = running
        else:
            self._start(running)

    def _start(self, running: Running | None) -> None:
        while running is not None:
            if (barred := running.barred()) is None:
                running.task = self.loop.create_task(self._attend(running), context=running.context)
                self._tasks.add(running.task)
                return
            running.discard()
            following = running.ended(barred)
            self._outbox.post_from(self.loop, (running, barred))
            running = following

    async def _attend(self, running: Running) -> None:
        OUTPUT.set(running.output)
        try:
            result = await running.awaitable()
        except BaseException as exc:
            # nothing an author raises may reach the loop: SystemExit would stop it, CancelledError would be lost
            result = running.uncaught(exc)
        self._tasks.discard(running.task)
        if running.work.is_async:
            self._start(running.ended(result))
        self._outbox.post_from(self.loop, (running, result))

    def _cancel(self, running: Running) -> None:
        if running.task is not None:
            # not at once: a task that is cancelled before its first step never enters its body, and would never answer
            self.loop.call_soon(running.task.cancel)

    def _deliver(self, item: tuple[Running, Any]) -> None:
        self._finished(*item)

    def _stop(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.call_soon(self.loop.call_later, 0.05, self.loop.stop)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(_log_exception)
        while True:
            try:
                self.loop.run_forever()
                break
            except BaseException:  # a task that authors made themselves raised SystemExit or KeyboardInterrupt
                logger.exception("author code raised out of a task of its own; its event loop goes on")
        try:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        except BaseException:
            logger.exception("closing asynchronous generators of author code failed")
        self.loop.close()


@atexit.register
def _end_all() -> None:
    """A uvloop that still runs when the interpreter is gone crashes the process."""
    authors = list(_alive)
    for author in authors:
        author.stop()
    for author in authors:
        author.join(1.0)


def _log_exception(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    exc = context.get("exception")
    logger.error("author code: %s", context.get("message", "an error"), exc_info=exc if exc is not None else None)
