"""Calls that wait on an event loop's own thread, noticed while a coroutine of the author's runs.

A profile function of that thread sees each call into C and each Python function that is entered. It sees no other
thread: what is done with `asyncio.to_thread` is all right. It costs a few times the speed of Python code, so only one
episode is watched so; how long code computes is measured in others, without it (`stage`).
"""

from __future__ import annotations

import builtins
import concurrent.futures
import io
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Literal

from ors.testing.places import Own, Spot

__all__ = ["Blocked", "Watcher"]


@dataclass(frozen=True)
class Blocked:
    """A call that waited: what was called, whether it was about a file, and the line of the author's that called."""

    what: str
    kind: Literal["waits", "file", "busy"]
    spot: Spot
    function: str


_PYTHON = {
    function.__code__: name
    for name, function in {
        "subprocess.run": subprocess.run,
        "subprocess.call": subprocess.call,
        "Popen.communicate": subprocess.Popen.communicate,
        "Popen.wait": subprocess.Popen.wait,
        "socket.create_connection": socket.create_connection,
    }.items()
}
_WAITS = {
    concurrent.futures.Future.result.__code__: "Future.result",
    threading.Event.wait.__code__: "Event.wait",
    threading.Thread.join.__code__: "Thread.join",
}
_THREAD_START = threading.Thread.start.__code__
_C = {time.sleep: "time.sleep", os.system: "os.system", builtins.input: "input"}
_FILES = {builtins.open, io.open_code, os.listdir, os.scandir}
_SOCKET_METHODS = frozenset(("connect", "recv", "recv_into", "recvfrom", "send", "sendall", "sendto", "accept"))
_TLS_METHODS = frozenset(("do_handshake", "read", "write"))


class Watcher:
    """Notices, between `start` and `stop` on one thread, what blocks it."""

    def __init__(self, own: Own) -> None:
        self._own = own
        self._before: Any = None
        self.found: list[Blocked] = []

    def start(self) -> None:
        """Watch this thread."""
        self._before = sys.getprofile()
        sys.setprofile(self._see)

    def stop(self) -> None:
        """Watch it no longer."""
        sys.setprofile(self._before)

    def _see(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code in _PYTHON:
                self._note(_PYTHON[code], frame)
            elif code in _WAITS and not _is_over(code, frame):
                self._note(_WAITS[code], frame)
        elif event == "c_call":
            try:
                name = _C.get(arg)
            except TypeError:  # it cannot be hashed
                return
            if name is not None:
                self._note(name, frame)
            elif arg in _FILES:
                self._note(getattr(arg, "__name__", "open"), frame, "file")
            else:
                self._see_socket(frame, arg)

    def _see_socket(self, frame: FrameType, arg: Any) -> None:
        owner = getattr(arg, "__self__", None)
        name = getattr(arg, "__name__", "")
        if name in _SOCKET_METHODS and isinstance(owner, socket.SocketType) and owner.gettimeout() != 0:
            self._note(f"socket.{name}", frame)
        elif name in _TLS_METHODS and type(owner).__name__ == "_SSLSocket":
            outer = getattr(owner, "owner", None)
            if outer is not None and isinstance(outer, socket.socket) and outer.gettimeout() != 0:
                self._note(f"TLS {name}", frame)
        elif name == "getaddrinfo" and getattr(arg, "__module__", "") == "_socket":
            self._note("socket.getaddrinfo", frame)
        elif name == "select" and owner is select:
            self._note("select.select", frame)

    def _note(self, what: str, frame: FrameType, kind: Literal["waits", "file"] = "waits") -> None:
        caller = self._own.frame(frame)
        if caller is None:
            return
        if kind == "file" and not _is_direct(frame, caller):
            return  # what an import or a library opens is not what the author can mend here
        code = caller.f_code
        blocked = Blocked(what, kind, (code.co_filename, caller.f_lineno), code.co_qualname)
        # one call often makes others: the outermost, which the author wrote, is what is told
        if not any(known.spot == blocked.spot for known in self.found):
            self.found.append(blocked)


def _is_direct(frame: FrameType, caller: FrameType) -> bool:
    """Whether the author's line opened the file itself, or with pathlib."""
    between: FrameType | None = frame
    while between is not None and between is not caller:
        if "pathlib" not in between.f_code.co_filename:
            return False
        between = between.f_back
    return True


def _is_over(code: CodeType, frame: FrameType) -> bool:
    """Whether what is waited for has come already, or the wait is none."""
    if frame.f_back is not None and frame.f_back.f_code is _THREAD_START:
        return True  # the moment that a thread takes to begin
    timeout = frame.f_locals.get("timeout")
    if timeout is not None and timeout <= 0:
        return True
    waited = frame.f_locals.get("self")
    if isinstance(waited, threading.Thread):
        return not waited.is_alive()
    done: Callable[[], bool] | None = getattr(waited, "done", None) or getattr(waited, "is_set", None)
    return done is None or done()
