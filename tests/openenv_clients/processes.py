"""Which servers of these tests are running on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

MARK = ("ORS_TESTS_OF", str(os.getpid()))
"""What the environment of such a server says, so that those of other runs are not taken for it."""
LIMIT_S = 30.0


def of_project() -> set[int]:
    """The processes that run the tests' project, also those of a stand-in of uv."""
    found = set()
    mark = "=".join(MARK).encode()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if b"server.app:app" in words and mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.add(int(folder.name))
            except OSError:
                continue  # it has ended meanwhile, or is somebody else's
    return found


def wait_until(true: Callable[[], object], what: str) -> None:
    """Wait until something is true. Raises AssertionError after a limit."""
    deadline = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
