"""Where author code runs while it is checked: one thread with an event loop, one call after another, each with a limit.

The check itself waits outside, so that code which hangs is named instead of hanging the check. Synchronous code is
called on the thread directly; what it returns to be awaited runs on the loop. What it prints and logs is kept.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import inspect
import io
import logging
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from ors.testing.blocking import Blocked, Watcher
from ors.testing.places import Own, Spot

__all__ = ["Hung", "Outcome", "Stage"]

_BEAT_S = 0.02
_BUSY_CPU_S = 0.25
_BUSY_S = 1.0


class Hung(Exception):
    """A method did not come back in time; nothing more can be run."""

    def __init__(self, label: str, seconds: float, spot: Spot) -> None:
        super().__init__(f"{label} has not come back after {seconds:g} s")
        self.label = label
        self.spot = spot


@dataclass
class Outcome:
    """What came of a call: its value or the error, whether it was asynchronous, and what it waited for."""

    value: Any = None
    error: BaseException | None = None
    is_async: bool = False
    blocked: list[Blocked] = field(default_factory=list)


@dataclass
class _Job:
    function: Callable[[], Any]
    watch: bool
    done: threading.Event = field(default_factory=threading.Event)
    outcome: Outcome = field(default_factory=Outcome)
    samples: collections.Counter[tuple[Spot, str]] = field(default_factory=collections.Counter)


class Stage:
    """The thread. A context manager: on leaving, the loop is closed and the standard streams are as they were."""

    def __init__(self, own: Own, timeout_s: float) -> None:
        self.own = own
        self.timeout_s = timeout_s
        self.printed = io.StringIO()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._beat = 0.0
        self._cpu = 0.0
        self._thread = threading.Thread(target=self._run, name="ors-check", daemon=True)
        self.is_hung = False
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Stage:
        self._stack.enter_context(contextlib.redirect_stdout(self.printed))
        self._stack.enter_context(contextlib.redirect_stderr(self.printed))
        self._stack.enter_context(_logged(self.printed))
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._jobs.put(None)
        if not self.is_hung:
            self._thread.join(10)
        self._stack.close()

    @property
    def thread(self) -> threading.Thread:
        """The thread itself, which is no leak of the author's."""
        return self._thread

    def call(self, label: str, function: Callable[[], Any], *, watch: bool = False) -> Outcome:
        """Run a function, and await what it returns. Raises Hung."""
        if self.is_hung:
            raise Hung(label, self.timeout_s, (None, None))
        job = _Job(function, watch)
        deadline = time.monotonic() + self.timeout_s
        self._jobs.put(job)
        while not job.done.wait(_BEAT_S):
            self._sample(job)
            if time.monotonic() > deadline:
                self.is_hung = True
                raise Hung(label, self.timeout_s, self._now_at())
        return job.outcome

    def _now_at(self) -> Spot:
        frame = self.own.frame(sys._current_frames().get(self._thread.ident or 0))
        return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else (None, None)

    def _sample(self, job: _Job) -> None:
        """Note which of the author's lines a busy loop is in."""
        if not job.outcome.is_async or job.watch or time.monotonic() - self._beat < 2 * _BEAT_S:
            return
        frame = self.own.frame(sys._current_frames().get(self._thread.ident or 0))
        if frame is not None:
            job.samples[(frame.f_code.co_filename, frame.f_lineno), frame.f_code.co_qualname] += 1

    # On the thread

    def _run(self) -> None:
        self.loop = loop = asyncio.new_event_loop()
        try:
            while (job := self._jobs.get()) is not None:
                try:
                    self._perform(job)
                except BaseException as exc:
                    job.outcome.error = exc
                finally:
                    job.done.set()
        finally:
            for task in asyncio.all_tasks(loop):
                task.cancel()
            with contextlib.suppress(Exception):
                loop.run_until_complete(asyncio.sleep(0))
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    def _perform(self, job: _Job) -> None:
        value = job.function()
        if inspect.isawaitable(value):
            assert self.loop is not None
            value = self.loop.run_until_complete(self._drive(job, value))
        job.outcome.value = value

    async def _drive(self, job: _Job, value: Any) -> Any:
        loop = asyncio.get_running_loop()
        watcher = Watcher(self.own) if job.watch else None
        self._beat, self._cpu = time.monotonic(), time.thread_time()
        worst: list[tuple[float, float]] = []

        def beat() -> None:
            now, cpu = time.monotonic(), time.thread_time()
            if not job.watch and (cpu - self._cpu >= _BUSY_CPU_S or now - self._beat >= _BUSY_S):
                worst.append((now - self._beat, cpu - self._cpu))
            self._beat, self._cpu = now, cpu
            handles[:] = [loop.call_later(_BEAT_S, beat)]

        handles = [loop.call_later(_BEAT_S, beat)]
        job.outcome.is_async = True
        try:
            if watcher is not None:
                watcher.start()
            return await value
        finally:
            if watcher is not None:
                watcher.stop()
                job.outcome.blocked = watcher.found
            handles[0].cancel()
            beat()
            handles[0].cancel()
            if worst and job.samples:
                (spot, function), _ = job.samples.most_common(1)[0]
                wall, cpu = max(worst)
                said = f"computes for {cpu:.1f} s" if cpu >= _BUSY_CPU_S else f"blocks for {wall:.1f} s"
                job.outcome.blocked = [Blocked(said, "busy", spot, function)]


@contextlib.contextmanager
def _logged(into: io.StringIO) -> Iterator[None]:
    """Keep all that is logged, at every level, in the place of those who read the log otherwise."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    root.handlers = [logging.StreamHandler(into)]
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)
