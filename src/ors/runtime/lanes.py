"""Threads for synchronous author code: one queue, a few hot threads, more when the backlog waits, fewer when idle.

A thread that is woken works through what is queued before it sleeps again, so short calls cost one wake-up for many. A
foreman looks at the queue while there is one: works that wait while the processor has time to spare (the code before
them sleeps, or waits for a network) get more threads at once, so a thousand calls that block a second take about a
second. Works that wait because the interpreter is busy would gain nothing from more threads, and get few.
"""

from __future__ import annotations

import ctypes
import itertools
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ors.runtime.capture import OUTPUT

if TYPE_CHECKING:
    from ors.runtime.running import Running

__all__ = ["CutError", "Lane", "Lanes"]

logger = logging.getLogger("ors.runtime")
_numbers = itertools.count(1)


class CutError(BaseException):
    """Raised inside author code whose time is over. Not an Exception, so that `except Exception` does not keep it."""


class Lane(threading.Thread):
    """A thread that runs synchronous works from a queue: the shared one, or its own."""

    def __init__(
        self,
        queue: deque[Running | None],
        finished: Callable[[Running, Any], Running | None],
        idle: Callable[[Lane], bool],
    ):
        super().__init__(name=f"ors-lane-{next(_numbers)}", daemon=True)
        self.queue = queue
        self.taken = 0
        self.lost = False
        self._finished = finished
        self._idle = idle
        self._signal = threading.Lock()
        self._signal.acquire()
        self._current: Running | None = None
        self._cutting = False
        self._tainted = False

    def wake(self) -> None:
        """Let the thread look at its queue."""
        try:
            self._signal.release()
        except RuntimeError:  # woken already
            pass

    def wait(self, timeout: float) -> bool:
        """Sleep until woken; False when the time is over."""
        return self._signal.acquire(timeout=timeout)

    def cut(self, running: Running) -> None:
        """Raise CutError in the thread if it still runs this work."""
        # The thread says that it has ended a work before it looks whether somebody is cutting, and this says that it is
        # cutting before it looks what the thread runs: one of the two sees the other, and no lock is needed.
        self._cutting = True
        try:
            if self._current is running:
                self._tainted = True
                self._raise(CutError)
        finally:
            self._cutting = False

    def run(self) -> None:
        queue = self.queue
        while True:
            try:
                running = queue.popleft()
            except IndexError:
                if self._idle(self):
                    return
                continue
            if running is None:
                return
            while running is not None:
                self.taken += 1
                running = self._run_one(running)
            if self.lost:
                return

    def _run_one(self, running: Running) -> Running | None:
        """Run a work; returns the one that was waiting for it."""
        running.lane = self
        running.begun = time.monotonic()
        try:
            self._current = running
            result = running.barred()
            if result is None:
                result = running.context.run(_call, running)
        except CutError as exc:  # it arrived when the code itself was already over
            result = running.uncaught(exc)
        while True:
            # no cut may reach what this thread runs next: one that is still under way is waited for and taken back
            try:
                self._current = None
                while self._cutting:
                    time.sleep(0)
                if self._tainted:
                    self._raise(None)
                    self._tainted = False
                break
            except CutError:
                continue
        return self._finished(running, result)

    def _raise(self, exception: type[BaseException] | None) -> None:
        assert self.ident is not None
        thrown = ctypes.py_object(exception) if exception is not None else None
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), thrown)


def _call(running: Running) -> Any:
    OUTPUT.set(running.output)
    try:
        return running.work.fn()
    except BaseException as exc:
        return running.uncaught(exc)


