"""Logs: one line per record, for people or as JSON, written by a thread of their own so that no pipe stalls the server.

Secrets of live sessions are masked by value before a line leaves the process.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import queue
import sys
import time
import traceback
from typing import Any

from ors.core.secrets import mask

__all__ = ["ConsoleFormatter", "JSONFormatter", "Logs"]

_LAST_WORDS_S = 3.0
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


class JSONFormatter(logging.Formatter):
    """`{"time", "level", "logger", "message", …}`, a line each."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = "".join(traceback.format_exception(record.exc_info[1]))
        # before they are quoted, since quoting changes how a secret is spelt
        masked = {key: mask(value) if isinstance(value, str) else value for key, value in line.items()}
        return mask(json.dumps(masked, ensure_ascii=False, default=str))


class ConsoleFormatter(logging.Formatter):
    """`time LEVEL message key=value …`"""

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        extras = "".join(f" {key}={value}" for key, value in _extras(record).items() if value is not None)
        line = f"{clock} {record.levelname:7} {record.getMessage()}{extras}"
        if record.exc_info and record.exc_info[1] is not None:
            line += "\n" + "".join(traceback.format_exception(record.exc_info[1])).rstrip()
        return mask(line)


class _Queue(logging.handlers.QueueHandler):
    """Formats at once, since a secret may no longer be known when the line is written, and drops when all is full."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return logging.makeLogRecord({"msg": self.format(record), "levelno": record.levelno})

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            pass


class _Writer(logging.Handler):
    """Writes past Python's own buffers and their locks: a reader who stops must not keep the process from ending."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream
        try:
            self._fd: int | None = stream.fileno()
        except (AttributeError, OSError, ValueError):  # a stand-in for a stream
            self._fd = None

    def createLock(self) -> None:  # noqa: N802 - the name in logging
        self.lock = None  # one thread writes

    def emit(self, record: logging.LogRecord) -> None:
        text = f"{record.getMessage()}\n"
        try:
            if self._fd is None:
                self._stream.write(text)
                return
            rest = text.encode("utf-8", "backslashreplace")
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except (OSError, ValueError):  # nobody can be told
            pass


class Logs:
    """Configures the logging of a server process; `close` writes what is left and undoes it."""

    def __init__(self, level: str, kind: str) -> None:
        self._lines: queue.Queue[Any] = queue.Queue(50_000)
        self._handler = _Queue(self._lines)
        self._handler.setFormatter(JSONFormatter() if kind == "json" else ConsoleFormatter())
        self._listener = logging.handlers.QueueListener(self._lines, _Writer(sys.stderr))
        self._listener.start()
        self._root = logging.getLogger()
        self._before = self._root.level
        self._root.addHandler(self._handler)
        self._root.setLevel(level.upper())
        # uvicorn's own lines at INFO say again what the server says
        logging.getLogger("uvicorn").setLevel(max(logging.WARNING, self._root.level))

    def close(self) -> None:
        """Write what is left, if anybody reads it."""
        self._root.removeHandler(self._handler)
        self._root.setLevel(self._before)
        # whoever should read the lines may have stopped, and the process must end all the same
        thread: Any = self._listener._thread
        try:
            self._lines.put(None, timeout=_LAST_WORDS_S)
        except queue.Full:
            return
        thread.join(_LAST_WORDS_S)
