"""Where the author's code runs in a check: `async def` on an event loop of its own, everything else on a thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import io
import logging
import queue
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType
from typing import Any

from ors.testing.blocking import BlockingWatch
from ors.testing.places import author_frame

__all__ = ["GivenUp", "Stage"]

_BEAT_S = 0.02


class GivenUp(BaseException):
    """Author code did not end in time. It may still run, so nothing else can: no handler of errors keeps this.

    frame: where it was.
    """

    def __init__(self, limit_s: float, frame: FrameType | None) -> None:
        super().__init__(f"it did not end within {limit_s:g} s")
        self.frame = frame


class Stage:
    """Runs author code as a server does, and keeps what it prints and logs. module: the author's. limit_s: for one
    method."""

    def __init__(self, module: Any = None, limit_s: float = 60.0) -> None:
        self.blocking = BlockingWatch(module)
        self.printed = io.StringIO()
        self._limit_s = limit_s
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        # daemons, both: neither this check nor the end of the process waits for code that hangs
        self._hand = threading.Thread(target=self._work, name="ors-check", daemon=True)

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function that may be sync or async. Raises what it raises, and GivenUp."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._jobs.put(lambda: _settle(future, lambda: function(*args, **kwargs)))
        try:
            async with asyncio.timeout(self._limit_s) as limit:
                value = await asyncio.wrap_future(future)
                if inspect.isawaitable(value):
                    self.blocking.beat()
                    value = await value
                return value
        except TimeoutError:
            if not limit.expired():
                raise  # it is the author's own
            raise GivenUp(self._limit_s, author_frame(sys._current_frames().get(self._hand.ident or 0))) from None

    def play(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Run a check on a loop of its own, in a thread of its own: the caller may have a loop already."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        thread = threading.Thread(target=_settle, args=(future, lambda: self._play(work)), daemon=True)
        thread.name = "ors-check-loop"
        with self._listening(), self.blocking.watching():
            self._hand.start()
            thread.start()
            while thread.is_alive():
                thread.join(0.2)
                if thread.is_alive() and self.blocking.held_s() > self._limit_s:
                    raise GivenUp(self._limit_s, author_frame(sys._current_frames().get(thread.ident or 0)))
        return future.result()

    def _play(self, work: Callable[[], Awaitable[Any]]) -> Any:
        async def beating() -> Any:
            beats = asyncio.ensure_future(self._beat())
            try:
                return await work()
            finally:
                beats.cancel()

        self.blocking.begin()
        try:
            with asyncio.Runner() as runner:
                return runner.run(beating())
        finally:
            self.blocking.end()
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    async def _beat(self) -> None:
        while True:
            self.blocking.beat()
            await asyncio.sleep(_BEAT_S)

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        handler = logging.StreamHandler(self.printed)
        root = logging.getLogger()
        before = root.level
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        logging.getLogger("asyncio").addFilter(_not_asyncio)
        try:
            with contextlib.redirect_stdout(_Both(self.printed)), contextlib.redirect_stderr(_Both(self.printed)):
                yield
        finally:
            root.removeHandler(handler)
            root.setLevel(before)
            logging.getLogger("asyncio").removeFilter(_not_asyncio)


def _settle(future: concurrent.futures.Future[Any], function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function())
    except BaseException as exc:
        future.set_exception(exc)


def _not_asyncio(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


class _Both(io.TextIOBase):
    """Keeps what is printed; it is said again nowhere, as a test says only what fails."""

    def __init__(self, kept: io.StringIO) -> None:
        self._kept = kept

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return self._kept.write(text)
