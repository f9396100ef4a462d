"""A session: the place where an instance lives, with its calls, their order, its owner and its end.

Everything here happens on the owner's event loop and takes no lock. Author code is handed to the runtime.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from typing import Any

import msgspec

from ors.core.calls import Call, CallLog
from ors.core.failures import Failure, failure
from ors.core.limits import Limits
from ors.core.ports import (
    Document,
    Latch,
    Offering,
    Op,
    Outcome,
    Principal,
    Script,
    Start,
    Work,
)
from ors.core.secrets import Secrets
from ors.core.tally import Tally
from ors.core.turns import FINISHED, Runner, Turns, nothing, play

__all__ = ["Phase", "Session"]

logger = logging.getLogger("ors.session")

_STEPS = frozenset(["reset", "step", "state", "own_tools"])


class Phase(enum.Enum):
    """What a session is doing."""

    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    ENDED = "ended"


class Session(Turns):
    """One session. `perform` answers with a future; cancelling it detaches and never cancels what runs."""

    __slots__ = (
        "_calls",
        "_episode",
        "_lazy",
        "_loop",
        "_over",
        "_prompt",
        "_shared",
        "_waiting",
        "env",
        "failure",
        "id",
        "joined",
        "key",
        "offering",
        "phase",
        "principal",
        "secrets",
        "started",
        "tally",
        "task",
        "touched",
    )

    def __init__(self, sid: str, offering: Offering, principal: Principal, runner: Runner, home: Any, limits: Limits):
        super().__init__(runner, home, limits)
        self.id = sid
        self.offering = offering
        self.env = offering.spec.name.lower()
        self.principal = principal
        self.phase = Phase.STARTING
        self.failure: Failure | None = None
        self.key: Any = None
        self.joined: Any = None
        self.started = self.touched = limits.clock()
        self.tally = Tally()
        self.task: tuple[str | None, str | None] = (None, None)  # its place and its key
        self.secrets: tuple[Secrets, ...] = ()
        self._loop = asyncio.get_running_loop()
        self._episode: Any = None
        self._lazy: Start | None = None
        self._calls = CallLog(limits.store)
        self._shared: dict[str, Call] | None = None
        self._prompt: Document | None = None
        self._over: asyncio.Future[None] | None = None
        self._waiting: list[tuple[Call, Op]] | None = None

    # What may be asked

    def begin(self, start: Start) -> None:
        """Open the episode in the background; a lazy one when something is asked of it."""
        if start.lazy:
            self._lazy = msgspec.structs.replace(start, lazy=False)
            return
        call = Call("", "setup", None, started=self._limits.clock())
        self._shared = (self._shared or {}) | {"setup": call}
        try:
            self._episode = self.offering.episode(start)
            planned = self._episode.open()
        except Exception as exc:
            planned = self._broken(exc)
        self._take(call, planned, limit=self._limits.setup_s)

    def perform(self, op: Op) -> asyncio.Future[Outcome]:
        """Ask something of the session."""
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self.touched = self._limits.clock()
        if self.failure is not None:
            future.set_result(self.failure)
        elif op.kind == "call":
            self._call(op, future)
        elif op.kind == "prompt" and self._prompt is not None:
            future.set_result(self._prompt)
        else:
            self._ask(op, future)
        return future

    def cancel(self, call_id: str) -> Document | Failure:
        """Cancel a call by its id."""
        call = self._calls.running.get(call_id)
        if call is not None:
            self._cut(call, failure("call_cancelled", f"the call of '{call.name}' was cancelled", ran="unknown"))
            return Document(b'{"cancelled":true}')
        if self._calls.knows(call_id) or self._calls.ended(call_id) is not None:
            return Document(b'{"cancelled":false}')
        return failure("unknown_call", f"no call {call_id!r} in this session")

    @property
    def finished(self) -> bool:
        """Whether the episode is over: a tool said so."""
        return self._latch.closed

    @property
    def busy(self) -> int:
        """How many calls have not ended."""
        return len(self._calls.running) + (len(self._shared) if self._shared else 0)

    def runs_on(self, author: Any) -> bool:
        """Whether the session's asynchronous code runs on this author loop."""
        return self._home.author is author

    def active(self, now: float, ceiling_s: float) -> bool:
        """Whether a call runs whose client is attached; the moment the last one leaves counts as activity."""
        running = list(self._calls.running.values())
        if self._shared:
            running += self._shared.values()
        for call in running:
            if now - call.started < ceiling_s:
                if call.name == "setup" and not call.id:
                    return True
                had = bool(call.waiters)
                if call.attached():
                    return True
                if had:
                    self.touched = now
        return False

    # Calls

    def _call(self, op: Op, future: asyncio.Future[Outcome]) -> None:
        call_id, name = op.call_id or "", op.name or ""
        log = self._calls
        if op.mode != "run":
            known = log.running.get(call_id)
            if known is not None or log.knows(call_id):
                if op.mode == "run_or_attach" and not log.same(call_id, name, op.input):
                    future.set_result(
                        failure("call_conflict", f"the call id {call_id!r} was used for another tool or input")
                    )
                    return
                if known is not None:
                    known.waiters.append(future)
                    return
            result = log.ended(call_id)
            if result is not None:
                future.set_result(result)
                return
            if log.knows(call_id):
                future.set_result(
                    failure("call_forgotten", f"the call {call_id!r} ran; its result is no longer kept", ran="yes")
                )
                return
            if op.mode == "attach":
                future.set_result(failure("unknown_call", "unknown task_id"))
                return
        limits = self._limits
        if self._latch.closed:
            future.set_result(FINISHED)
            return
        if limits.calls >= limits.max_calls:
            future.set_result(self._too_many())
            return
        if limits.store.full:
            words = "the results kept for reconnection take all the room they may"
            future.set_result(failure("results_full", words, retry_after=limits.retry_after))
            return
        call = log.begin(call_id, name, op.input, remember=op.mode == "run_or_attach")
        call.started = self.touched
        call.waiters.append(future)
        if self.phase is Phase.READY:
            limits.calls += 1
            try:
                planned = self._episode.call(name, op.input)
            except Exception as exc:
                planned = self._broken(exc)
            self._take(call, planned)
        else:
            self._enqueue(call, op)

    def _ask(self, op: Op, future: asyncio.Future[Outcome]) -> None:
        """A prompt, a list of tools, a step: whoever asks while it is under way gets the same answer."""
        kind, limits = op.kind, self._limits
        if (kind in _STEPS) is not (self.offering.spec.kind == "steps") and kind != "open":
            future.set_result(failure("not_supported", f"'{self.env}' is not played by {kind}"))
            return
        self._shared = self._shared if self._shared is not None else {}
        if kind in ("prompt", "tools", "own_tools", "state", "open"):
            current = self._shared.get(kind)
            if current is not None:
                current.waiters.append(future)
                return
            call = Call("", kind, None)
        elif limits.calls >= limits.max_calls:
            future.set_result(self._too_many())
            return
        else:
            call = Call("", kind, None)
            call.name = f"{kind}:{id(call)}"
        self._shared[call.name] = call
        call.started = self.touched
        call.waiters.append(future)
        self._enqueue(call, op)

    def _too_many(self) -> Failure:
        words = f"{self._limits.calls} calls are running, as many as this server allows"
        return failure("too_many_calls", words, retry_after=self._limits.retry_after)

    def _plan(self, op: Op) -> Any:
        episode = self._episode
        try:
            match op.kind:
                case "open":
                    return Document(b"{}")
                case "call":
                    return episode.call(op.name or "", op.input)
                case "prompt":
                    return episode.prompt()
                case "tools":
                    return episode.tools()
                case "own_tools":
                    return episode.own_tools()
                case "state":
                    return episode.state()
                case "step":
                    if op.start is not None and op.start.options:
                        return episode.step(op.input, op.timeout_s, op.start.options)
                    return episode.step(op.input, op.timeout_s)
                case "reset":
                    return self._reset(op)
                case _:
                    return failure("not_supported", f"a session does not know how to {op.kind}")
        except Exception as exc:
            return self._broken(exc)

    def _reset(self, op: Op) -> Any:
        self._latch = Latch()
        self.tally.finished = False
        self._prompt = None
        return self._episode.reset(op.start or Start())

    def _enqueue(self, call: Call, op: Op) -> None:
        self._limits.calls += 1
        if self.phase is Phase.STARTING:
            if self._waiting is None:
                self._waiting = []
            self._waiting.append((call, op))
            if self._lazy is not None:
                start, self._lazy = self._lazy, None
                self.begin(start)
        else:
            self._take(call, self._plan(op), op.limit_s)

    def _finish(self, call: Call, outcome: Outcome) -> None:
        """A call has its outcome: keep it, and tell everybody who waits."""
        if call.ended:
            return
        call.ended = True
        if call.id:
            self._limits.leave()
            outcome = self.tally.count(outcome, self._latch)
            self._calls.finish(call, outcome)
        else:
            if self._shared is not None:
                self._shared.pop(call.name, None)
                self._shared = self._shared or None
            if call.name == "setup":
                if call.running is not None:
                    self._context = call.running.context
                self._set_up(outcome)
            elif call.name == "teardown":
                self._torn_down(outcome)
            else:
                self._limits.leave()
                if call.name.startswith("step:"):
                    self.tally.count(outcome, self._latch)
                elif isinstance(outcome, Document):
                    if call.name == "prompt":
                        self._prompt = outcome
                    elif call.name == "tools":
                        outcome = Document(outcome.body, self.env)
        waiters, call.waiters = call.waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(outcome)

    def _set_up(self, outcome: Outcome) -> None:
        if self.phase is Phase.STARTING:
            if isinstance(outcome, Failure):
                if outcome.kind == "tool_timeout":
                    outcome = failure("setup_timeout", outcome.detail, ran=outcome.ran)
                self.phase = Phase.FAILED
                self.failure = outcome
                logger.warning("setup of session %s (%s) failed: %s", self.id, self.env, outcome.detail)
                self.close("setup_failed")
            else:
                self.phase = Phase.READY
        waiting, self._waiting = self._waiting or [], None
        for call, op in waiting:
            if self.failure is not None:
                self._finish(call, self.failure)
            elif not call.ended:
                self._take(call, self._plan(op), op.limit_s)

    # The end

    def stop(self, answer: Failure) -> None:
        """Answer everything with `answer` from now on, and cut what runs."""
        self.phase = Phase.ENDED
        self.failure = answer
        calls = list(self._calls.running.values())
        if self._shared:
            calls += self._shared.values()
        for call in calls:
            self._cut(call, answer)
        self._waiting = None

    def close(self, why: str) -> asyncio.Future[None]:
        """Run the teardown, once, after what still runs, bounded in time. Answers when it is over."""
        if self._over is None:
            self._over = self._loop.create_future()
            call = Call("", "teardown", None)
            call.work = Work(nothing, label="teardown")
            self._gate.enter(call.work, lambda _: self._tear_down(call, why))
        if self.phase is Phase.ENDED:
            self._over.add_done_callback(self._clear)
        return self._over

    def _tear_down(self, call: Call, why: str) -> None:
        call.started = self._limits.clock()
        call.script = self._release(why)
        self._advance(call, None, self._limits.teardown_s)

    def _release(self, why: str) -> Script:
        # planned only now: code that ran until here may have made what there is to release
        return (yield from play(self._episode.close(why) if self._episode is not None else None))

    def _torn_down(self, outcome: Outcome) -> None:
        assert self._over is not None
        if isinstance(outcome, Failure):
            logger.warning("teardown of session %s (%s) failed: %s", self.id, self.env, outcome.detail)
        self._over.set_result(None)

    def _clear(self, _: Any) -> None:
        self._calls.close()
        self._runner.leave(self._home)
