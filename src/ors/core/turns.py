"""The calls of a session taking turns: from the plan of an episode through the gate to the runtime, and back.

A plan is one work, or a script: several works with our own code between them, which hold their turn throughout.
"""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Protocol

from ors.core.calls import Call
from ors.core.failures import Failure, failure
from ors.core.gate import Gate
from ors.core.limits import Limits
from ors.core.ports import Document, Latch, Outcome, Plan, Script, Work

__all__ = ["FINISHED", "Runner", "Turns", "nothing", "play"]

logger = logging.getLogger("ors.session")

FINISHED = failure("episode_finished", "the episode is finished; no more tools may be called")


class Runner(Protocol):
    """What the runtime offers a session; see `ors.runtime.Runtime`."""

    def start(
        self,
        work: Work,
        home: Any,
        context: contextvars.Context,
        on_done: Callable[[Any], None],
        *,
        on_gone: Callable[[bool], None] | None = None,
        limit: float | None = None,
        after: Any = None,
        latch: Latch | None = None,
    ) -> Any:
        """Run a work, after another where that is given, and not at all once the latch is closed."""
        ...

    def cut(self, running: Any, answer: Failure) -> None:
        """Answer for a work now and ask its code to stop."""
        ...

    def leave(self, home: Any) -> None:
        """A session is over."""
        ...


class Turns:
    """That part of a session by which its calls take turns; `_finish` is told the outcome of each, at least once.

    Works run in copies of the session's context, in which the setup has run.
    """

    __slots__ = ("_context", "_gate", "_home", "_latch", "_limits", "_runner", "on_hung")

    id: str

    def __init__(self, runner: Runner, home: Any, limits: Limits) -> None:
        self.on_hung: Callable[[Any, Failure], None] | None = None
        self._runner = runner
        self._home = home
        self._limits = limits
        self._context = contextvars.copy_context()
        self._gate = Gate()
        self._latch = Latch()

    def _finish(self, call: Call, outcome: Outcome) -> None:
        """A call has its outcome."""
        raise NotImplementedError

    def _take(self, call: Call, planned: Any, limit: float | None = None) -> None:
        """Carry out what an episode planned for a call, when its turn comes."""
        if type(planned) is Work:
            work = planned
        elif isinstance(planned, Generator):
            call.script = planned
            work = Work(nothing, label=call.name, exclusive=True, timeout=None)
        else:
            self._finish(call, planned)
            return
        call.work = work
        self._gate.enter(work, partial(self._run, call, limit))

    def _run(self, call: Call, limit: float | None, after: Any) -> Any:
        """The gate lets the call in; returns what the next of its chain runs after."""
        work = call.work
        assert work is not None
        if call.ended or (self._latch.closed and call.id):
            self._gate.leave(work)
            self._finish(call, FINISHED)
            return None
        if call.script is not None:
            self._advance(call, None, limit)
            return None
        running = call.running = self._runner.start(
            work,
            self._home,
            self._context,
            partial(self._finish, call),
            on_gone=partial(self._released, call),
            limit=limit if limit is not None else (work.timeout or self._limits.call_s),
            after=after,
            latch=self._latch if call.id else None,
        )
        return running

    def _advance(self, call: Call, value: Any, limit: float | None) -> None:
        """Run the next work of a script, or finish with what it returned."""
        assert call.work is not None
        try:
            work = call.script.send(value)
        except StopIteration as stop:
            self._finish(call, stop.value)  # first: if the episode is over now, whoever waits must not be let in
            self._gate.leave(call.work)
            return
        except Exception as exc:
            self._finish(call, self._broken(exc))
            self._gate.leave(call.work)
            return

        result: list[Any] = []

        def done(outcome: Any) -> None:
            if running.cut is not None:
                self._finish(call, outcome)
            result.append(outcome)

        def gone(ended: bool) -> None:
            if call.name == "setup" and not call.id:
                self._context = running.context
            if call.ended or not ended:
                call.script.close()
                self._released(call, ended)
            else:
                self._advance(call, result[0], limit)

        # a limit that is given is the whole script's
        left = None if limit is None else max(0.001, limit - (self._limits.clock() - call.started))
        running = call.running = self._runner.start(
            work,
            self._home,
            self._context,
            done,
            on_gone=gone,
            limit=left if left is not None else (work.timeout or self._limits.call_s),
        )

    def _released(self, call: Call, ended: bool) -> None:
        """The code of a call is gone, or has become a zombie."""
        assert call.work is not None
        running, call.running = call.running, None  # each knows the other: without a cycle, no work for the collector
        if not ended and self.on_hung is not None:
            # before others are let in: nothing more may run in a session that is lost
            words = f"'{call.work.label}' did not stop when it was cut; the session is lost"
            self.on_hung(self, failure("tool_hung", words, ran="yes"))
        self._gate.leave(call.work, running)

    def _broken(self, exc: Exception) -> Failure:
        """Our own code failed where an episode plans: never the end of the session, and never without an answer."""
        logger.error("planning in session %s failed", self.id, exc_info=exc)
        return failure("internal", f"the server failed: {type(exc).__name__}", ran="unknown")

    def _cut(self, call: Call, answer: Failure) -> None:
        if call.running is not None:
            self._runner.cut(call.running, answer)
        elif call.work is not None:
            self._gate.withdraw(call.work)
        self._finish(call, answer)


def play(plan: Plan | None) -> Script:
    """Carry out a plan within a script: `outcome = yield from play(episode.open())`."""
    if isinstance(plan, Work):
        outcome: Outcome = yield plan
        return outcome
    if isinstance(plan, Generator):
        return (yield from plan)
    return plan if plan is not None else Document(b"{}")


def nothing() -> None:
    """What a work that only holds a turn does."""
