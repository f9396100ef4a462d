"""How commands end when something is wrong: a message instead of a traceback, and an exit code."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator

import typer

from ors.errors import AuthenticationError, AuthoringError, ClientError, MaxRetriesError, ORSError, SettingsError

__all__ = ["FAILED", "NOT_ALL_WELL", "WRONG_REQUEST", "CommandError", "CommandFailed", "reporting"]

FAILED = 1
"""Something broke: a server cannot be reached, a tool or an environment failed."""
WRONG_REQUEST = 2
"""What was asked for cannot be done as it was asked."""
NOT_ALL_WELL = 3
"""It was done, and did not go well: a call was refused, episodes failed, a mean was too low."""

_ASKED_WRONGLY = frozenset((400, 404, 405, 413, 422, 501))


class CommandError(ORSError):
    """What was asked for cannot be done; the message says what was wrong, where, and what to do."""


class CommandFailed(ORSError):
    """What was asked for could not be done now; the message says why."""


@contextlib.contextmanager
def reporting(*, debug: bool = False) -> Iterator[None]:
    """Turn errors into messages on standard error, with a traceback before them when `debug` is set."""
    try:
        yield
    except (CommandError, AuthoringError, SettingsError) as exc:
        _report(str(exc), exc, debug)
        raise typer.Exit(WRONG_REQUEST) from None
    except CommandFailed as exc:
        _report(str(exc), exc, debug)
        raise typer.Exit(FAILED) from None
    except AuthenticationError as exc:
        _report(f"{exc.detail}; give the server's key with --api-key or ORS_API_KEY", exc, debug)
        raise typer.Exit(FAILED) from None
    except MaxRetriesError as exc:
        last = exc.__cause__
        said = f"the server does not answer: {last}" if exc.status is None and last is not None else exc.detail
        _report(said, exc, debug)
        raise typer.Exit(FAILED) from None
    except ClientError as exc:
        _report(exc.detail or type(exc).__name__, exc, debug)
        raise typer.Exit(WRONG_REQUEST if exc.status in _ASKED_WRONGLY else FAILED) from None
    except (BrokenPipeError, typer.Exit, typer.Abort):
        raise  # whoever reads the output has seen enough, or the exit code is known: typer's own affair
    except Exception as exc:
        _report(f"{type(exc).__name__}: {exc}", exc, debug)
        if not debug:
            typer.echo("Run it again with --debug to see where this comes from.", err=True)
        raise typer.Exit(FAILED) from None


def _report(message: str, exc: BaseException, debug: bool) -> None:
    if debug:
        # of an error that was put into words, the one it was made from
        typer.echo("".join(traceback.format_exception(exc.__cause__ or exc)), err=True, nl=False)
    typer.secho("error: ", err=True, nl=False, fg=typer.colors.RED, bold=True)
    typer.echo(message, err=True)
