"""Questions on a terminal: a line, a choice, and the form for the input of a tool.

What cannot be is asked again. The end of input (Ctrl-D) takes a question back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ors.cli.fields import Field, faults_of
from ors.cli.showing import plain
from ors.types import ToolSpec

__all__ = ["Cancelled", "ask", "ask_choice", "ask_input"]

_QUOTES = '"""'
_MOST_CHOICES = 20


class Cancelled(Exception):
    """The question was taken back, or there is nobody to answer it."""


def ask(prompt: str) -> str:
    """A line. Raises Cancelled."""
    try:
        import readline  # noqa: F401 - importing it lets lines be edited
    except ImportError:
        pass
    try:
        return input(prompt)
    except EOFError:
        print()
        raise Cancelled from None
    except UnicodeDecodeError:
        return ask("that was no text; again: ")


def ask_choice(screen: Console, question: str, names: Sequence[str], default: str | None = None) -> str:
    """One of several names, by name or by number. Raises Cancelled."""
    screen.print(Text(question, "bold"))
    for place, name in enumerate(names, 1):
        screen.print(f"{place:>3}  {plain(name)}")
    while True:
        word = ask(f"[{default}] > " if default else "> ").strip()
        if not word and default:
            return default
        for name in names:
            if name.lower() == word.lower():
                return name
        if word.isdigit() and 1 <= int(word) <= len(names):
            return names[int(word) - 1]
        _complain(screen, f"{word or 'that'} is none of them: a number from 1 to {len(names)}, or a name")


def ask_input(screen: Console, tool: ToolSpec) -> dict[str, Any]:
    """The input of a tool, asked for by its schema. Raises Cancelled."""
    fields = Field.all_of(tool.input_schema)
    if fields is None:
        return _ask_object(screen, tool)
    while True:
        given: dict[str, Any] = {}
        for field in fields:
            _ask_field(screen, field, given)
        faults = faults_of(given, tool.input_schema or {})
        if not faults:
            return given
        _complain(screen, f"{faults}: once more")


def _ask_field(screen: Console, field: Field, given: dict[str, Any]) -> None:
    """Ask for a field until what is said fits, and put it into `given`; what is left out is not there."""
    described = f" {field.description}" if field.description else ""
    screen.print(Text.assemble(f"  {plain(field.name)}", (f" ({plain(field.told)}){plain(described)}", "dim")))
    choices = field.choices
    if 1 < len(choices) <= _MOST_CHOICES:
        for place, choice in enumerate(choices, 1):
            screen.print(f"    {place:>2}  {plain(choice if isinstance(choice, str) else json.dumps(choice))}")
    while True:
        try:
            text = _read(field)
            if text is None:
                if not field.required:
                    return
                if field.has_default:
                    given[field.name] = field.schema["default"]
                    return
                hint = f"; {_QUOTES[:2]} is the empty text" if field.kind == "string" else ""
                raise ValueError(f"{field.name} is needed{hint}")
            given[field.name] = _value(field, text)
            return
        except ValueError as exc:
            _complain(screen, str(exc))


def _read(field: Field) -> str | None:
    """What is entered for a field; None for an empty line."""
    text = ask(f"  {field.name} = ")
    bare = text.strip()
    if not bare:
        return None
    if field.kind not in ("string", "json"):
        return text
    if bare.startswith("@"):
        return bare[1:] if bare.startswith("@@") else _from_file(bare[1:])
    if field.kind == "string":
        if bare == '""':
            return ""
        return _several_lines(text) if bare.startswith(_QUOTES) else text
    return _whole_json(text)


def _value(field: Field, text: str) -> Any:
    choices = field.choices
    if choices and text.strip().isdigit():
        try:
            return field.value_of(text)
        except ValueError:
            if 1 <= int(text) <= len(choices):
                return choices[int(text) - 1]
            raise
    return field.value_of(text)


def _ask_object(screen: Console, tool: ToolSpec) -> dict[str, Any]:
    screen.print(Text(f"  {plain(tool.name)} takes a JSON object of this schema:", "dim"))
    screen.print(Text(plain(json.dumps(tool.input_schema, indent=2, ensure_ascii=False)), "dim"))
    while True:
        text = ask("  input = ").strip()
        try:
            text = _from_file(text[1:]) if text.startswith("@") else _whole_json(text or "{}")
            given = json.loads(text)
            if not isinstance(given, dict):
                raise ValueError("the input of a tool is a JSON object")
            if faults := faults_of(given, tool.input_schema or {}):
                raise ValueError(faults)
            return given
        except json.JSONDecodeError as exc:
            _complain(screen, f"this is no JSON: {exc}")
        except ValueError as exc:
            _complain(screen, str(exc))


def _several_lines(first: str) -> str:
    """Text between three quotes and three quotes, line ends included."""
    lines = [first.strip()[len(_QUOTES) :]]
    while not lines[-1].rstrip().endswith(_QUOTES):
        lines.append(ask("    … "))
    lines[-1] = lines[-1].rstrip()[: -len(_QUOTES)]
    # the lines of the quotes themselves are no text where nothing else is on them
    return "\n".join(line for place, line in enumerate(lines) if line or 0 < place < len(lines) - 1)


def _whole_json(text: str) -> str:
    """More lines are read as long as what came so far could be the beginning of JSON; an empty line ends it."""
    while text.strip()[:1] in ("{", "["):
        try:
            json.loads(text)
        except json.JSONDecodeError as exc:
            if exc.pos < len(text.rstrip()):
                return text
            more = ask("    … ")
            if not more.strip():
                return text
            text += f"\n{more}"
        else:
            return text
    return text


def _from_file(name: str) -> str:
    try:
        return Path(name).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is no UTF-8 text"
        raise ValueError(f"{name} cannot be read: {reason}; text that begins with @ is written with @@") from None


def _complain(screen: Console, words: str) -> None:
    screen.print(Text(f"  {plain(words)}", "red"))
