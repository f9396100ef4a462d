"""Rules of tools: what is said of them to models, and what they return."""

from __future__ import annotations

import asyncio
import inspect
import re
from typing import Any

from ors.adapters.ors_output import tool_outcome
from ors.client.formats import convert_tools
from ors.conformance.inputs import is_schema, make_input
from ors.core.failures import Failure
from ors.environment import Environment, tool_table
from ors.errors import AuthoringError, ToolError
from ors.testing.judge import Judge, said
from ors.tools import ToolDefinition
from ors.types import ListToolsOutput, RunToolError, RunToolSuccess, ToolSpec

__all__ = ["call_tool", "check_tools", "tools_to_call"]

FORMATS = ("openai", "openai-chat", "anthropic", "google", "openrouter", "mcp")


def check_tools(judge: Judge) -> dict[str, ToolDefinition]:
    """The rules that need no episode; returns the tools."""
    cls: type[Environment] = judge.cls
    judge.looked_at("tools", "tools-none", "terminal")
    try:
        table = tool_table(cls)
    except AuthoringError as exc:
        judge.complain("tools", said(exc).removeprefix("AuthoringError: "), _named_in(cls, str(exc)))
        return {}
    listed = _listed(judge)
    if not table and not (listed and cls._call_tool is not Environment._call_tool):
        judge.complain("tools-none", "no method is marked with @tool", "")
    _check_terminal(judge, listed)
    for name, entry in table.items():
        if name not in {spec.name for spec in listed if spec != entry.spec}:
            check_spec(judge, name, entry.spec)
    for spec in listed:
        if spec.name not in table or spec != table[spec.name].spec:
            check_spec(judge, "list_tools", spec, f"of {spec.name!r}: ")
    return table


