"""`ors.Environment` classes → offerings. Author code is never called here, only in the works that are handed out."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from ors.adapters.class_tasks import ClassTasks
from ors.adapters.explain import ErrorDetail, explain
from ors.adapters.ors_output import prompt_document, tool_outcome
from ors.core.failures import Failure, failure
from ors.core.ports import Document, OfferingSpec, Script, Start, ToolOutcome, Work
from ors.core.schema_check import SchemaCheck
from ors.environment import Environment, tool_table
from ors.errors import AuthoringError, ToolError
from ors.jsontext import dump
from ors.tools import InvalidInput, Marks, ToolDefinition
from ors.types import ListToolsOutput, RunToolError, RunToolSuccess, ToolSpec

__all__ = ["ORSEpisode", "ORSOffering"]


class ORSOffering:
    """A class of environments. Raises AuthoringError when it cannot be served as it is written."""

    def __init__(self, cls: type[Environment], *, errors: ErrorDetail = "exception") -> None:
        if not (isinstance(cls, type) and issubclass(cls, Environment)):
            raise AuthoringError(f"{cls!r} is no ors.Environment class; pass the class itself, not an instance")
        missing = sorted(getattr(cls, "__abstractmethods__", ()))
        if missing:
            raise AuthoringError(f"{cls.__name__} does not define {', '.join(missing)}; every environment must")
        self.cls = cls
        self.errors = errors
        self.table = tool_table(cls)
        self.affinity = cls.thread_affinity
        if self.affinity not in ("any", "session", "class"):
            raise AuthoringError(
                f"{cls.__name__}.thread_affinity is {self.affinity!r}; use 'any', 'session' or 'class'"
            )
        self.listed = _listed(cls)
        if not self.table and not self.listed and cls._call_tool is Environment._call_tool:
            raise AuthoringError(
                f"Environment '{cls.name()}' has no tools defined; mark at least one method with @tool"
            )
        # what a session may call without asking its task
        self.shared = {spec.name: spec for spec in self.listed}
        self.custom_call = cls._call_tool is not Environment._call_tool
        self.custom_async = inspect.iscoroutinefunction(cls._call_tool)
        self.per_task = cls.list_task_tools is not Environment.list_task_tools
        self.constructor = _accepted_keywords(cls)
        self.tasks = ClassTasks(cls, errors)
        terminal = cls.terminal_tool()
        self.spec = OfferingSpec(
            name=cls.name(),
            kind="tools",
            tools=dump([spec.model_dump() for spec in self.listed]),
            terminal=dump(terminal.model_dump() if terminal is not None else None),
            description=inspect.getdoc(cls) if cls.__doc__ else "",  # type: ignore[arg-type]
            lists_tasks=self.tasks.lists,
        )
        self.terminal = terminal.name if terminal is not None else None
        self.checks: dict[str, SchemaCheck] = {}

    def episode(self, start: Start) -> ORSEpisode:
        return ORSEpisode(self, start)


class ORSEpisode:
    """One instance of an environment class."""

    __slots__ = ("_closed", "_instance", "_offering", "_owed", "_start", "_task_tools")

    def __init__(self, offering: ORSOffering, start: Start) -> None:
        self._offering = offering
        self._start: Start | None = start
        self._instance: Any = None
        self._task_tools: dict[str, ToolSpec] | None = None
        self._closed = False
        self._owed: list[Any] = []  # the instance, until its teardown begins; whoever takes it out runs that

    def open(self) -> Work:
        return Work(self._construct, label="setup")

    def _construct(self) -> Any:
        offering, start = self._offering, self._start
        assert start is not None
        self._start = None  # the secrets are the instance's own affair from here on
        keywords: dict[str, Any] = {"task_spec": start.task, "secrets": start.secrets.reveal()}
        try:
            instance = offering.cls(**{key: keywords[key] for key in offering.constructor})
            self._owed.append(instance)
            self._instance = instance
            result = instance.setup() if not self._closed else None
        except BaseException as exc:
            return _at_once(self._set_up(exc))
        return self._finish_setup(result) if inspect.isawaitable(result) else _at_once(self._set_up())

    async def _finish_setup(self, result: Any) -> Any:
        failed = None
        try:
            await result
        except BaseException as exc:
            failed = exc
        outcome = self._set_up(failed)
        return await outcome if inspect.isawaitable(outcome) else outcome

    def _set_up(self, exc: BaseException | None = None) -> Any:
        if self._closed:
            # it was given up while it ran: if there was nothing to tear down at that time, it is done here
            return self._tear_down()
        if exc is None:
            return Document(b"{}")
        return failure("setup_failed", explain(exc, self._offering.errors, "Internal Server Error"), ran="yes")

    def close(self, why: str) -> Work | None:
        self._closed = True
        return Work(self._tear_down, label="teardown") if self._owed else None

    def _tear_down(self) -> Any:
        try:
            instance = self._owed.pop()
        except IndexError:
            return Document(b"{}")
        try:
            result = instance.teardown()
        except BaseException as exc:
            return self._raised("teardown", exc)
        return self._finish_tear_down(result) if inspect.isawaitable(result) else Document(b"{}")

    async def _finish_tear_down(self, result: Any) -> Any:
        try:
            await result
        except BaseException as exc:
            return self._raised("teardown", exc)
        return Document(b"{}")

    def prompt(self) -> Work:
        return Work(lambda: self._ask("get_prompt", self._prompt_of), label="get_prompt")

    def _prompt_of(self, value: Any) -> Any:
        return prompt_document(f"{self._offering.cls.__name__}.get_prompt", value)

    def tools(self) -> Work:
        return Work(lambda: self._ask("list_task_tools", self._tools_of), label="list_task_tools")

    def _tools_of(self, value: Any) -> Any:
        """All tools of this task: the shared ones, then what the task says, names unique."""
        offering = self._offering
        specs = value.tools if hasattr(value, "tools") else value
        try:
            listed = ListToolsOutput.model_validate({"tools": [_spec_data(spec) for spec in specs]}).tools
        except (ValueError, TypeError) as exc:
            words = f"{offering.cls.__name__}.list_task_tools returned no list of tools: {exc}"
            return failure("bad_output", words, ran="yes")
        if not offering.per_task:
            hidden = (entry for entry in offering.table.values() if not entry.marks.shared and not entry.marks.terminal)
            listed = [entry.spec for entry in hidden]
        task_tools = {spec.name: spec for spec in listed if spec.name not in offering.shared}
        self._task_tools = task_tools
        try:
            return Document(dump([spec.model_dump() for spec in (*offering.listed, *task_tools.values())]))
        except ValueError as exc:
            return failure("bad_output", f"list_task_tools: {exc}", ran="yes")

    def _ask(self, label: str, finish: Callable[[Any], Any]) -> Any:
        """Call a method that takes nothing, and make a document of what it returns."""
        try:
            value = getattr(self._instance, label)()
        except BaseException as exc:
            return self._raised(label, exc)
        return self._await(label, value, finish) if inspect.isawaitable(value) else self._done(label, finish, value)

    async def _await(self, label: str, value: Any, finish: Callable[[Any], Any]) -> Any:
        try:
            value = await value
        except BaseException as exc:
            return self._raised(label, exc)
        return self._done(label, finish, value)

    def _done(self, label: str, finish: Callable[[Any], Any], value: Any) -> Any:
        try:
            return finish(value)
        except BaseException as exc:  # the author's own objects are read while this is written
            return self._raised(label, exc)

    def _raised(self, label: str, exc: BaseException) -> Failure:
        kind = "prompt_failed" if label == "get_prompt" else "tool_failed"
        return failure(kind, explain(exc, self._offering.errors, f"{label} failed"), ran="yes")

    # Calls

    def call(self, name: str, input: Any) -> Work | Script | Failure:
        offering = self._offering
        spec = offering.shared.get(name)
        if spec is None and name != offering.terminal:
            if self._task_tools is None or name not in self._task_tools:
                return self._call_after_listing(name, input)
            spec = self._task_tools[name]
        return self._work(name, spec, input)

    def _call_after_listing(self, name: str, input: Any) -> Script:
        """A tool that is not shared may be called if the task lists it, so the task is asked first."""
        listed = yield self.tools()
        if isinstance(listed, Failure):
            return listed
        spec = (self._task_tools or {}).get(name)
        if spec is None:
            return _unknown(name)
        work = self._work(name, spec, input)
        if isinstance(work, Failure):
            return work
        outcome: ToolOutcome | Failure = yield work
        return outcome

    def _work(self, name: str, spec: ToolSpec | None, input: Any) -> Work | Failure:
        offering = self._offering
        entry = offering.table.get(name)
        if offering.custom_call:
            marks = entry.marks if entry is not None else Marks()
            call = self._call_custom_async if offering.custom_async else self._call_custom
            return Work(
                lambda: call(name, spec, input),
                label=name,
                is_async=offering.custom_async,
                serial=name,
                concurrent=marks.concurrent,
                exclusive=marks.exclusive,
                timeout=marks.timeout,
            )
        if entry is None:
            return failure("tool_failed", f"'{name}' is listed, but {offering.cls.__name__} has no such tool", ran="no")
        marks = entry.marks
        run = self._run_async if entry.is_async else self._run
        return Work(
            lambda: run(entry, input),
            label=name,
            is_async=entry.is_async,
            serial=name,
            concurrent=marks.concurrent,
            exclusive=marks.exclusive,
            timeout=marks.timeout,
        )

    def _method(self, entry: ToolDefinition) -> Any:
        instance = self._instance
        return getattr(instance if isinstance(instance, entry.owner) else instance._tool_owner(entry), entry.name)

    async def _run_async(self, entry: ToolDefinition, input: Any) -> Any:
        try:
            args, kwargs = entry.arguments(input)
            return tool_outcome(entry.name, await self._method(entry)(*args, **kwargs))
        except BaseException as exc:
            return self._call_raised(entry.name, exc)

    def _run(self, entry: ToolDefinition, input: Any) -> Any:
        try:
            args, kwargs = entry.arguments(input)
            output = self._method(entry)(*args, **kwargs)
            return self._resume(entry.name, output) if inspect.isawaitable(output) else tool_outcome(entry.name, output)
        except BaseException as exc:
            return self._call_raised(entry.name, exc)

    async def _resume(self, name: str, output: Any) -> Any:
        try:
            return tool_outcome(name, await output)
        except BaseException as exc:
            return self._call_raised(name, exc)

    def _call_custom(self, name: str, spec: ToolSpec | None, input: Any) -> Any:
        """The author routes calls with a `_call_tool` of their own; the listed schema checks the input."""
        try:
            if spec is not None:
                check = self._offering.checks.get(name)
                if check is None or check.schema != spec.input_schema:
                    check = self._offering.checks[name] = SchemaCheck(spec.input_schema)
                if (wrong := check.describe(input)) is not None:
                    return failure("invalid_input", f"Tool input validation error: {wrong}")
            result = self._instance._call_tool(name, input)
            return self._resume_custom(name, result) if inspect.isawaitable(result) else _custom_outcome(name, result)
        except BaseException as exc:
            return self._call_raised(name, exc)

    async def _call_custom_async(self, name: str, spec: ToolSpec | None, input: Any) -> Any:
        outcome = self._call_custom(name, spec, input)
        return await outcome if inspect.isawaitable(outcome) else outcome

    async def _resume_custom(self, name: str, result: Any) -> Any:
        try:
            return _custom_outcome(name, await result)
        except BaseException as exc:
            return self._call_raised(name, exc)

    def _call_raised(self, name: str, exc: BaseException) -> Failure:
        if isinstance(exc, InvalidInput):
            return failure("invalid_input", str(exc))
        if isinstance(exc, ToolError):
            # the author's words to the agent, whatever is told of other exceptions
            words = explain(exc, "exception", "").removeprefix(f"{type(exc).__name__}: ")
            return failure("tool_error", f"Tool '{name}' failed: {words}", ran="yes")
        return failure("tool_failed", explain(exc, self._offering.errors, f"Tool '{name}' failed"), ran="yes")


def _at_once(outcome: Any) -> Any:
    """The teardown of what came about after it was given up: cut code goes on on no other loop, so it has its own."""
    return asyncio.run(outcome) if inspect.iscoroutine(outcome) else outcome


def _custom_outcome(name: str, result: Any) -> ToolOutcome | Failure:
    """What an author's `_call_tool` returned: one of the two forms, a RunToolOutput that holds one, or an output."""
    result = getattr(result, "root", result)
    if isinstance(result, RunToolError):
        known = {"not_found": "unknown_tool", "input_validation": "invalid_input"}
        return failure(known.get(result.reason or "", "tool_error"), result.error, ran="yes")
    return tool_outcome(name, result.output if isinstance(result, RunToolSuccess) else result)


def _unknown(name: str) -> Failure:
    return failure("unknown_tool", f"'{name[:200]}' is not a valid tool")


def _listed(cls: type[Environment]) -> list[ToolSpec]:
    listed = cls.list_tools()
    specs = listed.tools if isinstance(listed, ListToolsOutput) else listed
    seen: set[str] = set()
    for spec in specs:
        if spec.name in seen:
            raise AuthoringError(f"{cls.__name__}.list_tools lists '{spec.name}' twice; names are unique")
        seen.add(spec.name)
    return list(specs)


def _spec_data(spec: Any) -> Any:
    return spec.model_dump() if hasattr(spec, "model_dump") else spec


def _accepted_keywords(cls: type[Environment]) -> tuple[str, ...]:
    """Which of `task_spec` and `secrets` the constructor takes."""
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        return ("task_spec", "secrets")
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return ("task_spec", "secrets")
    accepted = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    needed = {p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    if extra := needed - {"task_spec", "secrets"}:
        raise AuthoringError(
            f"{cls.__name__}.__init__ needs {', '.join(sorted(extra))}; a server makes it with "
            "task_spec and secrets only: give the others defaults"
        )
    return tuple(name for name in ("task_spec", "secrets") if name in accepted)
