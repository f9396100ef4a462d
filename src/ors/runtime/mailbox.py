"""Handing things to an event loop from other threads, with one wake-up for many."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Mailbox"]

logger = logging.getLogger("ors.runtime")

T = TypeVar("T")

AT_A_STRETCH = 64
"""How many items are delivered before the loop looks at what else there is to do."""


class Mailbox(Generic[T]):
    """Items for one loop. `deliver` is called on that loop for each, in the order they were posted."""

    def __init__(self, loop: asyncio.AbstractEventLoop, deliver: Callable[[T], None]) -> None:
        self._loop = loop
        self._deliver = deliver
        self._items: deque[T] = deque()
        self._awake = False
        self._flush_due = False

    def post(self, item: T) -> None:
        """Post from any thread; wakes the loop at once unless it is awake already."""
        self._items.append(item)
        self._wake()

    def post_from(self, source: asyncio.AbstractEventLoop, item: T) -> None:
        """Post from a thread that runs `source`; the wake-up comes when that loop has done what is ready now.

        Waking at once would make the two threads fight for the interpreter over every item.
        """
        self._items.append(item)
        if not self._flush_due and not self._awake:
            self._flush_due = True
            source.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        self._wake()

    def _wake(self) -> None:
        # An item is appended before the flag is read, and the flag is cleared before items are taken: none is missed.
        if not self._awake:
            self._awake = True
            try:
                self._loop.call_soon_threadsafe(self._drain)
            except RuntimeError:  # the loop is closed: nobody is left to deliver to
                self._items.clear()

    def _drain(self) -> None:
        self._awake = False
        items = self._items
        deliver = self._deliver
        for _ in range(AT_A_STRETCH):
            if not items:
                return
            try:
                deliver(items.popleft())
            except Exception:  # what follows in the box must not wait for the next wake-up
                logger.exception("delivering a result failed")
        self._awake = True
        self._loop.call_soon(self._drain)
