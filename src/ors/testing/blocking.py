"""Calls that block an event loop, seen while an author's `async def` code runs on it.

Known blocking functions are seen at once, however short they are; whatever else holds the loop for long is seen by a
thread that looks.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from ors.testing.places import author_frame

__all__ = ["Blocked", "BlockingWatch"]

HELD_S = 0.1
"""A loop that does nothing else for so long is blocked, whatever it does."""

_BLOCKING = {
    ("time", "sleep"),
    ("_posixsubprocess", "fork_exec"),
    ("posix", "waitpid"),
    ("posix", "system"),
    ("_socket", "getaddrinfo"),
    ("_socket", "gethostbyname"),
    ("select", "select"),
    ("builtins", "input"),
}
_OF_SOCKETS = frozenset(("connect", "recv", "recv_into", "send", "sendall", "accept"))


@dataclass(frozen=True)
class Blocked:
    """A call that blocked: what was called, and the author's line and function that called it."""

    what: str
    file: str
    line: int
    function: str


class BlockingWatch:
    """What blocked the loop of the thread in which it is used."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, int], Blocked] = {}
        self._beat = 0.0
        self._thread = 0
        self._over = threading.Event()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch this thread for the length of a `with`."""
        self._thread = threading.get_ident()
        self._beat = time.monotonic()
        looking = threading.Thread(target=self._look, name="ors-check-watch", daemon=True)
        looking.start()
        sys.setprofile(self._seen)
        try:
            yield
        finally:
            sys.setprofile(None)
            self._over.set()
            looking.join()

    def beat(self) -> None:
        """The loop is alive."""
        self._beat = time.monotonic()

    def _seen(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "c_call":
            return
        name = getattr(argument, "__name__", "")
        owner = getattr(argument, "__self__", None)
        if name in _OF_SOCKETS and owner is not None and hasattr(owner, "gettimeout"):
            # one that does not wait is how event loops read
            if owner.gettimeout() != 0:
                self._note(frame, f"a socket's {name}()")
        elif (getattr(argument, "__module__", None), name) in _BLOCKING:
            self._note(frame, f"{argument.__module__.lstrip('_')}.{name}()")

    def _note(self, frame: FrameType | None, what: str) -> None:
        written = author_frame(frame)
        if written is not None:
            code = written.f_code
            blocked = Blocked(what, code.co_filename, written.f_lineno, code.co_name)
            self.found.setdefault((blocked.file, blocked.line), blocked)

    def _look(self) -> None:
        while not self._over.wait(HELD_S / 4):
            held = time.monotonic() - self._beat
            if held >= HELD_S:
                frame = sys._current_frames().get(self._thread)
                self._note(frame, f"code that held the event loop for {held:.1f} s")