def _listed(judge: Judge) -> list[ToolSpec]:
    """What the class lists; that may be other than its tools."""
    try:
        listed = judge.cls.list_tools()
        specs = list(listed.tools if isinstance(listed, ListToolsOutput) else listed)
    except Exception as exc:
        judge.complain("tools", f"it raises {said(exc)}", "list_tools", exc)
        return []
    names = [spec.name for spec in specs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        judge.complain("tools", f"it lists {twice[0]!r} twice", "list_tools")
    return specs


def _check_terminal(judge: Judge, listed: list[ToolSpec]) -> None:
    cls: type[Environment] = judge.cls
    final, terminal = cls.is_assistant_message_final(), cls.terminal_tool()
    if final and terminal is None:
        judge.complain("terminal", "it returns True, and no tool takes the message", "is_assistant_message_final")
    elif terminal is not None and not final:
        words = f"it returns {final!r}, and {terminal.name!r} waits for the message"
        judge.complain("terminal", words, "is_assistant_message_final")
    elif terminal is not None and terminal.name in {spec.name for spec in listed}:
        judge.complain("terminal", f"it lists {terminal.name!r}, so that agents call it themselves", "list_tools")


def check_name(judge: Judge) -> None:
    """Whether an environment can have its name on a server."""
    judge.looked_at("name")
    try:
        name = judge.cls.name()
    except Exception as exc:
        judge.complain("name", f"it raises {said(exc)}", "name", exc)
        return
    if not isinstance(name, str) or not name:
        judge.complain("name", f"it is {name!r:.60}", "name")
    elif name.lower() in _ROUTES:
        judge.complain("name", f"{name!r} is a route of the server", "name")
    elif not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        judge.complain("name", f"{name!r:.60} cannot stand in a URL as it is", "name")


_ROUTES = frozenset(
    (
        *("create", "create_session", "delete", "delete_session", "docs", "health", "list_environments", "metadata"),
        *("metrics", "openapi.json", "ping", "ready", "status", "version"),
    )
)


def check_spec(judge: Judge, method: str, spec: ToolSpec, what: str = "") -> None:
    """Whether models and their providers can make use of a tool; `method` is where that is written."""
    _check_words(judge, method, spec, what)
    _check_schema(judge, method, spec, what)


def _named_in(cls: type, words: str) -> str:
    return next((name for name in dir(cls) if f".{name}" in words or f"'{name}'" in words), "")


def _check_words(judge: Judge, name: str, spec: ToolSpec, what: str) -> None:
    judge.looked_at("tool-doc", "parameter-doc")
    if not spec.description.strip():
        judge.complain("tool-doc", f"{what}it has no {'description' if what else 'docstring'}", name)
    properties = (spec.input_schema or {}).get("properties", {})
    silent = [key for key, schema in properties.items() if isinstance(schema, dict) and not schema.get("description")]
    if silent:
        judge.complain("parameter-doc", f"{what}nothing is said of {', '.join(map(repr, silent))}", name)


def _check_schema(judge: Judge, name: str, spec: ToolSpec, what: str) -> None:
    judge.looked_at("tool-schema", "tool-format")
    if spec.input_schema is not None and (wrong := is_schema(spec.input_schema)) is not None:
        judge.complain("tool-schema", f"{what}its schema is none: {wrong}", name)
        return
    for format in FORMATS:
        try:
            convert_tools([spec], format)
        except Exception as exc:
            judge.complain("tool-format", f"{what}{format} does not take it: {said(exc)}", name)


async def tools_to_call(judge: Judge, env: Environment, table: dict[str, ToolDefinition]) -> list[ToolSpec]:
    """The tools that this episode has: the shared ones, and those of its task."""
    own = await judge.attempt("task-tools", "list_task_tools", env.list_task_tools)
    if own is judge.FAILED:
        return []
    if not isinstance(own, ListToolsOutput):
        judge.complain("task-tools", f"it returns {type(own).__name__}, not ListToolsOutput", "list_task_tools")
        return []
    routed = type(env)._call_tool is not Environment._call_tool
    missing = [spec.name for spec in own.tools if spec.name not in table and not routed]
    if missing:
        judge.complain("task-tools", f"there is no tool {missing[0]!r}", "list_task_tools")
    for spec in own.tools:
        if spec.name not in missing and (spec.name not in table or spec != table[spec.name].spec):
            check_spec(judge, "list_task_tools", spec, f"of {spec.name!r}: ")
    shared = [entry.spec for entry in table.values() if entry.marks.shared]
    if routed:
        shared = [spec for spec in type(env).list_tools().tools if spec.name not in table] + shared
    return [*shared, *(spec for spec in own.tools if spec.name not in missing)]


async def _called(judge: Judge, env: Environment, name: str, made: dict[str, Any]) -> Any:
    entry = tool_table(type(env)).get(name)
    if entry.is_async if entry is not None else inspect.iscoroutinefunction(type(env)._call_tool):
        return await judge.stage.run(env._call_tool, name, made)
    # the body of a plain `def` runs on a thread, as on a server, and may block there
    return await judge.stage.run(lambda: _at_once(env._call_tool(name, made)))


def _at_once(result: Any) -> Any:
    return asyncio.run(result) if inspect.iscoroutine(result) else result


async def call_tool(judge: Judge, env: Environment, spec: ToolSpec) -> Any:
    """Call a tool with an input made from its schema; returns its output, or None. Complains of what is wrong."""
    made = make_input(spec.input_schema)
    if made is None:
        judge.passed_over("tool-output", f"no input could be made for {spec.name!r}")
        return None
    judge.looked_at("tool-output", "tool-raises", "tool-blocks", "reward")
    try:
        result = await _called(judge, env, spec.name, made)
    except ToolError:
        return None
    except TypeError as exc:
        if "expected ToolOutput" in str(exc):
            judge.complain("tool-output", f"for {made} it {str(exc).partition(' ')[2].partition(';')[0]}", spec.name)
        else:
            judge.complain("tool-raises", f"for {made} it raises {said(exc)}", spec.name, exc)
        return None
    except Exception as exc:
        judge.complain("tool-raises", f"for {made} it raises {said(exc)}", spec.name, exc)
        return None
    result = getattr(result, "root", result)
    if isinstance(result, RunToolError):
        judge.raised.append((spec.name, result.error))
    if not isinstance(result, RunToolSuccess):
        return None
    output = result.output
    outcome = tool_outcome(spec.name, output)
    if isinstance(outcome, Failure):
        rule = "reward" if "the reward" in outcome.detail else "tool-output"
        judge.complain(rule, f"for {made} it returned {outcome.detail.partition(' returned ')[2]}", spec.name)
        return None
    if not output.blocks:
        judge.complain("tool-blocks", f"for {made} it returned no block", spec.name)
    return output
