"""Calls that block an event loop, seen while an author's `async def` code runs on it.

Known blocking functions are seen at once, however short they are; whatever else holds the loop for long is seen by a
thread that looks.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import os
import socket
import subprocess
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

_FUNCTIONS: tuple[tuple[Any, str], ...] = (
    (time, "sleep"),
    (subprocess.Popen, "wait"),
    (os, "system"),
    (socket, "getaddrinfo"),
    (socket, "gethostbyname"),
    (builtins, "input"),
)
_OF_SOCKETS = ("connect", "recv", "recv_into", "send", "sendall")


@dataclass(frozen=True)
class Blocked:
    """A call that blocked: what was called, and the author's line and function that called it."""

    what: str
    file: str
    line: int
    function: str


class BlockingWatch:
    """What blocked the loop of the thread that uses it. module: the author's, whose own names are watched too."""

    def __init__(self, module: Any = None) -> None:
        self.found: dict[tuple[str, int], Blocked] = {}
        self._module = module
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
        try:
            # A profile function would see every call, but CPython 3.11 can loop for ever with one that is set in a
            # thread; so the functions themselves tell, while this lasts.
            with contextlib.ExitStack() as stack:
                for owner, name in _FUNCTIONS:
                    stack.enter_context(self._telling(owner, name))
                for name in _OF_SOCKETS:
                    stack.enter_context(self._telling_of_sockets(name))
                yield
        finally:
            self._over.set()
            looking.join()

    def beat(self) -> None:
        """The loop is alive."""
        self._beat = time.monotonic()

    @contextlib.contextmanager
    def _telling(self, owner: Any, name: str) -> Iterator[None]:
        function = getattr(owner, name)
        what = f"{getattr(owner, '__qualname__', owner.__name__)}.{name}()".removeprefix("builtins.")

        @functools.wraps(function)
        def told(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == self._thread:
                self._note(sys._getframe(1), what)
            return function(*args, **kwargs)

        # `from time import sleep` has put the function under a name of the author's
        own = [key for key, value in vars(self._module).items() if value is function] if self._module else []
        setattr(owner, name, told)
        for key in own:
            setattr(self._module, key, told)
        try:
            yield
        finally:
            setattr(owner, name, function)
            for key in own:
                setattr(self._module, key, function)

    @contextlib.contextmanager
    def _telling_of_sockets(self, name: str) -> Iterator[None]:
        function = getattr(socket.socket, name)

        @functools.wraps(function)
        def told(of: Any, *args: Any, **kwargs: Any) -> Any:
            # one that does not wait is how event loops read
            if threading.get_ident() == self._thread and of.gettimeout() != 0:
                self._note(sys._getframe(1), f"a socket's {name}()")
            return function(of, *args, **kwargs)

        setattr(socket.socket, name, told)
        try:
            yield
        finally:
            delattr(socket.socket, name)

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
