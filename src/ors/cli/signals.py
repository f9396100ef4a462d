"""Signals in commands that wait for a person: however a command is told to end, it closes what it has opened."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["ending_in_order"]

_ENDING = tuple(
    number for name in ("SIGTERM", "SIGHUP") if isinstance(number := getattr(signal, name, None), signal.Signals)
)
_NUDGE = getattr(signal, "SIGURG", None)
"""A signal that means nothing by itself; it interrupts what the main thread waits in."""
_PAUSES_S = (0.05, 0.2, 1.0)
"""More than one: on a busy machine the main thread may come to its waiting later than the first of them."""


@contextlib.contextmanager
def ending_in_order() -> Iterator[None]:
    """A plain `kill` and a closed terminal end the command as Ctrl-C does: what it has opened is closed."""
    before = {number: signal.signal(number, _stop) for number in _ENDING}
    try:
        with _noticed():
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


@contextlib.contextmanager
def _noticed() -> Iterator[None]:
    """Python runs handlers between two steps of its own: a signal that comes just before it begins to wait for a key is
    noticed with that key. So a thread that learns of each signal interrupts the waiting.
    """
    if _NUDGE is None or not hasattr(signal, "pthread_kill"):
        yield
        return
    here, nudge, waiter = threading.get_ident(), _NUDGE, threading.Event()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def watch() -> None:
        while numbers := os.read(reading, 64):
            if set(numbers) - {nudge}:
                for pause_s in _PAUSES_S:  # by then the main thread runs the handler, or waits
                    if waiter.wait(pause_s):
                        break
                    signal.pthread_kill(here, nudge)

    ignored = signal.signal(nudge, lambda number, frame: None)
    previous = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    watcher = threading.Thread(target=watch, name="ors-signals", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        waiter.set()
        signal.set_wakeup_fd(previous)
        os.close(writing)
        watcher.join()
        os.close(reading)
        signal.signal(nudge, ignored)
