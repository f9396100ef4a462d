"""`ors play`: a person plays an episode in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ors.cli.arguments import ApiKey, Debug, Env, Secrets, Source, Split, examples
from ors.cli.errors import FAILED, CommandError, reporting

__all__ = ["HELP_END", "play"]

HELP_END = examples(
    "ors play addition.py",
    "ors play http://127.0.0.1:8080 --env lightsout --split test --index 7",
    'ors play addition.py --task \'{"a": 2, "b": 3}\'',
)


def play(
    source: Source,
    env: Env = None,
    split: Split = None,
    index: Annotated[
        int | None,
        typer.Option(
            "--index",
            "-i",
            metavar="N",
            min=0,
            help="The task of the split; if none is named, any.",
            show_default=False,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="JSON", help="The task itself: a JSON object, @file or -.", show_default=False),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            "--images",
            metavar="FOLDER",
            help="A folder for the images of the episode; without it they are gone at its end.",
            file_okay=False,
            show_default=False,
        ),
    ] = None,
    secret: Secrets = None,
    api_key: ApiKey = None,
    debug: Debug = False,
) -> None:
    """Play an episode yourself, in this terminal.

    You see what an agent sees, and the rewards as well. Ctrl-C leaves; the episode is then ended on the server.
    """
    with reporting(debug=debug):
        from ors.cli.inputs import object_of, secrets_of
        from ors.cli.places import client_of, opened
        from ors.cli.playing import Playing, choose
        from ors.cli.showing import console
        from ors.cli.signals import ending_in_order

        if task is not None and (split is not None or index is not None):
            raise CommandError("give either --task, or --split and --index, not both")
        secrets = secrets_of(secret)
        whole = object_of(task, "--task") if task is not None else None
        screen = console()
        # what a tool of one's own file prints is wanted here
        with (
            ending_in_order(),
            opened(source, api_key, debug=debug, capture_output=False) as place,
            client_of(place) as client,
        ):
            environment, where = choose(screen, client, env, split, index, whole)
            playing = Playing(screen, source, environment, where, secrets, images)
            try:
                well = playing.run()
            except KeyboardInterrupt:
                playing.leave()
                raise
        if not well:
            raise typer.Exit(FAILED)
