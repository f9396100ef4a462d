"""What author code prints is kept per call, bounded, instead of flooding the server's own output.

Covers `print` and all that writes to `sys.stdout` and `sys.stderr` from a call, in threads and tasks that inherit its
context. Does not cover file descriptors 1 and 2 written directly (C code, child processes).
"""

from __future__ import annotations

import contextvars
import io
import sys
from typing import Any, TextIO

import msgspec

__all__ = ["OUTPUT", "Output", "install", "uninstall"]

LIMIT = 64 << 10


class Output(msgspec.Struct, eq=False):
    """What one call printed: the first 64 KiB, and how much there was."""

    size: int = 0
    text: list[str] | None = None

    def write(self, text: str) -> None:
        """Keep what still fits."""
        if self.size < LIMIT:
            if self.text is None:
                self.text = []
            self.text.append(text[: LIMIT - self.size])
        self.size += len(text)

    def __str__(self) -> str:
        text = "".join(self.text or ())
        return text if self.size <= LIMIT else f"{text}… ({self.size - LIMIT} more characters)"


OUTPUT: contextvars.ContextVar[Output | None] = contextvars.ContextVar("ors_output", default=None)
"""Where the current call's output goes; None outside of calls."""


class _Tee(io.TextIOBase):
    """Stands in for a standard stream: a call's own output is kept with the call, all else passes."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        output = OUTPUT.get()
        if output is None:
            return self.stream.write(text)
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        output.write(text)
        return len(text)

    def flush(self) -> None:
        if OUTPUT.get() is None:
            self.stream.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.stream.encoding

    @property
    def buffer(self) -> Any:
        return self.stream.buffer


def install() -> None:
    """Replace the standard streams of this process, where it has any; a second call does nothing."""
    if sys.stdout is not None and not isinstance(sys.stdout, _Tee):
        sys.stdout = _Tee(sys.stdout)
    if sys.stderr is not None and not isinstance(sys.stderr, _Tee):
        sys.stderr = _Tee(sys.stderr)


def uninstall() -> None:
    """Put the standard streams back."""
    if isinstance(sys.stdout, _Tee):
        sys.stdout = sys.stdout.stream
    if isinstance(sys.stderr, _Tee):
        sys.stderr = sys.stderr.stream
