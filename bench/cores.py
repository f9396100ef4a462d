"""Which processor core the server has, and which the load."""

from __future__ import annotations

import os
from collections.abc import Callable

_ALL = sorted(os.sched_getaffinity(0))


def cores() -> tuple[int, int] | None:
    """The core for the server and the core for the load, or None where there is only one."""
    return (_ALL[0], _ALL[1]) if len(_ALL) > 1 else None


def on_core(which: int) -> Callable[[], None] | None:
    """What a child process runs before its program, to stay on the server's core (0) or the load's (1)."""
    pair = cores()
    if pair is None:
        return None
    return lambda: os.sched_setaffinity(0, {pair[which]})
