"""What the process holds: threads, open files, child processes, asyncio tasks.

What grows from episode to episode is a leak. Files are seen where the system lists them under /proc/self/fd or
/dev/fd, children where Linux lists them.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Held", "growth", "held"]


@dataclass(frozen=True)
class Held:
    """What is held at one moment, as keys with words for each."""

    threads: dict[int, str]
    files: dict[str, str]
    children: dict[int, str]
    tasks: dict[int, str]


def held(stage_thread: threading.Thread, loop: asyncio.AbstractEventLoop | None) -> Held:
    """What this process holds now, besides the thread of the check."""
    threads = {
        thread.ident or 0: thread.name
        for thread in threading.enumerate()
        # the loop's own workers are kept for the next call; their number is bounded
        if thread is not stage_thread and not thread.name.startswith("asyncio_")
    }
    tasks = {id(task): task.get_name() for task in (asyncio.all_tasks(loop) if loop is not None else ())}
    return Held(threads, _files(), _children(), tasks)


def growth(before: Held, now: Callable[[], Held], settle_s: float = 0.5) -> list[tuple[str, str]]:
    """What is held now that was not before, as kind and name. What is on its way to an end gets a moment for it."""
    deadline = time.monotonic() + settle_s
    while True:
        gc.collect()
        after = now()
        found = [("thread", name) for key, name in after.threads.items() if key not in before.threads]
        found += [("file", name) for key, name in after.files.items() if before.files.get(key) != name]
        found += [("process", name) for key, name in after.children.items() if key not in before.children]
        found += [("asyncio task", name) for key, name in after.tasks.items() if key not in before.tasks]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


def _files() -> dict[str, str]:
    found = {}
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            for name in os.listdir(folder):
                with suppress(OSError):  # the listing's own is closed by now
                    found[name] = os.readlink(f"{folder}/{name}") if folder.startswith("/proc") else name
            return found
    return found


def _children() -> dict[int, str]:
    found: dict[int, str] = {}
    with suppress(OSError):
        for task in os.listdir("/proc/self/task"):
            with suppress(OSError):
                for pid in Path(f"/proc/self/task/{task}/children").read_text().split():
                    found[int(pid)] = _command(int(pid))
    return found


def _command(pid: int) -> str:
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        said = b" ".join(words[:3]).decode("utf-8", "replace").strip()
        return f"{said[:60]} (pid {pid})" if said else f"pid {pid}"
    return f"pid {pid}"
