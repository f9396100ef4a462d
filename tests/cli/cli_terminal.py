"""A command in a pseudo-terminal, as a person has it: what it shows is read, keys are pressed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_=>])")


class Terminal:
    """A running `ors` whose input and output are a terminal of eighty columns, unless told otherwise."""

    def __init__(self, words: list[str], folder: Path, env: dict[str, str], columns: int = 80, rows: int = 50) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ors.cli", *words],
            cwd=folder,
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            # the terminal is the one that Ctrl-C comes from
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.raw = b""
        self._seen = 0

    @property
    def text(self) -> str:
        """All that was shown, without colours and movements of the cursor."""
        return _ESCAPES.sub("", self.raw.decode("utf-8", "replace")).replace("\r\n", "\n")

    def wait_for(self, pattern: str, seconds: float = 60) -> re.Match[str]:
        """What is shown next, after what was waited for before."""
        deadline = time.monotonic() + seconds
        while True:
            if found := re.compile(pattern, re.MULTILINE).search(self.text, self._seen):
                self._seen = found.end()
                return found
            if not self._read(deadline - time.monotonic()):
                pytest.fail(f"nothing like {pattern!r} in what follows {self.text[self._seen :]!r}\nall: {self.text}")

    def _read(self, seconds: float) -> bool:
        if seconds <= 0 or not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            more = os.read(self.master, 65536)
        except OSError:  # the other side is closed
            return False
        self.raw += more
        return bool(more)

    def type(self, text: str) -> None:
        """Type a line and press Enter."""
        os.write(self.master, f"{text}\n".encode())

    def press(self, key: str) -> None:
        """Press a key: `\\x03` is Ctrl-C, `\\x04` Ctrl-D."""
        os.write(self.master, key.encode())

    def end(self, seconds: float = 60) -> int:
        """Read to the end, and return the exit code."""
        deadline = time.monotonic() + seconds
        while self._read(deadline - time.monotonic()):
            pass
        return self.process.wait(max(deadline - time.monotonic(), 1))

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.master)


def terminal_environment(env: dict[str, str], **more: Any) -> dict[str, str]:
    """An environment in which programs use a terminal for all that it can do."""
    kept = {name: value for name, value in env.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    return {**kept, "TERM": "xterm-256color", "COLORTERM": "truecolor", **more}
