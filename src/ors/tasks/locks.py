"""A lock for what is opened once: a process that forks while another thread holds it does not inherit it held."""

from __future__ import annotations

import os
import threading
from typing import Any

__all__ = ["OpeningLock"]

_guard = threading.Lock()


def _renew() -> None:
    global _guard
    _guard = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


class OpeningLock:
    """A lock that starts free in every process, whether forked or pickled to."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if self._pid != os.getpid():
            with _guard:
                if self._pid != os.getpid():
                    self._lock, self._pid = threading.RLock(), os.getpid()
        self._lock.acquire()

    def __exit__(self, *exc: object) -> None:
        self._lock.release()

    def __reduce__(self) -> Any:
        return OpeningLock, ()
