"""One end of the connection between a host and its owner process.

What is sent during one pass of the event loop leaves in one write; what arrives together is handed on together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ors.hosts.frames import FrameError, FrameReader, write_frame

__all__ = ["Link"]


class Link(asyncio.Protocol):
    """Sends and receives messages. Made on the event loop that uses it.

    received: called with all messages that arrived together. lost: called once when the connection is over, with the
    FrameError that ended it or None.
    """

    def __init__(
        self, kinds: Any, received: Callable[[Sequence[Any]], None], lost: Callable[[FrameError | None], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(kinds)
        self._received = received
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._out = bytearray()
        self._flush_due = False
        self._fault: FrameError | None = None
        self._over: asyncio.Future[None] = self._loop.create_future()
        self.paused = False

    def send(self, message: msgspec.Struct) -> None:
        """Send a message with whatever else this pass of the loop sends. Raises FrameError; then nothing is sent."""
        write_frame(message, self._out)
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    async def close(self) -> None:
        """Write what is left and close."""
        self._flush()
        if self._transport is not None:
            self._transport.close()
            await asyncio.shield(self._over)

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _flush(self) -> None:
        self._flush_due = False
        out, self._out = self._out, bytearray()
        if out and self._transport is not None and not self._transport.is_closing():
            self._transport.write(out)

    # What the event loop calls

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            messages = self._reader.feed(data)
        except FrameError as exc:
            self._fault = exc
            self.abort()
            return
        if messages:
            self._received(messages)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._fault is None:
            try:
                self._reader.end()
            except FrameError as fault:
                self._fault = fault
        if not self._over.done():
            self._over.set_result(None)
        self._lost(self._fault)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
