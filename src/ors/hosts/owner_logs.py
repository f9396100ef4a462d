"""The log records of an owner process: sent to the front and logged there, as if they had been made there.

So one process writes all lines, in one format. Secrets are masked before a record leaves the process that knows them.
When the front does not keep up, records are dropped rather than kept without bound.
"""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import Callable
from typing import Any

from ors.core.secrets import mask
from ors.hosts.messages import Log
from ors.runtime.mailbox import Mailbox

__all__ = ["LogForwarder", "OwnerTraceback", "log_here", "wanted_level"]

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_MOST = 10_000


class OwnerTraceback(Exception):
    """Stands for an exception in an owner process: its text is the traceback there."""


class LogForwarder(logging.Handler):
    """Sends every record on, from whatever thread it comes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Callable[[Log], None]) -> None:
        super().__init__()
        self._send = send
        self._waiting = 0
        self._mailbox: Mailbox[Log] = Mailbox(loop, self._deliver)

    def install(self, level: int) -> None:
        """Take the records of all loggers."""
        root = logging.getLogger()
        root.handlers = [self]
        root.setLevel(level)

    def emit(self, record: logging.LogRecord) -> None:
        if self._waiting >= _MOST:
            return
        try:
            message = message_of(record)
        except Exception:
            self.handleError(record)
            return
        self._waiting += 1
        self._mailbox.post(message)

    def _deliver(self, message: Log) -> None:
        self._waiting -= 1
        self._send(message)


def message_of(record: logging.LogRecord) -> Log:
    """What is sent for a record."""
    extras = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    text = None
    if record.exc_info and record.exc_info[1] is not None:
        text = _clean("".join(traceback.format_exception(record.exc_info[1])))
    return Log(
        0,
        record.name,
        record.levelno,
        _clean(record.getMessage()),
        record.created,
        _clean(json.dumps(extras, default=str)).encode(),
        text,
    )


def _clean(text: str) -> str:
    return mask(text).encode("utf-8", "backslashreplace").decode()


def log_here(message: Log) -> None:
    """Log a record of an owner process in this one."""
    logger = logging.getLogger(message.name)
    if not logger.isEnabledFor(message.level):
        return
    exc_info: Any = None
    if message.traceback is not None:
        proxy = OwnerTraceback(message.traceback)
        exc_info = (OwnerTraceback, proxy, None)
    extras = json.loads(message.extras)
    record = logger.makeRecord(message.name, message.level, "", 0, message.message, (), exc_info, None, extras)
    record.created = message.created
    record.msecs = message.created % 1 * 1000
    logger.handle(record)


def wanted_level() -> int:
    """The level from which records are wanted here."""
    return min(logging.getLogger("ors.episode").getEffectiveLevel(), logging.getLogger("ors").getEffectiveLevel())
