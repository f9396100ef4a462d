"""Where the author's code runs in a check: `async def` on an event loop of its own, everything else on a thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import io
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from ors.testing.blocking import BlockingWatch

__all__ = ["Stage", "TookTooLong"]

_BEAT_S = 0.02


class TookTooLong(Exception):
    """Author code did not end in time."""


class Stage:
    """Runs author code as a server does, and keeps what it prints and logs. module: its own. limit_s: for a method."""

    def __init__(self, module: Any = None, limit_s: float = 60.0) -> None:
        self.blocking = BlockingWatch(module)
        self.printed = io.StringIO()
        self._limit_s = limit_s
        self._threads = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="ors-check")

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function that may be sync or async. Raises what it raises, and TookTooLong."""
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(self._limit_s)
        try:
            async with limit:
                value = await loop.run_in_executor(self._threads, lambda: function(*args, **kwargs))
                if inspect.isawaitable(value):
                    self.blocking.beat()
                    value = await value
                return value
        except TimeoutError:
            if not limit.expired():  # the author's own
                raise
            raise TookTooLong(f"it did not end within {self._limit_s:g} s") from None

    def play(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Run a check on a loop of its own, in a thread of its own: the caller may have a loop already."""
        with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="ors-check-loop") as own:
            return own.submit(self._play, work).result()

    def _play(self, work: Callable[[], Awaitable[Any]]) -> Any:
        async def beating() -> Any:
            beats = asyncio.ensure_future(self._beat())
            try:
                return await work()
            finally:
                beats.cancel()

        with self._listening(), asyncio.Runner() as runner, self.blocking.watching():
            try:
                return runner.run(beating())
            finally:
                self._threads.shutdown(wait=False, cancel_futures=True)

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
            with contextlib.redirect_stdout(_Keeping(self.printed)), contextlib.redirect_stderr(_Keeping(self.printed)):
                yield
        finally:
            root.removeHandler(handler)
            root.setLevel(before)
            logging.getLogger("asyncio").removeFilter(_not_asyncio)


def _not_asyncio(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


class _Keeping(io.TextIOBase):
    """Keeps what is printed, and prints it nowhere: a test says only what fails."""

    def __init__(self, kept: io.StringIO) -> None:
        self._kept = kept

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return self._kept.write(text)
