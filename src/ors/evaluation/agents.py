"""Agents: functions that play an episode, asynchronous or not."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

from ors.errors import ORSError
from ors.evaluation.jobs import Job
from ors.evaluation.results import Result
from ors.evaluation.sessions import AgentSession, SyncAgentSession

__all__ = ["Agent", "AgentError"]


class AgentError(ORSError):
    """What was named is no agent; the message says why."""


class Agent:
    """A function under the name that its results carry.

    A class is made once, without arguments, and its instance is the function: the place for what is shared by all
    episodes (a model's client). Raises AgentError for what cannot be called with a session.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        if isinstance(function, type):
            try:
                inspect.signature(function).bind()
            except TypeError as exc:
                raise AgentError(f"the class {function.__name__} is made without arguments: {exc}") from None
            function = function()
        if not callable(function):
            raise AgentError(f"'{name}' is of type {type(function).__name__}; an agent is a function")
        try:
            inspect.signature(function).bind(None)
        except TypeError as exc:
            raise AgentError(f"the agent '{name}' is called with a session and nothing else: {exc}") from None
        except ValueError:  # it has no signature that can be read
            pass
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            raise AgentError(f"'{name}' is a generator; an agent calls tools itself, and does not yield")
        self.name = name
        self._function = function
        self._async = _is_async(function)

    async def play(self, session: AgentSession, job: Job, result: Result) -> None:
        """Let the agent play. Raises what it raises."""
        if self._async:
            await self._function(session)
            return
        loop = asyncio.get_running_loop()
        there = SyncAgentSession(session, loop, job, result)
        try:
            returned = await _in_thread(functools.partial(self._function, there), loop)
        finally:
            there.end()
        if inspect.isawaitable(returned):
            if inspect.iscoroutine(returned):
                returned.close()
            raise AgentError(f"the agent '{self.name}' returned something to await; write it as `async def`")


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _in_thread(work: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> asyncio.Future[Any]:
    """Run code in a thread that nobody has to wait for: code that hangs must not keep the process from ending."""
    done: asyncio.Future[Any] = loop.create_future()

    def tell(value: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(value)
        elif isinstance(error, StopIteration):
            done.set_exception(RuntimeError("the agent raised StopIteration"))
        else:
            done.set_exception(error)

    def run() -> None:
        value, error = None, None
        try:
            value = context.run(work)
        except BaseException as exc:
            error = exc
        try:
            loop.call_soon_threadsafe(tell, value, error)
        except RuntimeError:
            pass  # the loop is closed: the evaluation has ended without this episode

    context = contextvars.copy_context()
    threading.Thread(target=run, name="ors-agent", daemon=True).start()
    return done
