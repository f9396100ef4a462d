"""WebSockets as the check speaks them: one socket of a server, what was sent on it and what came.

As with requests, nothing that a server does raises an error of its own: what is wrong is `Failed`, with the talk so
far.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections import deque
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Message,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.utilities import ProtocolError

from ors.conformance.judging import Failed
from ors.conformance.wire import MAX_ANSWER, Answer, BadJSON, Sent, Speaker, strict_json

__all__ = ["Socket"]


class Socket:
    """A socket of the server that is checked; `closed` is the code with which the server closed it."""

    def __init__(self, speaker: Speaker, path: str) -> None:
        self._speaker = speaker
        self._path = path
        self._sent: list[str] = []
        self._came: list[bytes] = []
        self._waiting: deque[str] = deque()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._ws = WSConnection(ConnectionType.CLIENT)
        self._status = 0
        self._piece = ""
        self.closed: int | None = None

    @property
    def waiting(self) -> int:
        """How many messages have come that nobody has heard yet."""
        return len(self._waiting)

    def talk(self, problem: str | None = None) -> Answer:
        """What was said on both sides, in the shape in which reports show requests and answers."""
        sent = Sent("WEBSOCKET", self._path, {}, "\n".join(self._sent).encode())
        answer = Answer(sent, status=self._status, pieces=[(0.0, b"\n".join(self._came))], problem=problem)
        answer.shorten()
        return answer

    def failed(self, why: str) -> Failed:
        """The error for a row that does not hold."""
        return Failed(why, self.talk())

    async def open(self) -> None:
        """Connect. Raises Failed where the server refuses."""
        address = self._speaker.address
        context = ssl.create_default_context() if address.secure else None
        async with self._patience("the socket was not opened"):
            self._reader, self._writer = await asyncio.open_connection(address.host, address.port, ssl=context)
            headers = [(name.encode(), value.encode()) for name, value in self._speaker.headers.items()]
            self._write(Request(host=address.authority, target=address.prefix + self._path, extra_headers=headers))
            while self._status != 101:
                await self._receive()
                if self.closed is not None and self._status != 101:
                    raise self.failed("the connection was closed before the socket was open")

    async def say(self, message: Any) -> None:
        """Send a message: a text as it is, anything else as JSON."""
        text = message if isinstance(message, str) else json.dumps(message)
        self._sent.append(text)
        if self.closed is not None:
            raise self.failed(f"the server has closed the socket (code {self.closed})")
        async with self._patience("the server does not take a message"):
            self._write(Message(data=text))
            assert self._writer is not None
            await self._writer.drain()

    async def hear(self) -> dict[str, Any]:
        """The next message, which must be a JSON object. Raises Failed."""
        async with self._patience("no message came"):
            while not self._waiting:
                if self.closed is not None:
                    raise self.failed(f"the server closed the socket (code {self.closed}) instead of an answer")
                await self._receive()
        text = self._waiting.popleft()
        try:
            message = strict_json(text)
        except BadJSON as exc:
            raise self.failed(f"a message is not JSON: {exc}") from None
        if not isinstance(message, dict):
            raise self.failed("a message is no JSON object")
        return message

    async def ask(self, message: Any) -> dict[str, Any]:
        """Send a message and return the next one that comes."""
        await self.say(message)
        return await self.hear()

    async def ended(self) -> int:
        """The code with which the server closes the socket; messages that come before are an error."""
        async with self._patience("the server does not close the socket"):
            while self.closed is None:
                await self._receive()
        if self._waiting:
            raise self.failed(f"a message came in place of the end: {self._waiting[0][:200]}")
        return self.closed

    def leave(self) -> None:
        """Close it without waiting."""
        if self._writer is not None:
            if self.closed is None and self._status == 101:
                with contextlib.suppress(Exception):
                    self._write(CloseConnection(code=1000))
            with contextlib.suppress(Exception):
                self._writer.close()

    @contextlib.asynccontextmanager
    async def _patience(self, what: str) -> Any:
        try:
            async with asyncio.timeout(self._speaker.timeout_s):
                yield
        except TimeoutError:
            raise self.failed(f"{what} within {self._speaker.timeout_s:g} s") from None
        except (OSError, ssl.SSLError) as exc:
            raise self.failed(f"the connection failed: {exc or type(exc).__name__}") from None
        except ProtocolError as exc:
            raise self.failed(f"this is no WebSocket as it should be: {exc}") from None

    def _write(self, event: Event) -> None:
        assert self._writer is not None
        self._writer.write(self._ws.send(event))

    async def _receive(self) -> None:
        assert self._reader is not None
        data = await self._reader.read(65536)
        self._ws.receive_data(data or None)
        for event in self._ws.events():
            if isinstance(event, AcceptConnection):
                self._status = 101
            elif isinstance(event, RejectConnection):
                self._status = event.status_code
                raise self.failed(f"the socket is refused with status {event.status_code}")
            elif isinstance(event, TextMessage):
                self._piece += event.data
                if event.message_finished:
                    self._came.append(self._piece.encode("utf-8", "replace"))
                    self._waiting.append(self._piece)
                    self._piece = ""
            elif isinstance(event, BytesMessage):
                raise self.failed("a message is bytes, not text")
            elif isinstance(event, Ping):
                self._write(event.response())
            elif isinstance(event, CloseConnection):
                self.closed = event.code
                self._came.append(b"(closed: %d)" % event.code)
        if not data and self.closed is None:
            self.closed = 1006
        if sum(map(len, self._came)) > MAX_ANSWER:
            raise self.failed(f"more than {MAX_ANSWER // 2**20} MiB came")
