"""Words of a command line → the input of a tool, a task, secrets."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ors.cli.errors import CommandError

__all__ = ["input_of", "object_of", "range_of", "secrets_of"]


def object_of(text: str, what: str) -> dict[str, Any]:
    """A JSON object: as it stands, in a file (`@file`), or from standard input (`-`). Raises CommandError."""
    try:
        if text == "-":
            text, where = sys.stdin.read(), "standard input"
        elif text.startswith("@"):
            where = text[1:]
            text = Path(where).expanduser().read_text("utf-8")
        else:
            where = ""
        value = json.loads(text)
    except OSError as exc:
        raise CommandError(f"{what}: {text[1:]} cannot be read: {exc.strerror}") from exc
    except (ValueError, RecursionError) as exc:
        place = f" in {where}" if where else ""
        raise CommandError(f"{what}{place} is no JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise CommandError(f"{what} is a JSON object, not {json.dumps(value)[:100]}")
    return value


def input_of(words: Sequence[str], schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """The input of a tool: one JSON object, or words NAME=VALUE read by the tool's schema. Raises CommandError."""
    if len(words) == 1 and (words[0].lstrip().startswith("{") or words[0] == "-" or words[0].startswith("@")):
        return object_of(words[0], "the input")
    from ors.cli.fields import Field

    fields = {field.name: field for field in Field.all_of(schema) or ()}
    made: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise CommandError(f"'{word}' is neither NAME=VALUE nor a JSON object")
        if name in made:
            raise CommandError(f"'{name}' is given twice")
        field = fields.get(name)
        if field is None or field.kind == "json":
            # the server says what it thinks of a name that the tool does not list
            try:
                made[name] = json.loads(value)
            except ValueError:
                made[name] = value
            continue
        try:
            made[name] = field.value_of(value)
        except ValueError as exc:
            raise CommandError(f"{name}: {exc}") from None
    return made


def secrets_of(words: Sequence[str] | None) -> dict[str, str]:
    """Secrets, NAME=VALUE or the name of an environment variable. Raises CommandError."""
    secrets: dict[str, str] = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not name:
            raise CommandError("--secret is NAME=VALUE, or the name of an environment variable")
        if not equals:
            if name not in os.environ:
                raise CommandError(f"--secret {name}: there is no environment variable of that name")
            value = os.environ[name]
        secrets[name] = value
    return secrets


def range_of(text: str) -> tuple[int | None, int | None]:
    """`a:b` as Python has it: either may be missing, or negative. Raises CommandError."""
    first, colon, last = text.partition(":")
    try:
        if not colon:
            index = int(first)
            return index, index + 1 if index != -1 else None
        return int(first) if first.strip() else None, int(last) if last.strip() else None
    except ValueError:
        raise CommandError(f"--range is first:last as Python has it, like 10:20 or :5, not '{text}'") from None
