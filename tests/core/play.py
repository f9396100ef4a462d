"""A native tool environment and a session on a real runtime, for the tests of the core."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from ors.core.calls import ResultStore
from ors.core.failures import Failure, failure
from ors.core.limits import Limits
from ors.core.ports import Document, OfferingSpec, Op, Plan, Principal, Start, ToolOutcome, Work
from ors.core.session import Phase, Session
from ors.runtime import Runtime, RuntimeOptions

Tool = Callable[[Any], Any]


def said(text: Any = "done", reward: float | None = None, finished: bool = False) -> ToolOutcome:
    """What a tool answers."""
    return ToolOutcome(json.dumps(text).encode(), reward, finished)


class Door:
    """Code waits in it until it is opened; the test sees that it has come there."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def wait(self) -> None:
        self.reached.set()
        assert self.opened.wait(30), "nobody opened the door"

    async def wait_async(self) -> None:
        self.reached.set()
        while not self.opened.is_set():
            await asyncio.sleep(0.005)

    async def is_reached(self) -> None:
        await until(self.reached.is_set)


def pass_time(store: ResultStore, clock: Clock, seconds: float) -> None:
    """Time passes, and the store is swept as its owner does: every now and then."""
    store.sweep()
    clock.now += seconds
    store.sweep()


class Stage:
    """An offering whose episodes run what a test gives it. `events` says what ran, in order."""

    affinity: Any = "any"
    tasks: Any = None

    def __init__(self, **tools: Tool | tuple[Tool, dict[str, Any]]) -> None:
        self.spec = OfferingSpec("stage", "tools")
        self.tools = tools
        self.events: list[str] = []
        self.setup: Callable[[], Any] = lambda: None
        self.prompt: Callable[[], Any] = lambda: "prompt"
        self.teardown: Callable[[], Any] = lambda: None
        self.plans: dict[str, Callable[[Any], Plan]] = {}

    def episode(self, start: Start) -> StageEpisode:
        return StageEpisode(self, start)


class StageEpisode:
    def __init__(self, stage: Stage, start: Start) -> None:
        self.stage = stage
        self.start = start

    def _work(self, label: str, fn: Callable[[], Any], **marks: Any) -> Work:
        def answer(value: Any) -> Any:
            return value if isinstance(value, (ToolOutcome, Failure)) else Document(json.dumps(value).encode())

        def run() -> Any:
            self.stage.events.append(label)
            try:
                return answer(fn())
            except Exception as exc:
                return failure("tool_failed", f"{type(exc).__name__}: {exc}", ran="yes")

        async def run_async() -> Any:
            self.stage.events.append(label)
            try:
                return answer(await fn())
            except Exception as exc:
                return failure("tool_failed", f"{type(exc).__name__}: {exc}", ran="yes")

        is_async = inspect.iscoroutinefunction(fn)
        return Work(run_async if is_async else run, label=label, is_async=is_async, **marks)

    def open(self) -> Plan:
        return self._work("setup", self.stage.setup)

    def prompt(self) -> Plan:
        return self._work("prompt", self.stage.prompt)

    def tools(self) -> Plan:
        return self._work("tools", lambda: sorted(self.stage.tools))

    def call(self, name: str, input: Any) -> Plan:
        if name in self.stage.plans:
            return self.stage.plans[name](input)
        if name not in self.stage.tools:
            return failure("unknown_tool", f"'{name}' is not a valid tool")
        entry = self.stage.tools[name]
        tool, marks = entry if isinstance(entry, tuple) else (entry, {})
        fn: Callable[[], Any]
        if inspect.iscoroutinefunction(tool):

            async def fn() -> Any:
                return await tool(input)
        else:

            def fn() -> Any:
                return tool(input)

        return self._work(name, fn, **{"serial": name, "exclusive": False, **marks})

    def close(self, why: str) -> Plan | None:
        self.stage.events.append(f"close: {why}")
        return self._work("teardown", self.stage.teardown)


class Clock:
    """The time, which only the test moves on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Theatre:
    """A session of a stage."""

    def __init__(self, stage: Stage, options: RuntimeOptions | None = None, *, keep: dict[str, Any], **limits: Any):
        self.stage = stage
        self.clock = Clock()
        self.runtime = Runtime(options)
        self.store = ResultStore(self.clock, **keep)
        self.limits = Limits(self.clock, self.store, **limits)
        self.hung: list[Failure] = []
        self.session = self.open()

    def open(self) -> Session:
        """Another session of the same stage."""
        home = self.runtime.home("stage", self.stage.affinity)
        session = Session(f"s{next(_numbers)}", self.stage, Principal(), self.runtime, home, self.limits)
        session.on_hung = self._hung
        return session

    def _hung(self, session: Session, answer: Failure) -> None:
        self.hung.append(answer)
        session.stop(answer)
        session.close("hung")

    def begin(self) -> None:
        self.session.begin(Start(task={"n": 1}))

    def call(self, name: str, input: Any = None, call_id: str | None = None, mode: Any = None) -> Any:
        """Call a tool; with an id of the client's, as a client that may repeat itself."""
        mode = mode or ("run" if call_id is None else "run_or_attach")
        call_id = call_id or f"made-{next(_numbers)}"
        return self.session.perform(Op("call", call_id, name, {} if input is None else input, mode))

    def ask(self, kind: Any) -> Any:
        return self.session.perform(Op(kind))

    async def end(self, why: str = "deleted") -> None:
        self.session.stop(failure("session_ended", f"Session {why}"))
        await self.session.close(why)


_numbers = itertools.count(1)


@asynccontextmanager
async def theatre(
    stage: Stage,
    options: RuntimeOptions | None = None,
    *,
    begun: bool = True,
    keep: dict[str, Any] | None = None,
    **limits: Any,
) -> AsyncIterator[Theatre]:
    """A session that is set up, and whose calls have all left their trace in the counts afterwards."""
    before = set(threading.enumerate())
    made = Theatre(stage, options, keep=keep or {}, **limits)
    try:
        if begun:
            made.begin()
            await until(lambda: made.session.phase is not Phase.STARTING)
        yield made
        if made.session.failure is None:
            await made.end()
        await until(lambda: made.runtime.active == 0)
        assert made.limits.calls == 0
        assert made.session._gate.idle
    finally:
        made.runtime.stop()
        await until(lambda: not [thread for thread in threading.enumerate() if thread not in before])


async def until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait until a condition holds; fail when it does not in time."""
    for _ in range(int(seconds / 0.005)):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not happen in time")


def kind(outcome: Any) -> str:
    """The kind of a failure."""
    assert isinstance(outcome, Failure), outcome
    return outcome.kind
