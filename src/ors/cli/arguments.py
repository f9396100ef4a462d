"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

__all__ = ["ApiKey", "AsJSON", "Debug", "Env", "Secrets", "Source", "Split", "examples"]

Source: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="URL|TARGET",
        help="A server's address, or what `ors serve` takes: file.py, file.py:Class, module or module:Class. "
        "A target is served for as long as the command runs.",
        show_default=False,
    ),
]
ApiKey: TypeAlias = Annotated[
    str | None,
    typer.Option("--api-key", metavar="KEY", envvar="ORS_API_KEY", help="The key of the server.", show_default=False),
]
Env: TypeAlias = Annotated[
    str | None,
    typer.Option("--env", "-e", metavar="NAME", help="The environment, where there are several.", show_default=False),
]
Split: TypeAlias = Annotated[
    str | None, typer.Option("--split", "-s", metavar="NAME", help="The split.", show_default=False)
]
Secrets: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        metavar="NAME[=VALUE]",
        help="A secret of the session; without a value, that of the environment variable. Can be repeated.",
        show_default=False,
    ),
]
AsJSON: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Debug: TypeAlias = Annotated[
    bool, typer.Option("--debug", help="Show tracebacks, and what a target that is served here logs.")
]


def examples(*lines: str) -> str:
    """The end of a command's help: command lines to copy."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
