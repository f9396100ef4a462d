"""Running a command in a child process, again whenever a Python file changes.

A new process is the only way to forget what was imported. The child has a process group of its own: Ctrl-C reaches this
process only, which ends the child once and in order.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import typer

from ors.cli.errors import CommandError

__all__ = ["Reloader"]

_PATIENCE = 20.0
"""Seconds that a child has to end before it is killed."""


class Reloader:
    """Runs `ors` with some words until a signal comes; starts it again when a file under one of the folders changes."""

    def __init__(self, words: Sequence[str], folders: Iterable[Path]) -> None:
        self._command = [sys.executable, "-m", "ors.cli", *words]
        self._folders = sorted(set(folders))
        self._stop = threading.Event()
        self._told_of_end = False

    def run(self) -> None:
        """Watch and run. Raises CommandError when watching is not possible here."""
        try:
            watchfiles: Any = importlib.import_module("watchfiles")
        except ImportError:
            raise CommandError(
                "--reload needs the package watchfiles: pip install 'ors-kit[reload]', or pip install watchfiles"
            ) from None
        before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        child = self._start()
        try:
            changes = watchfiles.watch(
                *self._folders,
                watch_filter=watchfiles.PythonFilter(),
                stop_event=self._stop,
                debounce=300,
                rust_timeout=250,
                yield_on_timeout=True,
                raise_interrupt=False,
            )
            for change in changes:
                if change:
                    names = sorted({Path(path).name for _, path in change})
                    _say(f"{', '.join(names[:5])} changed: starting again")
                    _end(child)
                    child = self._start()
                else:
                    self._tell_of_end(child)
        finally:
            _end(child)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stop.set()

    def _start(self) -> subprocess.Popen[bytes]:
        self._told_of_end = False
        return subprocess.Popen(self._command, process_group=0)  # noqa: S603 - the words are the user's own

    def _tell_of_end(self, child: subprocess.Popen[bytes]) -> None:
        if not self._told_of_end and child.poll() is not None:
            self._told_of_end = True
            _say(f"the server ended with exit code {child.returncode}; it starts again when a file changes")


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            _say("the server does not end: it is killed")
            if os.name == "posix":
                os.killpg(child.pid, signal.SIGKILL)
            else:
                child.kill()
            child.wait()


def _say(text: str) -> None:
    typer.echo(f"ors serve: {text}", err=True)
