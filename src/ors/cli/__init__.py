"""The command `ors`, one module for each of its commands, which is imported when the command is asked for.

Exit codes: 0 when all went well, 1 when something broke, 2 when what was asked for cannot be done as it was asked, 3
when it was done and did not go well, 130 after Ctrl-C. Errors are one paragraph on standard error that says what was
wrong, where, and what to do.
"""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ors._version import __version__

__all__ = ["app", "main"]

_COMMANDS = {
    "init": "Start a package with an environment, a test and a README.",
    "serve": "Serve environments over HTTP until SIGTERM or Ctrl-C.",
    "play": "Play an episode yourself, in this terminal.",
    "run": "Let an agent play many episodes, and report how it did.",
    "call": "Call one tool in a session of its own, and print what it says.",
    "envs": "List the environments of a server.",
    "splits": "List the splits of environments, and how many tasks they have.",
    "tasks": "List tasks of a split.",
    "tools": "List tools, also in the formats of model providers.",
    "check": "Check a server against the texts of its protocol, over the network; or a class, as its author does.",
    "schema": "Print the data types, or the routes, for other languages.",
}
"""The commands and their first sentences: the list of them loads none."""
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_EXIT_CODES = """\b
Exit codes:
  0    all went well
  1    something broke: no server answers, a tool or an environment failed
  2    what was asked for cannot be done as it was asked
  3    it was done, and did not go well: a call was refused, episodes failed
  130  Ctrl-C"""


class _Commands(TyperGroup):
    """The commands by name, each loaded when it is asked for."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = dict.fromkeys(_COMMANDS)  # type: ignore[assignment] # for what looks for similar names

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"ors.cli.{cmd_name}")
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        alone.command(cmd_name, epilog=getattr(module, "HELP_END", None), context_settings=_SETTINGS)(
            getattr(module, cmd_name)
        )
        return typer.main.get_command(alone)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


app = typer.Typer(
    name="ors",
    cls=_Commands,
    help="Host environments for language models over the Open Reward Standard.",
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its tables cut the names of options short
    context_settings=_SETTINGS,
)


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
