"""The command `ors`, one module for each of its commands.

Exit codes: 0 when all went well, 1 when a server could not start or ended badly, 2 when what was asked for cannot be
done as it was asked. Errors are one paragraph on standard error that says what was wrong, where, and what to do.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ors._version import __version__
from ors.cli.schema import schema
from ors.cli.serve import serve

__all__ = ["app", "main"]

app = typer.Typer(
    name="ors",
    help="Host environments for language models over the Open Reward Standard.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its tables cut the names of options short
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(serve)
app.command()(schema)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"ors-kit {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Host environments for language models over the Open Reward Standard."""


def main() -> None:
    """Run the command that the process was started with."""
    app(prog_name="ors")
