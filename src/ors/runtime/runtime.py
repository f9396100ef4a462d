"""Running works: each on the thread its session's home says, with an optional time limit, exactly one answer for each.

A work's time limit is kept on the owner's loop. When it is over the caller is answered at once; the code itself is then
asked to stop (a task is cancelled, a thread gets one CutError) and, if it has not ended after a grace, is a zombie: it
is counted and named, what it held in the session is released, and its thread is left alone.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import Callable
from types import CoroutineType
from typing import Any

import msgspec

from ors.core.failures import Failure, failure
from ors.core.ports import Latch, Work
from ors.runtime.author_loop import AuthorLoop
from ors.runtime.capture import Output
from ors.runtime.lanes import Lane, Lanes
from ors.runtime.mailbox import Mailbox
from ors.runtime.running import CUT, Affinity, Home, Running
from ors.runtime.watchdog import Watchdog

__all__ = ["Runtime", "RuntimeOptions"]

logger = logging.getLogger("ors.runtime")


class RuntimeOptions(msgspec.Struct, frozen=True):
    """grace_s: how long cut code has to end. blocked_warn_s: an author loop blocked this long is named in the log.
    blocked_limit_s: blocked this long, it is written off. max_threads: of lanes."""

    grace_s: float = 5.0
    blocked_warn_s: float = 1.0
    blocked_limit_s: float = 60.0
    max_threads: int = 4096


class Runtime:
    """The threads of one owner process. Every method is called on the owner's loop."""

    def __init__(self, options: RuntimeOptions | None = None, *, capture: bool = False) -> None:
        self.options = options or RuntimeOptions()
        self._loop = asyncio.get_running_loop()
        self._capture = capture
        self._authors: dict[str, AuthorLoop] = {}
        self._lanes = Lanes(self._lane_finished, max_threads=self.options.max_threads)
        self._chaining = threading.Lock()
        self._class_lanes: dict[str, Lane] = {}
        self._flush_due = False
        self._mail: Mailbox[tuple[Running, Any]] = Mailbox(self._loop, lambda item: self._finished(*item))
        self._watchdog = Watchdog(self._loop, self.options)
        self._watchdog.on_lost(self._lost)
        self._on_blocked: Callable[[AuthorLoop, str], Any] | None = None
        self._blocked: dict[AuthorLoop, str] = {}
        self.zombies: dict[Running, str] = {}
        self.active = 0

    def home(self, group: str, affinity: Affinity) -> Home:
        """A home for a session of the offering `group`."""
        return Home(group, affinity)

    def start(
        self,
        work: Work,
        home: Home,
        context: contextvars.Context,
        on_done: Callable[[Any], None],
        *,
        on_gone: Callable[[bool], None] | None = None,
        limit: float | None = None,
        after: Running | None = None,
        latch: Latch | None = None,
    ) -> Running:
        """Run a work. `on_done` gets its outcome, once, on the owner's loop.

        It starts when `after` has ended, on the same thread, and not at all once `latch` is closed. Its time limit
        counts from when its code begins, not while it waits for its turn.

        `on_gone` is called once when the code has really ended (True), or has become a zombie (False): what it held
        may then be released. Without a cut both come together.
        """
        running = Running(work, home, context.copy(), on_done, on_gone, after, latch)
        if self._capture:
            running.output = Output()
        self.active += 1
        if not work.is_async:
            self._submit_to_lane(running)
        elif (author := home.author) is not None and not author.lost:
            running.author = author
            author.submit(running)
        else:
            self._submit_to_author(running)
        seconds = limit if limit is not None else work.timeout
        if seconds is not None:
            running.seconds = seconds
            running.limit = self._loop.call_later(seconds, self._over_time, running)
        return running

    def cut(self, running: Running, answer: Failure) -> None:
        """Answer for a work now and ask its code to stop."""
        if running.cut is not None or running.done:
            return
        running.cut = answer.kind
        self._answer(running, answer)
        if running.gone:
            return
        lane = running.lane
        if lane is not None:
            lane.cut(running)
        if running.author is not None:
            running.author.cancel(running)
        self._loop.call_later(self.options.grace_s, self._give_up, running)

    async def run(self, work: Work, home: Home, *, limit: float | None = None) -> Any:
        """Run a work and wait for its outcome."""
        future: asyncio.Future[Any] = self._loop.create_future()

        def settle(outcome: Any) -> None:
            if not future.done():
                future.set_result(outcome)

        self.start(work, home, contextvars.copy_context(), settle, limit=limit)
        return await future

    def leave(self, home: Home) -> None:
        """A session is over: let its own thread end."""
        if home.affinity == "session" and home.lane is not None:
            home.lane.queue.append(None)
            home.lane.wake()
            home.lane = None

    def on_blocked(self, callback: Callable[[AuthorLoop, str], Any]) -> None:
        """`callback(author_loop, what)` is called when a loop is written off, before its works are answered for."""
        self._on_blocked = callback

    def status(self) -> dict[str, Any]:
        """Counts of threads, waiting works and zombies."""
        return {
            "lanes": self._lanes.threads,
            "lanes_waiting": self._lanes.waiting,
            "author_loops": len(self._authors),
            "running": self.active,
            "zombies": sorted([*self.zombies.values(), *self._still_blocked()]),
        }

    def stop(self) -> None:
        """Let every thread end when its current work does."""
        self._watchdog.stop()
        self._lanes.stop()
        for lane in self._class_lanes.values():
            lane.queue.append(None)
            lane.wake()
        for author in self._authors.values():
            author.stop()

    async def join(self) -> None:
        """Wait, after `stop`, until the author loops have ended."""
        authors = list(self._authors.values())
        self._authors.clear()
        for author in authors:
            await asyncio.to_thread(author.join, 1.0)

    def _author(self, home: Home) -> AuthorLoop:
        author = home.author
        if author is None or author.lost:
            author = self._authors.get(home.group)
            if author is None:
                author = self._authors[home.group] = AuthorLoop(self._loop, home.group, self._finished)
                self._watchdog.watch(author)
            home.author = author
        return author

    def _submit_to_author(self, running: Running) -> None:
        try:
            author = self._author(running.home)
        except (OSError, RuntimeError) as exc:
            self._refuse(running, exc)
            return
        running.author = author
        author.submit(running)

    def _submit_to_lane(self, running: Running) -> None:
        home = running.home
        before, running.after = running.after, None
        if before is not None:
            with self._chaining:
                if not before.over:
                    before.next = running
                    return
        if home.affinity == "any":
            self._lanes.submit(running)
            if not self._flush_due:
                # one wake-up for all that this pass of the loop submits
                self._flush_due = True
                self._loop.call_soon(self._flush)
            return
        try:
            lane = self._own_lane(home)
        except RuntimeError as exc:
            self._refuse(running, exc)
            return
        lane.queue.append(running)
        lane.wake()

    def _own_lane(self, home: Home) -> Lane:
        """The one thread of a session, or of a class."""
        lane = home.lane
        if lane is None or lane.lost:
            if home.affinity == "class":
                lane = self._class_lanes.get(home.group)
                if lane is None:
                    lane = self._class_lanes[home.group] = self._lanes.dedicated()
            else:
                lane = self._lanes.dedicated()
            home.lane = lane
        return lane

    def _refuse(self, running: Running, exc: Exception) -> None:
        """The system gives no more threads."""
        logger.warning("no thread for '%s': %s", running.work.label, exc)
        answer = failure("worker_unavailable", "the server has no thread left to run this on", retry_after=1.0)
        self._loop.call_soon(self._finished, running, answer)

    def _flush(self) -> None:
        self._flush_due = False
        if not self._lanes.flush():
            self._flush_due = True
            self._loop.call_later(0.05, self._flush)

    def _lane_finished(self, running: Running, result: Any) -> Running | None:
        """On the lane's thread; returns what it runs next."""
        running.lane = None
        if type(result) is CoroutineType:
            # a synchronous method returned something to await: it continues on the author loop
            running.continuation = result
            self._mail.post((running, _CONTINUE))
            return None
        with self._chaining:
            following = running.ended(result)
        self._mail.post((running, result))
        return following

    def _finished(self, running: Running, result: Any) -> None:
        if result is _CONTINUE:
            if running.cut is None:
                self._submit_to_author(running)
                return
            running.discard()
            result = CUT
        if not running.over:
            # it continued on the author loop; what comes after it is a lane's
            with self._chaining:
                following = running.ended(result)
            if following is not None:
                self._submit_to_lane(following)
        if running.output is not None and running.output.size:
            logger.debug("%s printed: %s", running.work.label, running.output)
        if not running.done:
            self._answer(running, result)
        if running.gone:
            self.zombies.pop(running, None)
        else:
            self._gone(running, True)
        # whoever is told is known to whom it is told of: without a cycle, there is no work for the collector
        running.on_done, running.on_gone, running.task = _forget, None, None

    def _answer(self, running: Running, outcome: Any) -> None:
        running.done = True
        if running.limit is not None:
            running.limit.cancel()
            running.limit = None
        running.on_done(outcome)

    def _gone(self, running: Running, ended: bool) -> None:
        running.gone = True
        self.active -= 1
        if running.on_gone is not None:
            running.on_gone(ended)

    def _over_time(self, running: Running) -> None:
        """The time since a work was asked for is over; its own counts from when its code began."""
        assert running.seconds is not None
        left = running.seconds
        if running.begun:
            left -= time.monotonic() - running.begun
        if left > 0.001:
            running.limit = self._loop.call_later(left if running.begun else max(left, 0.1), self._over_time, running)
            return
        words = f"'{running.work.label}' took longer than its limit of {running.seconds:g} s"
        self.cut(running, failure("tool_timeout", words, ran="yes"))

    def _give_up(self, running: Running) -> None:
        # what has not begun is no zombie: it will be told that it is cut when its turn comes
        if running.gone or not running.begun:
            return
        label, home = running.work.label, running.home
        self.zombies[running] = label
        logger.warning(
            "'%s' did not stop within %g s of being cut; it is a zombie from now on", label, self.options.grace_s
        )
        lane = running.lane
        if lane is not None and lane is home.lane:
            self._replace(lane, home)
        elif lane is not None:
            self._lanes.lose(lane)
        if running.author is not None and running.work.is_async:
            running.author.abandon(running)
        else:
            self._abandon(running)
        self._gone(running, False)

    def _replace(self, lane: Lane, home: Home) -> None:
        """A session's or class's own thread is lost: what waits for it moves to a new one."""
        lane.lost = True
        if self._class_lanes.get(home.group) is lane:
            del self._class_lanes[home.group]
        waiting = []
        while lane.queue:
            waiting.append(lane.queue.popleft())
        lane.queue.append(None)
        home.lane = None
        for running in waiting:
            if running is not None:
                self._submit_to_lane(running)

    def _abandon(self, running: Running) -> None:
        """What waits for a work that does not end need not wait any longer."""
        with self._chaining:
            following = running.ended(None)
        if following is not None:
            self._submit_to_lane(following)

    def _lost(self, author: AuthorLoop, what: str) -> None:
        """A loop has been blocked for too long: its works are answered for, whoever needs a loop next gets another."""
        self._blocked[author] = what
        for group, current in list(self._authors.items()):
            if current is author:
                del self._authors[group]
        if self._on_blocked is not None:
            self._on_blocked(author, what)
        answer = failure("loop_blocked", f"{what} blocked the event loop that this used", ran="unknown")
        for running in author.leave():
            self.cut(running, answer)
            if not running.gone:
                if not running.work.is_async:
                    self._abandon(running)
                self._gone(running, True)
        author.stop()

    def _still_blocked(self) -> list[str]:
        """Which written-off loops are blocked to this day."""
        for author in [author for author in self._blocked if not author.thread.is_alive()]:
            del self._blocked[author]
        return list(self._blocked.values())


def _forget(_: Any) -> None:
    """Stands for those who have been told."""


_CONTINUE = object()
