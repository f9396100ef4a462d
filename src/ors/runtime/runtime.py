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
from collections.abc import Callable
from types import CoroutineType
from typing import Any, Literal

import msgspec

from ors.core.failures import Failure, failure
from ors.core.ports import Latch, ToolOutcome, Work
from ors.runtime.author_loop import AuthorLoop
from ors.runtime.capture import Output
from ors.runtime.lanes import Lane, Lanes
from ors.runtime.mailbox import Mailbox
from ors.runtime.watchdog import Watchdog

__all__ = ["Home", "Running", "Runtime", "RuntimeOptions"]

logger = logging.getLogger("ors.runtime")

Affinity = Literal["any", "session", "class"]


class RuntimeOptions(msgspec.Struct, frozen=True):
    """grace_s: how long cut code has to end. blocked_warn_s: an author loop blocked this long is named in the log.
    blocked_limit_s: blocked this long, it is written off. max_threads: of lanes."""

    grace_s: float = 5.0
    blocked_warn_s: float = 1.0
    blocked_limit_s: float = 60.0
    max_threads: int = 4096


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
    task: asyncio.Task[None] | None = None
    limit: asyncio.TimerHandle | None = None
    queued: float = 0.0
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
            return _CUT
        return _FINISHED if self.latch is not None and self.latch.closed else None

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
        if self.cut is None:
            logger.error("%s let %s through", self.work.label, type(exc).__name__, exc_info=exc)
        return failure("internal", f"{self.work.label}: {type(exc).__name__}: {exc}", ran="yes")


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

        It starts when `after` has ended, on the same thread, and not at all once `latch` is closed.

        `on_gone` is called once when the code has really ended (True), or has become a zombie (False): what it held
        may then be released. Without a cut both come together.
        """
        running = Running(work, home, context.copy(), on_done, on_gone, after, latch)
        if self._capture:
            running.output = Output()
        self.active += 1
        if work.is_async:
            self._author(home).submit(running)
        else:
            self._submit_to_lane(running)
        if limit is None:
            limit = work.timeout
        if limit is not None:
            running.limit = self._loop.call_later(limit, self._over_time, running, limit)
        return running

    def cut(self, running: Running, answer: Failure) -> None:
        """Answer for a work now and ask its code to stop."""
        if running.cut is not None or running.done:
            return
        running.cut = answer.kind
        self._answer(running, answer)
        if running.gone:
            return
        author = running.home.author
        if running.lane is not None:
            running.lane.cut(running)
        if author is not None and (
            running.task is not None or running.work.is_async or running.continuation is not None
        ):
            author.cancel(running)
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

    def write_off(self, author: AuthorLoop) -> None:
        """An author loop is blocked for good: whoever needs one next gets another."""
        for group, current in list(self._authors.items()):
            if current is author:
                del self._authors[group]

    def on_blocked(self, callback: Callable[[AuthorLoop, str], None]) -> None:
        """`callback(author_loop, what)` is called when a loop is written off."""

        def lost(author: AuthorLoop, what: str) -> None:
            self.write_off(author)
            callback(author, what)

        self._watchdog.on_lost(lost)

    def status(self) -> dict[str, Any]:
        """Counts of threads, waiting works and zombies."""
        return {
            "lanes": self._lanes.threads,
            "lanes_waiting": self._lanes.waiting,
            "author_loops": len(self._authors),
            "running": self.active,
            "zombies": sorted(self.zombies.values()),
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
        lane = home.lane
        if lane is None or not lane.is_alive():
            if home.affinity == "class":
                lane = self._class_lanes.get(home.group)
                if lane is None or not lane.is_alive():
                    lane = self._class_lanes[home.group] = self._lanes.dedicated()
            else:
                lane = self._lanes.dedicated()
            home.lane = lane
        lane.queue.append(running)
        lane.wake()

    def _flush(self) -> None:
        self._flush_due = False
        self._lanes.flush()

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
                self._author(running.home).submit(running)
                return
            running.discard()
            result = _CUT
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
        if not running.gone:
            self._gone(running, True)
        else:
            self.zombies.pop(running, None)

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

    def _over_time(self, running: Running, limit: float) -> None:
        label = running.work.label
        self.cut(running, failure("tool_timeout", f"'{label}' took longer than its limit of {limit:g} s", ran="yes"))

    def _give_up(self, running: Running) -> None:
        if running.gone:
            return
        label = running.work.label
        self.zombies[running] = label
        logger.warning(
            "'%s' did not stop within %g s of being cut; its thread is a zombie", label, self.options.grace_s
        )
        home = running.home
        if running.lane is not None and home.lane is running.lane:
            home.lane = None
        self._gone(running, False)


_CONTINUE = object()
_CUT = failure("call_cancelled", "the call was cut before it could start")
_FINISHED = failure("episode_finished", "the episode finished before this call could start")
