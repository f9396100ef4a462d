"""`ors tasks`: tasks of a split, as the server shows them."""

from __future__ import annotations

import json as json_text
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ors.cli.arguments import ApiKey, AsJSON, Debug, Env, Source, Split, examples
from ors.cli.errors import CommandError, reporting

if TYPE_CHECKING:
    from ors.client import Environment, SplitName

__all__ = ["HELP_END", "tasks"]

HELP_END = examples(
    "ors tasks addition.py --split test",
    "ors tasks http://127.0.0.1:8080 --env addition --split train --range 100:110",
    "ors tasks addition.py --split test --json > tasks.json",
)
_PAGE = 500
_SHOWN = 20


def tasks(
    source: Source,
    env: Env = None,
    split: Split = None,
    range: Annotated[
        str | None,
        typer.Option("--range", "-r", metavar="A:B", help="A slice as Python has it: 10:20, :5, -5:, or one index."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", metavar="N", min=1, help=f"At most so many; without --json and --range {_SHOWN} otherwise."
        ),
    ] = None,
    api_key: ApiKey = None,
    json: AsJSON = False,
    debug: Debug = False,
) -> None:
    """List tasks of a split.

    Tasks are what the server scores by: they may hold the answers.
    """
    with reporting(debug=debug):
        from ors.cli.inputs import range_of
        from ors.cli.picking import count_of, pick_environment, pick_split
        from ors.cli.places import client_of, opened

        first, last = range_of(range) if range is not None else (None, None)
        most = limit if limit is not None or json or range is not None else _SHOWN
        with opened(source, api_key, debug=debug) as place, client_of(place) as client:
            environment = pick_environment(client, env)
            chosen = pick_split(environment, split)
            count = count_of(environment, chosen)
            begin, end = _bounds(first, last, count, most)
            found = _paged(environment, chosen, begin, end)
            if json:
                _print_json(found)
            else:
                _print_table(found, begin, end, count)


def _bounds(first: int | None, last: int | None, count: int | None, most: int | None) -> tuple[int, int]:
    """The slice that is meant, as two positions. Raises CommandError."""
    if count is not None:
        begin, end, _ = slice(first, last).indices(count)
    elif (first or 0) >= 0 and last is not None and last >= 0:
        begin, end = first or 0, last
    elif (first or 0) >= 0 and last is None and most is not None:
        begin, end = first or 0, (first or 0) + most
    else:
        raise CommandError("the split has no end: give a --range with both bounds, or a --limit")
    return begin, max(begin, end if most is None else min(end, begin + most))


def _paged(environment: Environment, split: SplitName, begin: int, end: int) -> Iterator[tuple[int, Any]]:
    """The tasks with their indices; a page at a time, since a split may have millions."""
    while begin < end:
        page = environment.get_task_range(split, begin, min(begin + _PAGE, end))
        if not page:
            return
        for place, task in enumerate(page):
            yield begin + place, task.task_spec
        begin += len(page)


def _print_json(found: Iterator[tuple[int, Any]]) -> None:
    """One array, a task a line."""
    between = "[\n"
    for index, task in found:
        text = json_text.dumps({"index": index, "task": task}, ensure_ascii=False)
        sys.stdout.write(between + text.encode("utf-8", "replace").decode())
        between = ",\n"
    print("[]" if between == "[\n" else "\n]", flush=True)


def _print_table(found: Iterator[tuple[int, Any]], begin: int, end: int, count: int | None) -> None:
    from ors.cli.showing import console, shortened, table

    screen = console()
    room = max(40, screen.width - 12)
    rows = [(f"{index:,}", shortened(json_text.dumps(task, ensure_ascii=False), room)) for index, task in found]
    screen.print(table(("index", "task"), rows, right=[0]))
    if count is not None and (begin > 0 or end < count):
        console(stderr=True).print(f"{len(rows):,} of {count:,} tasks; --range and --limit choose others")
