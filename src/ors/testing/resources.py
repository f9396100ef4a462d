"""What a process holds: threads, open files, child processes."""

from __future__ import annotations

import gc
import os
import threading
import time
from pathlib import Path

__all__ = ["Held", "left_over"]

_GRACE_S = 1.0


class Held:
    """What is held at one moment."""

    def __init__(self) -> None:
        self.threads = {thread for thread in threading.enumerate() if not thread.name.startswith("ors-check")}
        self.files = _files()
        self.processes = _processes()


def left_over(before: Held) -> dict[str, list[str]]:
    """What is held now and was not before, by kind; what goes away in a second is waited for."""
    deadline = time.monotonic() + _GRACE_S
    while True:
        gc.collect()
        now = Held()
        left = {
            "leak-threads": sorted(thread.name for thread in now.threads - before.threads),
            "leak-files": sorted(now.files[fd] for fd in now.files if before.files.get(fd) != now.files[fd]),
            "leak-processes": sorted(name for pid, name in now.processes.items() if pid not in before.processes),
        }
        left = {kind: names for kind, names in left.items() if names}
        if not left or time.monotonic() >= deadline:
            return left
        time.sleep(0.02)


def _files() -> dict[str, str]:
    folder = Path("/proc/self/fd")
    found = {}
    if folder.is_dir():
        for fd in os.listdir(folder):
            try:
                found[fd] = os.readlink(folder / fd)
            except OSError:
                continue
    return found


def _processes() -> dict[str, str]:
    found = {}
    for task in Path("/proc/self/task").glob("*/children"):
        try:
            for pid in task.read_text().split():
                found[pid] = Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            continue
    return found
