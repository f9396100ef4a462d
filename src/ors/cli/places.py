"""Where a command finds environments: a server's address, or a target that is served while the command runs."""

from __future__ import annotations

import contextlib
import logging
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ors.cli.errors import CommandError, CommandFailed

if TYPE_CHECKING:
    from ors.client import ORS

__all__ = ["Place", "as_url", "client_of", "opened"]

_HOST_AND_PORT = re.compile(r"(?:[\w-]+\.)*[\w-]+:\d{1,5}(?:/.*)?")


@dataclass(frozen=True, slots=True)
class Place:
    """A server that answers. `local`: it runs in this process, for this command."""

    url: str
    api_key: str | None
    local: bool


def as_url(source: str) -> str | None:
    """The address that an argument is, or None where it is a target."""
    if source.startswith(("http://", "https://")):
        return source.rstrip("/")
    return f"http://{source}".rstrip("/") if _HOST_AND_PORT.fullmatch(source) else None


@contextlib.contextmanager
def opened(
    source: str,
    api_key: str | None = None,
    *,
    debug: bool = False,
    capture_output: bool = True,
    log: Path | None = None,
) -> Iterator[Place]:
    """A place for the environments of an argument. Raises CommandError and CommandFailed."""
    url = as_url(source)
    if url is not None:
        if log is not None:
            raise CommandError("--log is for a target that is served here; a server elsewhere has a log of its own")
        yield Place(url, api_key, local=False)
        return
    from ors.cli.targets import load_targets
    from ors.server import Server

    classes = load_targets([source])
    key = secrets.token_urlsafe(24)  # others on this machine can reach the port too
    settings: dict[str, Any] = {
        "api_keys": [key],
        "api_key_file": None,
        "capture_output": capture_output,
        "shutdown_grace": 0.0,
        "teardown_timeout": 10.0,
    }
    if debug:
        settings["return_errors"] = "stacktrace"
    with _logging(debug, log) as last_words:
        server = Server(classes, **settings).background()
        try:
            with server as address:
                yield Place(address, key, local=True)
        except RuntimeError as exc:
            if str(exc) != "the server could not start":
                raise
            said = "; ".join(record.getMessage() for record in last_words)
            raise CommandFailed(f"'{source}' cannot be served: {said or exc.__cause__ or 'nobody says why'}") from exc


def client_of(place: Place) -> ORS:
    """A client that says soon when nobody answers: somebody waits for it."""
    from ors.client import ORS, Retry

    return ORS(place.url, place.api_key, retry=Retry(attempts=2, first=0.2))


class _LastWords(logging.Handler):
    """Keeps what went wrong: it is told only if nothing comes of the command."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        del self.records[:-5]


@contextlib.contextmanager
def _logging(debug: bool, log: Path | None) -> Iterator[list[logging.LogRecord]]:
    """The server's log: into a file, onto standard error, or nowhere, so that it does not tear what is shown."""
    from ors.server.logs import ConsoleFormatter

    words = _LastWords()
    handlers: list[logging.Handler] = [words]
    if debug:
        handlers.append(logging.StreamHandler())
        handlers[-1].setLevel(logging.WARNING)
    if log is not None:
        try:
            handlers.append(logging.FileHandler(log, encoding="utf-8"))
        except OSError as exc:
            raise CommandError(f"--log: {log} cannot be written: {exc.strerror}") from exc
    loggers = [logging.getLogger(name) for name in ("ors", "uvicorn")]
    before = [(logger.level, logger.propagate) for logger in loggers]
    for handler in handlers:
        handler.setFormatter(ConsoleFormatter())
    for logger in loggers:
        logger.propagate = False
        logger.setLevel(logging.WARNING if log is None or logger.name == "uvicorn" else logging.INFO)
        for handler in handlers:
            logger.addHandler(handler)
    try:
        yield words.records
    finally:
        for logger, (level, propagate) in zip(loggers, before, strict=True):
            for handler in handlers:
                logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagate
        for handler in handlers:
            handler.close()
