"""Watching the author loops: who blocks one is named, and a loop that stays blocked is written off.

A blocked `async def` delays the other asynchronous code of its offering until the limit; that is what one thread for
each offering costs, and what the limit bounds.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ors.runtime.author_loop import AuthorLoop
    from ors.runtime.runtime import RuntimeOptions

__all__ = ["Watchdog", "blame"]

logger = logging.getLogger("ors.runtime")
_STANDARD = sysconfig.get_path("stdlib")
_RUNTIME = __file__.removesuffix("watchdog.py")


class Watchdog:
    """A thread that asks every author loop for a sign of life. It only runs while there is a loop to watch."""

    TICK_S = 0.25

    def __init__(self, owner: asyncio.AbstractEventLoop, options: RuntimeOptions) -> None:
        self._owner = owner
        self._options = options
        self._authors: list[AuthorLoop] = []
        self._warned: dict[AuthorLoop, bool] = {}
        self._on_lost: Callable[[AuthorLoop, str], Any] | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, author: AuthorLoop) -> None:
        """Watch a loop from now on."""
        self._authors.append(author)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ors-watchdog", daemon=True)
            self._thread.start()

    def on_lost(self, callback: Callable[[AuthorLoop, str], Any]) -> None:
        """Called on the owner's loop with a loop that is written off and the name of what blocks it."""
        self._on_lost = callback

    def stop(self) -> None:
        """Stop watching."""
        self._stop.set()

    def _run(self) -> None:
        tick = min(self.TICK_S, self._options.blocked_warn_s / 2, self._options.blocked_limit_s / 2)
        while not self._stop.wait(tick):
            for author in list(self._authors):
                try:
                    silent = author.probe(time.monotonic())
                except RuntimeError:  # its loop is closed
                    self._authors.remove(author)
                    continue
                if silent > self._options.blocked_limit_s:
                    self._lose(author)
                elif silent > self._options.blocked_warn_s:
                    if not self._warned.get(author):
                        self._warned[author] = True
                        logger.warning(
                            "%s has blocked its event loop for %.1f s; make it a plain `def`, or await what it needs",
                            blame(author.thread),
                            silent,
                        )
                else:
                    self._warned[author] = False

    def _lose(self, author: AuthorLoop) -> None:
        what = blame(author.thread)
        author.lost = True
        self._authors.remove(author)
        self._warned.pop(author, None)
        logger.error(
            "%s has blocked its event loop for over %g s; the loop is given up", what, self._options.blocked_limit_s
        )
        if self._on_lost is not None:
            try:
                self._owner.call_soon_threadsafe(self._on_lost, author, what)
            except RuntimeError:  # the owner has stopped
                pass


def blame(thread: threading.Thread) -> str:
    """Name the code that a thread is in: the call's label where there is one, and the innermost line of the author's.

    What the standard library does for it (waiting for a lock, reading from a socket) says less than who asked for it.
    """
    frame = sys._current_frames().get(thread.ident or 0)
    label, place, inner = "", "", ""
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        if name.startswith(_RUNTIME):
            running = frame.f_locals.get("running")
            if running is not None:
                label = f"'{running.work.label}'"
                break
        elif not place:
            here = f"{code.co_qualname} ({name.rsplit('/', 1)[-1]}:{frame.f_lineno})"
            inner = inner or here
            if not _is_standard(name):
                place = here
        frame = frame.f_back
    return " in ".join(part for part in (label, place or inner) if part) or "something"


def _is_standard(name: str) -> bool:
    return name.startswith(("<", _STANDARD)) and "site-packages" not in name
