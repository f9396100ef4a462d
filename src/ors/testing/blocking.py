"""Calls that block an event loop, seen while an author's `async def` code runs on it.

Known blocking functions are seen at once, however short they are; whatever else holds the loop for long is seen by a
thread that looks.
"""

from __future__ import annotations

import builtins
import concurrent.futures
import contextlib
import functools
import io
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from ors.testing.places import author_frame

__all__ = ["Blocked", "BlockingWatch"]

HELD_S = 0.1
"""A loop that computes for so long and does nothing else is blocked, whatever it does."""

WAITS_S = 1.0
"""So is one that does nothing at all for so long. For less it may have been kept waiting by a busy machine."""

_FUNCTIONS: tuple[tuple[Any, str], ...] = (
    (time, "sleep"),
    (subprocess.Popen, "wait"),
    (os, "system"),
    (socket, "getaddrinfo"),
    (socket, "gethostbyname"),
    (builtins, "input"),
    (concurrent.futures.Future, "result"),
    (threading.Event, "wait"),
)
_OF_SOCKETS = ("connect", "recv", "recv_into", "send", "sendall")


_WAITS: dict[str, Callable[..., bool]] = {
    "result": lambda future, *_, **__: not future.done(),
    # a thread that is started waits for its first sign of life
    "wait": lambda of, *_, **__: not (isinstance(of, threading.Event) and (of.is_set() or _starts_a_thread())),
}
"""Of functions that do not always wait: whether this call does."""


def _starts_a_thread() -> bool:
    return sys._getframe(3).f_code is threading.Thread.start.__code__


def _opened_by(frame: FrameType | None, author: FrameType) -> bool:
    """Whether the author's own line opened a file, by itself or with pathlib: what an import reads is not to mend."""
    while frame is not None and frame is not author:
        if "pathlib" not in frame.f_code.co_filename:
            return False
        frame = frame.f_back
    return True


@dataclass(frozen=True)
class Blocked:
    """A call that blocked: what was called, and the author's line and function that called it.

    is_file: it opened a file, which takes long on some disks only.
    """

    what: str
    file: str
    line: int
    function: str
    is_file: bool = False


class BlockingWatch:
    """What blocked the loop of the thread that uses it. module: the author's, whose own names are watched too."""

    def __init__(self, module: Any = None) -> None:
        self.found: dict[tuple[str, int], Blocked] = {}
        self._module = module
        self._beat = self._cpu = 0.0
        self._clock: int | None = None
        self._thread = 0
        self._over = threading.Event()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch, for the length of a `with`, the thread that says `begin`."""
        self._beat = time.monotonic()
        looking = threading.Thread(target=self._look, name="ors-check-watch", daemon=True)
        looking.start()
        try:
            # A profile function would see every call, but CPython 3.11 can loop for ever with one that is set in a
            # thread; so the functions themselves tell, while this lasts.
            with contextlib.ExitStack() as stack:
                for owner, name in _FUNCTIONS:
                    stack.enter_context(self._telling(owner, name))
                for owner in (builtins, io):
                    stack.enter_context(self._telling(owner, "open"))
                for name in _OF_SOCKETS:
                    stack.enter_context(self._telling_of_sockets(name))
                yield
        finally:
            self._over.set()
            looking.join()

    def begin(self) -> None:
        """This thread runs the loop."""
        self.beat()
        if hasattr(time, "pthread_getcpuclockid"):
            self._clock = time.pthread_getcpuclockid(threading.get_ident())  # of a thread that lives, as it must be
        self._thread = threading.get_ident()

    def end(self) -> None:
        """It does so no longer."""
        self._thread = 0

    def beat(self) -> None:
        """The loop is alive, and says so on its own thread."""
        self._beat, self._cpu = time.monotonic(), time.thread_time()

    def _computed_s(self) -> float:
        """For how long the loop's thread has computed since it was alive, where the system tells."""
        if self._clock is None:
            return self.held_s()
        try:
            return time.clock_gettime(self._clock) - self._cpu
        except OSError:  # it has just ended
            return 0.0

    def held_s(self) -> float:
        """For how long the loop has done nothing else."""
        return time.monotonic() - self._beat if self._thread else 0.0

    @contextlib.contextmanager
    def _telling(self, owner: Any, name: str) -> Iterator[None]:
        function = getattr(owner, name)
        what = f"{getattr(owner, '__qualname__', owner.__name__)}.{name}()".removeprefix("builtins.")

        @functools.wraps(function)
        def told(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == self._thread and waits(*args, **kwargs):
                self._note(sys._getframe(1), what, is_file=name == "open")
            return function(*args, **kwargs)

        waits = _WAITS.get(name, lambda *_, **__: True)
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

    def _note(self, frame: FrameType | None, what: str, *, is_file: bool = False) -> None:
        written = author_frame(frame)
        if written is None or (is_file and not _opened_by(frame, written)):
            return
        code = written.f_code
        blocked = Blocked(what, code.co_filename, written.f_lineno, code.co_qualname, is_file)
        self.found.setdefault((blocked.file, blocked.line), blocked)

    def _look(self) -> None:
        while not self._over.wait(HELD_S / 4):
            held = self.held_s()
            if held >= HELD_S and (held >= WAITS_S or self._computed_s() >= HELD_S):
                frame = sys._current_frames().get(self._thread)
                self._note(frame, f"code that held the event loop for {held:.1f} s")
