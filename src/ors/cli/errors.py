"""How commands end when something is wrong: a message instead of a traceback, and an exit code."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator

import typer

from ors.errors import AuthoringError, ORSError, SettingsError

__all__ = ["CommandError", "reporting"]

_WRONG_REQUEST = 2
_FAILED = 1


class CommandError(ORSError):
    """What was asked for cannot be done; the message says what was wrong, where, and what to do."""


@contextlib.contextmanager
def reporting(*, debug: bool = False) -> Iterator[None]:
    """Turn errors into messages on standard error, with a traceback before them when `debug` is set."""
    try:
        yield
    except (CommandError, AuthoringError, SettingsError) as exc:
        _report(str(exc), exc, debug)
        raise typer.Exit(_WRONG_REQUEST) from None
    except (BrokenPipeError, typer.Exit, typer.Abort):
        raise  # whoever reads the output has seen enough, or the exit code is known: typer's own affair
    except Exception as exc:
        _report(f"{type(exc).__name__}: {exc}", exc, debug)
        if not debug:
            typer.echo("Run it again with --debug to see where this comes from.", err=True)
        raise typer.Exit(_FAILED) from None


def _report(message: str, exc: BaseException, debug: bool) -> None:
    if debug:
        # of an error that was put into words, the one it was made from
        typer.echo("".join(traceback.format_exception(exc.__cause__ or exc)), err=True, nl=False)
    typer.secho("error: ", err=True, nl=False, fg=typer.colors.RED, bold=True)
    typer.echo(message, err=True)
