"""Tasks on a terminal, as lines of JSON, and as a Parquet file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from ors.cli.errors import CommandError

__all__ = ["print_array", "print_lines", "print_table", "write_parquet"]

_GAP = 3
_NARROWEST = 6


def print_array(found: Iterable[tuple[int, Any]]) -> None:
    """One array, a task a line."""
    between = "[\n"
    for index, task in found:
        sys.stdout.write(between + _line({"index": index, "task": task}))
        between = ",\n"
    print("[]" if between == "[\n" else "\n]", flush=True)


def print_lines(found: Iterable[tuple[int, Any]]) -> None:
    """A task a line, as `Jsonl` reads them again."""
    for _, task in found:
        print(_line(task))
    sys.stdout.flush()


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()


def write_parquet(found: Iterable[tuple[int, Any]], file: Path | None) -> int:
    """A Parquet file, on standard output where none is named. Returns how many tasks. Raises CommandError."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as exc:
        raise CommandError(f"--format parquet needs pyarrow ({exc}): pip install 'ors-kit[arrow]'") from exc
    if file is None and sys.stdout.isatty():
        raise CommandError("--format parquet is not for a terminal: name a file with --output")
    tasks = [task for _, task in found]
    try:
        table = pa.Table.from_pylist(tasks) if tasks else pa.table({})
        # small groups: a row is then found without reading many others
        pq.write_table(table, str(file) if file is not None else sys.stdout.buffer, row_group_size=10_000)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as exc:
        words = f"these tasks make no table: {exc}; --format jsonl takes any"
        raise CommandError(words) from exc
    except OSError as exc:
        raise CommandError(f"{os.fspath(file or 'standard output')} cannot be written: {exc.strerror or exc}") from exc
    return len(tasks)


def print_table(screen: Console, found: Iterator[tuple[int, Any]]) -> tuple[int, list[str]]:
    """A row for each task, a column for each of its keys, as many as fit. Returns how many rows, and what did not."""
    from ors.cli.showing import shortened, table

    rows = list(found)
    names = list(dict.fromkeys(name for _, task in rows if isinstance(task, dict) for name in task))
    indices = [f"{index:,}" for index, _ in rows]
    room = screen.width - max([len("index"), *map(len, indices)]) - _GAP - 2
    cells = {name: [_cell(task, name) for _, task in rows] for name in names}
    widths = _widths([max(len(name), *map(len, cells[name]), 1) for name in names], room)
    shown = names[: len(widths)]
    body = [
        (index, *(shortened(cells[name][at], width) for name, width in zip(shown, widths, strict=True)))
        for at, index in enumerate(indices)
    ]
    headings = [shortened(name, width) for name, width in zip(shown, widths, strict=True)]
    screen.print(table(("index", *headings), body, right=[0]))
    return len(rows), names[len(widths) :]


def _cell(task: Any, name: str) -> str:
    if not isinstance(task, dict) or name not in task:
        return ""
    value = task[name]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _widths(natural: Sequence[int], room: int) -> list[int]:
    """The widths of as many columns as fit: narrow ones have what they need, the others share what is left."""
    fit = len(natural)
    while fit > 1 and sum(min(width, _NARROWEST) + _GAP for width in natural[:fit]) > room:
        fit -= 1
    widths = dict.fromkeys(range(fit), 0)
    left = room - _GAP * fit
    for done, place in enumerate(sorted(widths, key=lambda at: natural[at])):
        widths[place] = max(1, min(natural[place], left // (fit - done)))
        left -= widths[place]
    return list(widths.values())
