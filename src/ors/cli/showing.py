"""What commands print: tables for people, JSON for programs, and text of others made harmless."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ors.cli.errors import CommandError

__all__ = ["console", "number", "plain", "print_json", "shortened", "table", "waiting", "write_file"]

# all that moves a terminal's cursor, changes its state or hides text, except line ends and tabs
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def console(*, stderr: bool = False) -> Console:
    """A console that changes nothing in what it is given to print."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def plain(text: str) -> str:
    """Text of an environment: a terminal would obey the control characters in it, so that they are shown instead."""
    text = text.replace("\r\n", "\n")
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text) if _CONTROLS.search(text) else text


def shortened(text: str, most: int) -> str:
    """A line of at most so many characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def number(value: float | None, form: str = "{:,.2f}") -> str:
    """A number, or a dash where there is none."""
    return "–" if value is None else form.format(value)


def waiting(screen: Console, words: str) -> AbstractContextManager[Any]:
    """Something that moves while one waits, where the terminal can take it away again."""
    if not screen.is_terminal or screen.is_dumb_terminal:
        return contextlib.nullcontext()
    return screen.status(words)


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[int] = ()) -> Table:
    """A table; the columns whose numbers are in `right` are for numbers."""
    made = Table(box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for place, heading in enumerate(headings):
        made.add_column(heading, justify="right" if place in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(plain(str(cell))) for cell in row))
    return made


def print_json(value: Any) -> None:
    """Print JSON, indented."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")
    sys.stdout.flush()


def write_file(path: Path, text: str) -> None:
    """Write a report. Raises CommandError."""
    try:
        path.write_text(text, "utf-8")
    except OSError as exc:
        raise CommandError(f"{path} cannot be written: {exc.strerror}") from exc
