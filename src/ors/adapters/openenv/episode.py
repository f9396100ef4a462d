"""A session of an OpenEnv environment: one instance, reset as often as its client likes.

Synchronous code runs on the thread of the session: constructor, `reset`, `step`, `state` and `close`. Overrides of
`reset_async` and `step_async` run on the author loop.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ors.adapters.openenv.factory import Shape
from ors.adapters.openenv.wire import listed, observed, read_action, said, state_of, validation_failure
from ors.core.failures import Failure, failure
from ors.core.ports import Document, Plan, Script, Start, StepOutcome, Work
from ors.jsontext import dump

__all__ = ["OpenEnvEpisode"]


class OpenEnvEpisode:
    """One instance of an environment."""

    __slots__ = ("_closed", "_env", "_mcp", "_non_finite", "_offering", "_owed", "_shape")

    def __init__(self, offering: Any, start: Start) -> None:
        self._offering = offering
        # played by tools, NaN in an observation is an error there
        self._non_finite: Any = "constants" if start.kind == "tools" else "null"
        self._env: Any = None
        self._shape: Shape | None = None
        self._mcp: Any = None
        self._closed = False
        self._owed: list[Any] = []  # the instance, until its end begins; whoever takes it out runs that

    # Making one

    def open(self) -> Work:
        return Work(self._construct, label="the constructor")

    def _construct(self) -> Any:
        try:
            env = self._offering.factory.make()
        except BaseException as exc:
            return self._not_made(exc)
        return self._await_made(env) if inspect.isawaitable(env) else self._made(env)

    async def _await_made(self, env: Any) -> Any:
        try:
            made = self._made(await env)
        except BaseException as exc:
            return self._not_made(exc)
        return await made if inspect.isawaitable(made) else made

    def _made(self, env: Any) -> Any:
        name = self._offering.factory.name
        plays = callable(getattr(env, "reset", None)) and callable(getattr(env, "step", None))
        if isinstance(env, type) or not plays:
            words = f"'{name}' made {env!r:.100}, which is no environment: it has no reset() and step()"
            return failure("setup_failed", words, ran="yes")
        self._owed.append(env)
        self._env, self._shape = env, self._offering.shape(type(env))
        if self._shape.is_mcp:
            env._mode = self._offering.mode  # which of its tools there are
        if self._closed:  # given up while it was made; cut code goes on on no other loop
            released = self._release()
            return asyncio.run(released) if inspect.iscoroutine(released) else released
        return self._connect() if self._shape.is_mcp else Document(b"{}")

    def _not_made(self, exc: BaseException) -> Failure:
        offering = self._offering
        words = said(exc, offering.errors, "the environment could not be made")
        return Failure("setup_failed", words, ran="yes", about={"factory_name": offering.factory.name})

    async def _connect(self) -> Any:
        """Keep the connection to its own tools open, as long as the instance lives."""
        try:
            session = self._env.mcp_session()
            await session.__aenter__()
            self._mcp = session
        except BaseException as exc:
            return self._not_made(exc)
        return Document(b"{}")

    # Playing

    def reset(self, start: Start) -> Work | Failure:
        offering, shape = self._offering, self._shape
        if shape is None:
            return _NOT_MADE
        given = dict(start.options)
        if start.seed is not None:
            given["seed"] = start.seed
        dropped = sorted(given.keys() - shape.reset) if shape.reset is not None else []
        notes = offering.note_dropped(dropped, shape) if dropped else None
        if isinstance(notes, Failure):
            return notes
        keywords = {key: value for key, value in given.items() if key not in dropped} if dropped else given
        keywords |= _chosen(start, shape, keywords, offering.tasks is not None)
        return self._work(shape.reset_method, lambda method: method(**keywords), notes)

    def step(self, action: Any, timeout_s: float | None, options: Mapping[str, Any] = {}) -> Work | Failure:
        offering, shape = self._offering, self._shape
        if shape is None:
            return _NOT_MADE
        keywords = dict(options)
        keywords.pop("action", None)
        if timeout_s is not None:
            keywords["timeout_s"] = timeout_s
        if shape.step is not None:
            keywords = {key: value for key, value in keywords.items() if key in shape.step}

        def call(method: Any) -> Any:
            try:
                read = read_action(action, offering.action_model, offering.mcp, shape.is_mcp)
            except ValidationError as exc:  # of the client's making, unlike one in the environment itself
                return validation_failure(exc)
            except Exception as exc:
                words = said(exc, offering.errors, "the action cannot be read")
                return failure("invalid_input", words or type(exc).__name__)
            return method(read, **keywords)

        name = shape.step_method
        if shape.steps_aside and not offering.mcp[1]:
            word = action.get("type") if isinstance(action, dict) else None
            name = name if word in ("list_tools", "call_tool") else "_step_impl"
        work = self._work(name, call, None)
        if timeout_s is not None:
            # an environment that looks to the time itself comes first
            told = "timeout_s" in keywords
            work.timeout = timeout_s + (min(1.0, max(0.05, timeout_s / 4)) if told else 0.0)
        return work

    def _work(self, name: str, call: Any, notes: dict[str, Any] | None) -> Work:
        """Call a method of the instance and make an outcome of what it returns."""

        def run() -> Any:
            try:
                value = call(getattr(self._env, name))
                return later(value) if inspect.isawaitable(value) else self._observed(name, value, notes)
            except BaseException as exc:
                return self._raised(name, exc)

        async def later(value: Any) -> Any:
            try:
                return self._observed(name, await value, notes)
            except BaseException as exc:
                return self._raised(name, exc)

        async def run_async() -> Any:
            outcome = run()
            return await outcome if inspect.isawaitable(outcome) else outcome

        is_async = name.endswith("_async")
        return Work(run_async if is_async else run, label=_label(name), is_async=is_async)

    def _observed(self, name: str, value: Any, notes: dict[str, Any] | None) -> Any:
        if isinstance(value, Failure):
            return value
        outcome = observed(_label(name), value, self._non_finite)
        if notes is not None and isinstance(outcome, StepOutcome):
            return StepOutcome(outcome.observation, outcome.reward, outcome.done, outcome.metadata, notes)
        return outcome

    def state(self) -> Work | Failure:
        return Work(self._state, label="state") if self._shape is not None else _NOT_MADE

    def _state(self) -> Any:
        try:
            return Document(dump(state_of(self._env.state)))
        except BaseException as exc:
            return self._raised("state", exc)

    def own_tools(self) -> Work | Failure:
        if self._shape is None or not self._shape.is_mcp:
            return _NOT_MADE if self._shape is None else failure("not_supported", "the environment has no tools")
        return Work(self._own_tools, label="tools/list", is_async=True)

    async def _own_tools(self) -> Any:
        try:
            return Document(dump(await listed(self._env)))
        except BaseException as exc:
            return self._raised("tools/list", exc)

    def _raised(self, name: str, exc: BaseException) -> Failure:
        return failure("tool_failed", said(exc, self._offering.errors, f"{_label(name)} failed"), ran="yes")

    # The end

    def close(self, why: str) -> Plan | None:
        self._closed = True
        if self._mcp is not None:
            return self._disconnect_and_release()
        return Work(self._release, label="close") if self._owed else None

    def _disconnect_and_release(self) -> Script:
        """Each on the thread where its counterpart ran."""
        yield Work(self._disconnect, label="close", is_async=True)
        return (yield Work(self._release, label="close"))  # type: ignore[no-any-return]

    async def _disconnect(self) -> Any:
        session, self._mcp = self._mcp, None
        try:
            await session.__aexit__(None, None, None)
        except BaseException as exc:
            return self._raised("close", exc)
        return Document(b"{}")

    def _release(self) -> Any:
        try:
            env = self._owed.pop()
        except IndexError:
            return Document(b"{}")
        try:
            close = getattr(env, "close", None)
            result = close() if callable(close) else None
        except BaseException as exc:
            return self._raised("close", exc)
        return self._await_released(result) if inspect.isawaitable(result) else Document(b"{}")

    async def _await_released(self, result: Any) -> Any:
        try:
            await result
        except BaseException as exc:
            return self._raised("close", exc)
        return Document(b"{}")


def _label(method: str) -> str:
    return "step" if method == "_step_impl" else method.removesuffix("_async")


_NOT_MADE = failure("internal", "the environment was not made")


def _chosen(start: Start, shape: Shape, given: dict[str, Any], has_tasks: bool) -> dict[str, Any]:
    """What tells `reset` of the task, where that was chosen by its place or given in full, in the words it takes.

    Those are `split` and `index`, `task_spec`, or the task's own fields by their names; the tasks of an environment
    that has none of its own are seeds, which come as such.
    """
    names = shape.reset_keywords
    chosen: dict[str, Any] = {}
    if start.secrets and ("secrets" in names or shape.reset is None):
        chosen["secrets"] = start.secrets.reveal()
    if not has_tasks or (start.ref is None and start.task is None):
        return chosen
    takes_any = shape.reset is None and not {"split", "index", "task_spec"} & set(names)
    if start.ref is not None and (takes_any or {"split", "index"} <= set(names)):
        chosen |= {"split": start.ref.split, "index": start.ref.index}
    elif "task_spec" in names or takes_any:
        chosen["task_spec"] = start.task
    elif isinstance(start.task, dict):
        chosen |= {key: value for key, value in start.task.items() if key in names}
    return {key: value for key, value in chosen.items() if key not in given}
