"""Server-sent events as ORS uses them: what is written for a call, and the stream that is kept alive while it runs.

Both existing clients strip all white space at the start of each `data:` value, so no piece may start with any.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec

from ors.core.failures import Failure
from ors.core.ports import Outcome
from ors.faces.http import Request
from ors.jsontext import dump

__all__ = ["EventStream", "Patience", "end_event", "error_event", "task_id_event"]

PIECE = 60_000
"""Bytes of a `data:` line, under the 64 KiB that readers can be trusted with."""
PING_S = 10.0
START_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
_PING = b": ping\r\n\r\n"
_LINES = re.compile(r"\r\n|\r|\n")


def task_id_event(call_id: str) -> bytes:
    """The first event: the id by which the call can be fetched again."""
    return b"event: task_id\r\ndata: %s\r\n\r\n" % call_id.encode()


def end_event(body: bytes) -> bytes:
    """The result, as one `end` or as `chunk`s before it. `body` is compact JSON."""
    if len(body) <= PIECE:
        return b"event: end\r\ndata: %s\r\n\r\n" % body
    out: list[bytes] = []
    position = 0
    prefix = b""
    while len(body) - position > PIECE:
        cut, next_prefix, skip = _cut(body, position)
        out.append(b"event: chunk\r\ndata: %s%s\r\n\r\n" % (prefix, body[position:cut]))
        position, prefix = cut + skip, next_prefix
    out.append(b"event: end\r\ndata: %s%s\r\n\r\n" % (prefix, body[position:]))
    return b"".join(out)


def error_event(failed: Failure) -> bytes:
    """The call broke: the words for people, and beside them, where readers skip it, what programs need."""
    text = failed.detail or failed.kind
    if len(text.encode()) > PIECE:
        text = text.encode()[: PIECE - 100].decode(errors="ignore") + " … (shortened)"
    lines = b"".join(b"data: %s\r\n" % line.encode() for line in _LINES.split(text))
    about = dump({"kind": failed.kind, "retryable": failed.retryable, "ran": failed.ran})
    return b": failure %s\r\nevent: error\r\n%s\r\n" % (about, lines)


def _cut(body: bytes, start: int) -> tuple[int, bytes, int]:
    """Where to end the piece that starts at `start`; what the next one starts with in place of `skip` bytes.

    The next piece must not start with white space (as `str.isspace` has it). Where everything near is white space, its
    first character is written as an escape, which JSON reads the same: outside of strings compact JSON has none.
    """
    end = start + PIECE
    while body[end] & 0xC0 == 0x80:
        end -= 1
    cut = end
    for _ in range(256):
        char = _char_at(body, cut)
        if not char.isspace():
            return cut, b"", 0
        cut -= 1
        while body[cut] & 0xC0 == 0x80:
            cut -= 1
    char = _char_at(body, end)
    return end, b"\\u%04x" % ord(char), len(char.encode())


def _char_at(body: bytes, position: int) -> str:
    first = body[position]
    size = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    return body[position : position + size].decode()


class EventStream(msgspec.Struct, eq=False):
    """The answer to a call. It is written at once when the call ends at once; else it is begun and kept alive."""

    request: Request
    call_id: str
    future: asyncio.Future[Outcome]
    keeper: asyncio.Task[None] | None = None
    begun: bool = False
    gone: bool = False
    settled: bool = False

    def begin(self) -> None:
        """The call takes its time: send the headers and its id now, then pings."""
        if not self.settled:
            self.keeper = asyncio.get_running_loop().create_task(self._keep())

    async def _keep(self) -> None:
        request = self.request
        self.begun = True
        await request.send({"type": "http.response.start", "status": 200, "headers": START_HEADERS})
        await request.send({"type": "http.response.body", "body": task_id_event(self.call_id), "more_body": True})
        leaving = asyncio.ensure_future(self._left())
        try:
            while True:
                done, _ = await asyncio.wait({leaving}, timeout=PING_S - 1)
                if done:
                    self.gone = True
                    self.future.cancel()
                    return
                await request.send({"type": "http.response.body", "body": _PING, "more_body": True})
        finally:
            leaving.cancel()

    async def _left(self) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass

    async def settle(self) -> None:
        """The call has ended: no more pings. From here on `begun` does not change."""
        self.settled = True
        if self.keeper is not None:
            self.keeper.cancel()
            await asyncio.wait({self.keeper})

    async def finish(self, events: bytes) -> None:
        """Write the last events, with the beginning if it has not been written."""
        if self.begun:
            await self.request.send({"type": "http.response.body", "body": events})
        else:
            await send_whole(self.request.send, task_id_event(self.call_id) + events)


async def send_whole(send: Any, events: bytes) -> None:
    """A stream that is complete: one write."""
    # nothing can be cached or held back of what is whole, so the headers that forbid it are left out
    headers = [START_HEADERS[0], (b"content-length", b"%d" % len(events))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": events})


class Patience:
    """Begins the streams whose calls have not ended within a moment. One timer for all of them."""

    __slots__ = ("_delay", "_timer", "_waiting")

    def __init__(self, delay: float = 0.25) -> None:
        self._delay = delay
        self._waiting: dict[EventStream, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, loop: asyncio.AbstractEventLoop, stream: EventStream) -> None:
        """Begin this stream unless it is removed before the delay is over."""
        self._waiting[stream] = loop.time() + self._delay
        if self._timer is None:
            self._timer = loop.call_later(self._delay, self._look, loop)

    def remove(self, stream: EventStream) -> None:
        """The call has ended."""
        self._waiting.pop(stream, None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        due = []
        for stream, deadline in self._waiting.items():
            if deadline > now:
                self._timer = loop.call_later(max(deadline - now, 0.005), self._look, loop)
                break
            due.append(stream)
        else:
            self._timer = None
        for stream in due:
            del self._waiting[stream]
            stream.begin()
