"""The rules about tools as they are listed: names, words, schemas, and whether every provider takes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ors.client.formats import FORMATS, FormatError, convert_tools
from ors.conformance.inputs import is_schema
from ors.environment import tool_table
from ors.testing.inspection import Inspection, words_of
from ors.types import ToolSpec

__all__ = ["check_terminal", "check_tools"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def check_tools(look: Inspection, specs: Sequence[ToolSpec], *, checked: set[str]) -> None:
    """Check tools that are listed for every task or for one. Tools whose names are in `checked` were looked at."""
    for spec in specs:
        if spec.name in checked:
            continue
        checked.add(spec.name)
        look.seen("tool-name", "tool-docstring", "tool-schema", "tool-parameters")
        named = bool(_NAME.fullmatch(spec.name))
        if not named:
            _about(look, "tool-name", spec, f"'{spec.name}' is a name that model providers refuse")
        if not spec.description.strip():
            _about(look, "tool-docstring", spec, "the agent reads nothing about it")
        schema: Any = spec.input_schema
        if schema is not None and (wrong := _schema_fault(schema)) is not None:
            _about(look, "tool-schema", spec, f"its input_schema is no JSON Schema of an object: {wrong}")
            continue
        silent = [name for name, part in _properties(schema).items() if not _described(part, schema)]
        if silent:
            several = "parameters say" if len(silent) > 1 else "parameter says"
            _about(look, "tool-parameters", spec, f"the {several} nothing of what is meant: {', '.join(silent)}")
        if named:
            _check_formats(look, spec)


def _about(look: Inspection, id: str, spec: ToolSpec, message: str) -> None:
    """Complain of a tool: at its method, or where it is listed."""
    entry = tool_table(look.cls).get(spec.name)
    if entry is not None and entry.spec == spec:
        look.complain(id, message, spec.name, owner=entry.owner if entry.owner in look.own.classes else look.cls)
    else:
        lister = "list_task_tools" if "list_task_tools" in _own_names(look) else "list_tools"
        look.complain(id, f"tool '{spec.name}': {message}", lister)


def _own_names(look: Inspection) -> set[str]:
    return {name for cls in look.own.classes for name in vars(cls)}


def _schema_fault(schema: Any) -> str | None:
    if (wrong := is_schema(schema)) is not None:
        return wrong
    kind = schema.get("type")
    if kind is not None and kind != "object":
        return f"its type is {kind!r}, not 'object'"
    properties = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in properties]
    if missing and "properties" in schema and not schema.get("additionalProperties"):
        return f"it requires {', '.join(map(repr, missing))}, which it does not describe"
    return None


def _properties(schema: Any) -> Mapping[str, Any]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _described(part: Any, root: Any) -> bool:
    if not isinstance(part, Mapping):
        return True
    if part.get("description"):
        return True
    ref = part.get("$ref")
    if isinstance(ref, str) and ref.startswith("#/$defs/"):
        target = root.get("$defs", {}).get(ref.removeprefix("#/$defs/"), {})
        return bool(target.get("description"))
    return any(_described(option, root) for key in ("allOf", "anyOf") for option in part.get(key, ()))


def _check_formats(look: Inspection, spec: ToolSpec) -> None:
    look.seen("tool-formats")
    refused: dict[str, list[str]] = {}
    for name in FORMATS:
        try:
            convert_tools([spec], name)
        except FormatError as exc:
            refused.setdefault(str(exc), []).append(name)
        except Exception as exc:
            refused.setdefault(words_of(exc), []).append(name)
    if refused:
        words = "; ".join(f"{', '.join(names)}: {why}" for why, names in refused.items())
        _about(look, "tool-formats", spec, f"it cannot be said in each format: {words}")


def check_terminal(look: Inspection, listed: Sequence[ToolSpec]) -> None:
    """Whether the three methods about the last message agree."""
    cls: Any = look.cls
    look.seen("tool-terminal")
    final = look.run("is_assistant_message_final", lambda: cls.is_assistant_message_final())
    terminal = look.run("terminal_tool", lambda: cls.terminal_tool())
    for method, outcome in (("is_assistant_message_final", final), ("terminal_tool", terminal)):
        if outcome.error is not None:
            spot = look.own.raised_at(outcome.error)
            look.complain("tool-terminal", f"asked of the class it raised {words_of(outcome.error)}", method, spot=spot)
            return
    tool = terminal.value
    if bool(final.value) != (tool is not None):
        says = "there is no terminal tool to take the last message" if tool is None else f"'{tool.name}' takes it"
        look.complain("tool-terminal", f"it says {final.value!r}, and {says}", "is_assistant_message_final")
    elif tool is not None and any(spec.name == tool.name for spec in listed):
        look.complain(
            "tool-terminal",
            f"the terminal tool '{tool.name}' is listed among the others: the agent calls it too",
            "list_tools" if "list_tools" in _own_names(look) else tool.name,
            mend="leave it out of list_tools()",
        )
    elif tool is not None and tool.name not in tool_table(cls) and "_call_tool" not in _own_names(look):
        look.complain("tool-terminal", f"there is no tool '{tool.name}'", "terminal_tool")
