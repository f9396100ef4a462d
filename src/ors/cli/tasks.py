"""`ors tasks`: tasks of a split, as the server shows them."""

from __future__ import annotations

import secrets
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

import typer

from ors.cli.arguments import ApiKey, AsJSON, Debug, Env, Source, Split, examples
from ors.cli.errors import CommandError, reporting

__all__ = ["HELP_END", "tasks"]

HELP_END = examples(
    "ors tasks addition.py --split test",
    "ors tasks http://127.0.0.1:8080 --env addition --split train --range 100:110",
    "ors tasks addition.py --split train --where difficulty=hard --sample 5 --seed 1",
    "ors tasks addition.py --split test --format parquet --output test.parquet",
)
_SHOWN = 20


def tasks(
    source: Source,
    env: Env = None,
    split: Split = None,
    range: Annotated[
        str | None,
        typer.Option("--range", "-r", metavar="A:B", help="A slice as Python has it: 10:20, :5, -5:, or one index."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            "-w",
            metavar="KEY=VALUE",
            help="Tasks that have this value; meta.level=3 looks inside. Can be repeated: all must fit.",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option("--sample", metavar="N", min=1, help="So many, picked at random.", show_default=False),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", help="The same seed picks the same tasks.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", metavar="N", min=1, help=f"At most so many; in a table without --range {_SHOWN} otherwise."
        ),
    ] = None,
    format: Annotated[
        Literal["table", "jsonl", "parquet"],
        typer.Option("--format", "-f", help="A table, a task a line, or a Parquet file."),
    ] = "table",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            dir_okay=False,
            help="Where --format parquet writes to; standard output otherwise.",
            show_default=False,
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
        from ors.cli.task_choice import bounds, fitting, paged, picked
        from ors.cli.task_formats import print_array, print_lines, print_table, write_parquet

        for_people = format == "table" and not json
        if json and format != "table":
            raise CommandError("--json is one array and --format something else: give one of them")
        if output is not None and format != "parquet":
            raise CommandError("--output is for --format parquet; send others to a file with >")
        if seed is not None and sample is None:
            raise CommandError("--seed is for --sample")
        first, last = range_of(range) if range is not None else (None, None)
        fits = fitting(where or [])
        most = limit if limit is not None or range is not None or sample is not None or not for_people else _SHOWN
        with opened(source, api_key, debug=debug) as place, client_of(place) as client:
            environment = pick_environment(client, env)
            chosen = pick_split(environment, split)
            count = count_of(environment, chosen)
            begin, end = bounds(first, last, count, most)
            if sample is not None:
                luck = secrets.randbelow(1 << 32) if seed is None else seed
                found = picked(environment, chosen, begin, end, sample, luck, fits)
            else:
                found = (one for one in paged(environment, chosen, begin, end) if fits(one[1]))
            if most is not None:
                found = islice(found, most)
            if json:
                print_array(found)
            elif format == "jsonl":
                print_lines(found)
            elif format == "parquet":
                write_parquet(found, output)
            else:
                from ors.cli.showing import console

                rows, hidden = print_table(console(), found)
                notes = []
                if count is not None and rows < count:
                    notes.append(f"{rows:,} of {count:,} tasks; --range, --where and --limit choose others")
                if hidden:
                    notes.append(f"not shown: {', '.join(hidden)}; --format jsonl has all")
                if sample is not None and seed is None:
                    notes.append(f"--seed {luck} picks them again")
                for note in notes:
                    console(stderr=True).print(note)
