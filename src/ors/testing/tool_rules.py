"""Rules of tools: what is said of them to models, and what they return."""

from __future__ import annotations

import asyncio
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
    if not table:
        judge.complain("tools-none", "no method is marked with @tool", "")
    final = cls.is_assistant_message_final()
    if final and cls.terminal_tool() is None:
        judge.complain("terminal", "it returns True, and no tool takes the message", "is_assistant_message_final")
    for name, entry in table.items():
        _check_words(judge, name, entry.spec)
        _check_schema(judge, name, entry.spec)
    return table


def _named_in(cls: type, words: str) -> str:
    return next((name for name in dir(cls) if f".{name}" in words or f"'{name}'" in words), "")


def _check_words(judge: Judge, name: str, spec: ToolSpec) -> None:
    judge.looked_at("tool-doc", "parameter-doc")
    if not spec.description.strip():
        judge.complain("tool-doc", "it has no docstring", name)
    properties = (spec.input_schema or {}).get("properties", {})
    silent = [key for key, schema in properties.items() if isinstance(schema, dict) and not schema.get("description")]
    if silent:
        judge.complain("parameter-doc", f"nothing is said of {', '.join(map(repr, silent))}", name)


def _check_schema(judge: Judge, name: str, spec: ToolSpec) -> None:
    judge.looked_at("tool-schema", "tool-format")
    if spec.input_schema is not None and (wrong := is_schema(spec.input_schema)) is not None:
        judge.complain("tool-schema", f"its schema is none: {wrong}", name)
        return
    for format in FORMATS:
        try:
            convert_tools([spec], format)
        except Exception as exc:
            judge.complain("tool-format", f"{format} does not take it: {said(exc)}", name)


async def tools_to_call(judge: Judge, env: Environment, table: dict[str, ToolDefinition]) -> list[ToolSpec]:
    """The tools that this episode has: the shared ones, and those of its task."""
    own = await judge.attempt("task-tools", "list_task_tools", env.list_task_tools)
    if own is judge.FAILED:
        return []
    if not isinstance(own, ListToolsOutput):
        judge.complain("task-tools", f"it returns {type(own).__name__}, not ListToolsOutput", "list_task_tools")
        return []
    missing = [spec.name for spec in own.tools if spec.name not in table]
    if missing:
        judge.complain("task-tools", f"there is no tool {missing[0]!r}", "list_task_tools")
    shared = [entry.spec for entry in table.values() if entry.marks.shared]
    return [*shared, *(spec for spec in own.tools if spec.name in table)]


async def _called(judge: Judge, env: Environment, name: str, made: dict[str, Any]) -> Any:
    if tool_table(type(env))[name].is_async:
        return await judge.stage.run(env._call_tool, name, made)
    # the body of a plain `def` runs on a thread, as on a server, and may block there
    return await judge.stage.run(lambda: asyncio.run(env._call_tool(name, made)))


async def call_tool(judge: Judge, env: Environment, spec: ToolSpec) -> Any:
    """Call a tool with an input made from its schema; returns its output, or None. Complains of what is wrong."""
    made = make_input(spec.input_schema)
    if made is None:
        judge.passed_over("tool-output", f"no input could be made for {spec.name!r}")
        return None
    judge.looked_at("tool-output", "tool-raises", "reward")
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
    if isinstance(result, RunToolError) or not isinstance(result, RunToolSuccess):
        return None
    output = result.output
    outcome = tool_outcome(spec.name, output)
    if isinstance(outcome, Failure):
        rule = "reward" if "the reward" in outcome.detail else "tool-output"
        judge.complain(rule, f"for {made} it returned {outcome.detail.partition(' returned ')[2]}", spec.name)
        return None
    return output
