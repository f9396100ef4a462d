"""The session that an agent plays in: a client's session that keeps a record of what came of the episode."""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import random
import time
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from ors.client import AsyncSession
from ors.errors import ClientError, ProtocolError, SessionTerminatedError, ToolCallError
from ors.evaluation.jobs import Job
from ors.evaluation.results import Result
from ors.types import ImageBlock, JSONValue, TerminalToolSpec, TextBlock, ToolOutput

__all__ = ["AgentSession", "Stopped", "SyncAgentSession"]

_T = TypeVar("_T")


class Stopped(BaseException):
    """The episode is over for its agent, whatever the agent catches."""


class _Place:
    """What an agent is told of its episode."""

    def __init__(self, job: Job, result: Result) -> None:
        _, self.env, self.split, task, self.repeat = job.key
        self.index: int | None = task if isinstance(task, int) else None
        self.seed = job.seed
        self.random = random.Random(job.seed)  # noqa: S311 - no secret
        self.notes = result.notes


class AgentSession(_Place):
    """What an `async def` agent is given: one episode.

    env, split, index, repeat: what is played. seed: a number of this episode's own, the same whenever it is played
    with the same `--seed`; random: a `random.Random` made of it. notes: a dict that is kept with the result. The task
    itself is not here: it may hold the answer.
    """

    def __init__(self, session: AsyncSession, job: Job, result: Result, max_calls: int | None = None) -> None:
        super().__init__(job, result)
        self._session = session
        self._result = result
        self._left = math.inf if max_calls is None else max_calls
        self.broken: ClientError | None = None

    @property
    def finished(self) -> bool:
        """Whether a call has ended the episode."""
        return self._session.finished

    @property
    def rewards(self) -> list[float]:
        """What the calls paid so far."""
        return list(self._result.rewards)

    async def get_prompt(self) -> list[TextBlock | ImageBlock]:
        """The prompt."""
        return await self._noting(self._session.get_prompt())

    async def list_tools(self, format: Any = None) -> Any:
        """The tools of this task, as `ToolSpec`s or in the format of a model provider."""
        return await self._noting(self._session.list_tools(format))

    async def terminal_tool(self) -> TerminalToolSpec | None:
        """The tool that takes the agent's final message, if the environment has one."""
        return await self._noting(self._session.terminal_tool())

    async def call_tool(self, tool_name: str, input: Mapping[str, JSONValue] = {}) -> ToolOutput:
        """Call a tool. Raises ToolCallError where the call was wrong: show the agent its words, and go on."""
        if self._left <= 0:
            self._result.stopped = "max_calls"
            raise Stopped
        self._left -= 1
        started = time.perf_counter()
        try:
            output = await self._noting(self._session.call_tool(tool_name, input))
        finally:
            self._result.call_seconds.append(time.perf_counter() - started)
        if output.reward is not None:
            if not math.isfinite(output.reward):
                self.broken = ProtocolError(f"{tool_name} paid {output.reward}, which is no reward", kind="bad_reward")
                raise self.broken
            self._result.rewards.append(float(output.reward))
        return output

    async def _noting(self, work: Coroutine[Any, Any, _T]) -> _T:
        try:
            return await work
        except ToolCallError:
            self._result.refused += 1
            raise
        except ClientError as exc:
            # an agent that catches everything must not turn this into an episode that was played
            self.broken = self.broken or exc
            raise


class SyncAgentSession(_Place):
    """What a plain function is given: an `AgentSession` without `await`. The function has a thread of its own."""

    def __init__(self, inner: AgentSession, loop: asyncio.AbstractEventLoop, job: Job, result: Result) -> None:
        super().__init__(job, result)
        self._inner = inner
        self._loop = loop
        self._over = False
        self._waiting: concurrent.futures.Future[Any] | None = None

    @property
    def finished(self) -> bool:
        """Whether a call has ended the episode."""
        return self._inner.finished

    @property
    def rewards(self) -> list[float]:
        """What the calls paid so far."""
        return self._inner.rewards

    def get_prompt(self) -> list[TextBlock | ImageBlock]:
        """The prompt."""
        return self._do(self._inner.get_prompt())

    def list_tools(self, format: Any = None) -> Any:
        """The tools of this task, as `ToolSpec`s or in the format of a model provider."""
        return self._do(self._inner.list_tools(format))

    def terminal_tool(self) -> TerminalToolSpec | None:
        """The tool that takes the agent's final message, if the environment has one."""
        return self._do(self._inner.terminal_tool())

    def call_tool(self, tool_name: str, input: Mapping[str, JSONValue] = {}) -> ToolOutput:
        """Call a tool. Raises ToolCallError where the call was wrong: show the agent its words, and go on."""
        return self._do(self._inner.call_tool(tool_name, input))

    def end(self) -> None:
        """Nobody waits for this episode any more: the thread learns of it at its next call."""
        self._over = True
        if self._waiting is not None:
            self._waiting.cancel()

    def _do(self, work: Coroutine[Any, Any, _T]) -> _T:
        if self._over:
            work.close()
            raise SessionTerminatedError("the episode is over", kind="closed")
        waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._waiting = waiting
        try:
            return waiting.result()
        except concurrent.futures.CancelledError:
            raise SessionTerminatedError("the episode is over", kind="closed") from None
        finally:
            self._waiting = None
