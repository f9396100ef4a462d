"""The loop on which authors' asynchronous code runs: one thread, away from the server's own loop.

What blocks it (an `async def` with a blocking body) delays the other asynchronous code of the same offering, never the
server. A loop that stays blocked is written off and another takes its place; see `watchdog`.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import itertools
import logging
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from types import CoroutineType, coroutine
from typing import TYPE_CHECKING, Any

from ors.runtime.capture import OUTPUT
from ors.runtime.mailbox import Mailbox

if TYPE_CHECKING:
    from ors.runtime.running import Running

__all__ = ["AuthorLoop"]

logger = logging.getLogger("ors.runtime")
_AT_A_STRETCH = 256
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
        self._farewell: asyncio.Task[None] | None = None
        self._pending: set[Running] = set()
        self._ending = False
        self.loop = _new_loop()
        self._ready: deque[Running] = deque()
        self._carrier: asyncio.Task[None] | None = None
        self.lost = False
        self.answered = 0.0
        self._asked = 0.0
        self._inbox: Mailbox[Running] = Mailbox(self.loop, self._begin)
        self._outbox: Mailbox[tuple[Running, Any]] = Mailbox(owner, self._deliver)
        _alive.add(self)
        self.thread = threading.Thread(target=self._run, name=f"ors-author-{name}-{next(_numbers)}", daemon=True)
        try:
            self.thread.start()
        except RuntimeError:
            self.loop.close()
            raise

    def submit(self, running: Running) -> None:
        """Run an asynchronous work, or the rest of a synchronous one that returned something to await."""
        self._pending.add(running)
        self._inbox.post_from(self._owner, running)

    def cancel(self, running: Running) -> None:
        """Cancel a work's task, if it has begun; one that has not will find that it is cut."""
        self._tell(self._cancel, running)

    def abandon(self, running: Running) -> None:
        """Let what comes after a work begin although the work does not end."""
        self._tell(self._abandon, running)

    def leave(self) -> list[Running]:
        """Everything that was submitted and has not come back; nothing more is known of it from here on."""
        pending, self._pending = list(self._pending), set()
        return pending

    def probe(self, now: float) -> float:
        """Ask for a sign of life; returns for how many seconds the last request has been unanswered."""
        if self.answered >= self._asked:
            self._asked = now
            self.loop.call_soon_threadsafe(self._answer)
            return 0.0
        return now - self._asked

    def stop(self) -> None:
        """Cancel what still runs and let the thread end; `join` waits for it."""
        self._tell(self._stop)

    def _tell(self, what: Callable[..., None], *args: Any) -> None:
        try:
            self.loop.call_soon_threadsafe(what, *args)
        except RuntimeError:  # the loop has ended
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
            self._ready.append(running)
            if self._carrier is None:
                self._carry()

    def _carry(self) -> None:
        self._carrier = self.loop.create_task(self._carry_on())

    async def _carry_on(self) -> None:
        """Run what is ready, one after another, for as long as nothing has to wait.

        A work that waits keeps this task for itself; another task then carries the rest. So works that end without
        waiting cost no task each, and `asyncio.current_task()` is one and the same for all of a work. A task that a
        work still refers to when it has ended carries no other: whoever cancels it then must not meet a stranger.
        """
        task, ready = self._carrier, self._ready
        assert task is not None
        self.loop.call_soon(self._relieve, task)
        carried, references = 0, sys.getrefcount(task)
        while ready and self._carrier is task and carried < _AT_A_STRETCH and not task.cancelling():
            carried += 1
            running = ready.popleft()
            result = running.barred()
            if result is None:
                running.task = task
                if not running.begun:
                    running.begun = time.monotonic()
                context = running.context
                try:
                    work = context.run(_open, running)
                    try:
                        waits_for = context.run(work.send, None)
                    except StopIteration as stop:
                        result = stop.value
                    else:
                        result = await _rest(context, work, waits_for)
                except BaseException as exc:
                    # nothing an author raises may reach the loop: SystemExit would stop it, CancelledError would go
                    # lost
                    result = running.uncaught(exc)
                running.task = None
            else:
                running.discard()
            # what comes after the rest of a synchronous work is a lane's, and is seen to where the result is delivered
            following = running.ended(result) if running.work.is_async else None
            if following is not None:
                ready.appendleft(following)
                if self._carrier is None:
                    self._carry()
            self._outbox.post_from(self.loop, (running, result))
            if sys.getrefcount(task) > references:
                break
        self._relieve(task)

    def _relieve(self, task: asyncio.Task[None]) -> None:
        """A task carries no further: it has ended, or a work waits in it. Another one takes the rest."""
        if self._carrier is task:
            self._carrier = None
            if self._ready:
                self._carry()

    def _cancel(self, running: Running) -> None:
        # one that has not begun sees for itself that it is cut; of the others only those that wait are met here
        if running.task is not None and not running.over:
            self._relieve(running.task)
            running.task.cancel()

    def _abandon(self, running: Running) -> None:
        if not running.over and (following := running.ended(None)) is not None:
            self._ready.append(following)
            if self._carrier is None:
                self._carry()

    def _deliver(self, item: tuple[Running, Any]) -> None:
        running, result = item
        self._pending.discard(running)
        self._finished(running, result)

    def _stop(self) -> None:
        self._ending = True
        self._farewell = self.loop.create_task(self._end())

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=0.5)
        self.loop.stop()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(_log_exception)
        while True:
            try:
                self.loop.run_forever()
                if self._ending:
                    break
                logger.error("author code stopped its event loop; the loop goes on")
            except BaseException:  # a task that authors made themselves raised SystemExit or KeyboardInterrupt
                logger.exception("author code raised out of a task of its own; its event loop goes on")
        try:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        except BaseException:
            logger.exception("closing asynchronous generators of author code failed")
        self.loop.close()


def _open(running: Running) -> Coroutine[Any, Any, Any]:
    OUTPUT.set(running.output)
    started = running.awaitable()
    return started if type(started) is CoroutineType else _settle(started)


async def _settle(awaitable: Any) -> Any:
    return await awaitable


@coroutine
def _rest(context: contextvars.Context, work: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    """Await the rest of a work in a context of its own, whatever task it is awaited in."""
    while True:
        step: Callable[..., Any]
        try:
            value = yield waits_for
            step = work.send
        except GeneratorExit:
            context.run(work.close)
            raise
        except BaseException as exc:
            step, value = work.throw, exc
        try:
            waits_for = context.run(step, value)
        except StopIteration as stop:
            return stop.value


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