class Lanes:
    """The shared pool. `submit` and `flush` are called on the owner's loop; the rest happens in the threads."""

    IDLE_S = 5.0
    TICK_S = 0.002

    def __init__(self, finished: Callable[[Running, Any], Running | None], *, max_threads: int = 4096) -> None:
        self._finished = finished
        self._max_threads = max_threads
        self._queue: deque[Running | None] = deque()
        self._lock = threading.Lock()
        self._sleeping: list[Lane] = []
        self._lanes: set[Lane] = set()
        self._backlog = threading.Event()
        self._stopped = False
        self._foreman: threading.Thread | None = None

    @property
    def threads(self) -> int:
        """How many threads there are."""
        return len(self._lanes)

    @property
    def waiting(self) -> int:
        """How many works wait for a thread."""
        return len(self._queue)

    def submit(self, running: Running) -> None:
        """Queue a work. Nothing runs before `flush`."""
        running.queued = time.perf_counter()
        self._queue.append(running)

    def flush(self) -> bool:
        """Make sure that a thread looks at the queue; False when none can be had now."""
        if not self._queue:
            return True
        with self._lock:
            lane = self._sleeping.pop() if self._sleeping else None
            if lane is None and not self._lanes:
                lane = self._add()
        if lane is not None:
            lane.wake()
        if self._foreman is None:
            foreman = threading.Thread(target=self._oversee, name="ors-foreman", daemon=True)
            if not _started(foreman):
                return False
            self._foreman = foreman
        if not self._backlog.is_set():
            self._backlog.set()
        return bool(self._lanes)

    def dedicated(self) -> Lane:
        """A lane with a queue of its own, for code that must stay on one thread. None in its queue ends it.

        Raises RuntimeError when the system gives no more threads.
        """
        lane = Lane(deque(), self._finished, _rest)
        lane.start()
        return lane

    def lose(self, lane: Lane) -> None:
        """A thread of the pool does not come back: it ends when its work does, and no longer counts as one."""
        with self._lock:
            lane.lost = True
            self._lanes.discard(lane)

    def stop(self) -> None:
        """Let every thread end when its current work does."""
        self._stopped = True
        self._backlog.set()
        with self._lock:
            for lane in self._sleeping:
                lane.wake()
            self._sleeping.clear()

    def _add(self) -> Lane | None:
        lane = Lane(self._queue, self._finished, self._rest)
        if not _started(lane):
            return None
        self._lanes.add(lane)
        return lane

    def _rest(self, lane: Lane) -> bool:
        """Called by an idle lane: sleep until there is work; True ends it."""
        if self._stopped:
            self._lanes.discard(lane)
            return True
        with self._lock:
            if self._queue:
                return False
            self._sleeping.append(lane)
        if lane.wait(self.IDLE_S) and not self._stopped:
            return False
        with self._lock:
            if lane in self._sleeping:
                self._sleeping.remove(lane)
                self._lanes.discard(lane)
                return True
        # woken while giving up: take the work, the signal has been sent for it
        lane.wait(0)
        return self._stopped and not self._queue

    def _oversee(self) -> None:
        idle_since = 0.0
        cpu, wall = time.process_time(), time.perf_counter()
        taken, taken_at = -1, wall
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        while not self._stopped:
            if not self._queue:
                now = time.perf_counter()
                idle_since = idle_since or now
                if now - idle_since > 0.1:
                    self._backlog.clear()
                    if not self._queue:
                        self._backlog.wait(self.IDLE_S)
                    idle_since = 0.0
            else:
                idle_since = 0.0
            time.sleep(self.TICK_S)
            now_cpu, now = time.process_time(), time.perf_counter()
            busy = (now_cpu - cpu) / max(now - wall, 1e-9)
            cpu, wall = now_cpu, now
            self._drop_ended()
            total = sum(lane.taken for lane in tuple(self._lanes))
            if total != taken:
                taken, taken_at = total, now
            if self._waited(now) < self.TICK_S:
                continue
            if busy < 0.9 or now - taken_at > 0.02 or len(self._lanes) - len(self._sleeping) < cores:
                self._grow(min(len(self._queue), 32))

    def _waited(self, now: float) -> float:
        """For how long the first of the queue has waited. A function, so that the foreman keeps no work while idle."""
        try:
            first = self._queue[0]
        except IndexError:
            return 0.0
        return now - first.queued if first is not None else 0.0

    def _grow(self, count: int) -> None:
        for _ in range(count):
            # the lock is not held while a thread starts: the owner's loop would wait for it
            with self._lock:
                lane = self._sleeping.pop() if self._sleeping else None
            if lane is not None:
                lane.wake()
            elif len(self._lanes) >= self._max_threads or self._add() is None:
                return

    def _drop_ended(self) -> None:
        with self._lock:
            ended = [lane for lane in self._lanes if not lane.is_alive() and lane.ident is not None]
            self._lanes.difference_update(ended)


def _started(thread: threading.Thread) -> bool:
    """Start a thread; False when the system gives no more of them, which is no reason to lose what waits for one."""
    try:
        thread.start()
    except RuntimeError as exc:
        logger.warning("no more threads for author code: %s; what waits goes on with those there are", exc)
        return False
    return True


def _rest(lane: Lane) -> bool:
    lane.wait(-1)
    return False
