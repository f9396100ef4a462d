"""A runtime with its owner's loop, and what its tests ask of it."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from ors.core.failures import Failure, failure
from ors.core.ports import Work
from ors.runtime import Home, Running, Runtime, RuntimeOptions

CUT = failure("call_cancelled", "cut by the test", ran="unknown")


class Started:
    """A work that was started: its outcome, and how it went."""

    def __init__(self, runtime: Runtime, work: Work, home: Home, **options: Any) -> None:
        loop = asyncio.get_running_loop()
        self._runtime = runtime
        self.outcome: asyncio.Future[Any] = loop.create_future()
        self.gone: asyncio.Future[bool] = loop.create_future()
        context = options.pop("context", None) or contextvars.copy_context()
        self.running: Running = runtime.start(
            work, home, context, self.outcome.set_result, on_gone=self.gone.set_result, **options
        )

    def cut(self) -> None:
        self._runtime.cut(self.running, CUT)


class Bench:
    """A runtime under test."""

    def __init__(self, options: RuntimeOptions | None = None, *, capture: bool = False) -> None:
        self.runtime = Runtime(options, capture=capture)

    def home(self, affinity: Any = "any", group: str = "env") -> Home:
        return self.runtime.home(group, affinity)

    def start(self, fn: Callable[[], Any], home: Home | None = None, **options: Any) -> Started:
        work = Work(fn, label=options.pop("label", "work"), is_async=inspect.iscoroutinefunction(fn))
        return Started(self.runtime, work, home or self.home(), **options)

    async def run(self, fn: Callable[[], Any], home: Home | None = None, **options: Any) -> Any:
        return await self.start(fn, home, **options).outcome


@asynccontextmanager
async def bench(options: RuntimeOptions | None = None, *, capture: bool = False) -> AsyncIterator[Bench]:
    """A runtime whose threads have all ended afterwards."""
    before = set(threading.enumerate())
    made = Bench(options, capture=capture)
    try:
        yield made
    finally:
        made.runtime.stop()
        await until(lambda: not [thread for thread in threading.enumerate() if thread not in before])


async def until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait until a condition holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)


def kind(outcome: Any) -> str:
    """The kind of a failure."""
    assert isinstance(outcome, Failure), outcome
    return outcome.kind


class Stubborn:
    """Code that ignores every exception until it is let go."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.let_go = threading.Event()

    def __call__(self) -> str:
        self.began.set()
        while True:
            try:
                if self.let_go.wait(0.005):
                    return "at last"
            except BaseException:
                pass
