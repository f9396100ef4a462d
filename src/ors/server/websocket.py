"""One WebSocket, taken over from an HTTP/1.1 connection.

It is an ASGI WebSocket to every application, and a line (see `ors.faces.sockets`) to those that ask for one: then a
message is handed over as soon as it is read, with no task to wake and no queue between. No compression is agreed on:
what is sent is short, or holds images that are compressed already.

A client that has been quiet is pinged. One that does not answer is not cut off, since some of what stands between eats
pings; since when it owes an answer can be asked. It is cut off when it was silent for as long as a session may be idle.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
from collections import deque
from typing import Any

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE
from uvicorn.server import ServerState

from ors.faces.sockets import SocketLimits, Talk
from ors.server.frames import CLOSE, PING, PONG, TEXT, FrameError, FrameReader, close_frame, frame, text_head

__all__ = ["WebSocket"]

logger = logging.getLogger("uvicorn.error")

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CLOSE_S = 5.0
_QUIET_S = 0.2
_JOINED = 1 << 14


class WebSocket(asyncio.Protocol):
    """A socket. uvicorn knows it by its constructor's arguments, `connection_made` and `shutdown`."""

    __slots__ = (
        "_accepted", "_app", "_closed", "_code", "_deaf_until", "_heard_at", "_inbox", "_key", "_limits", "_loop",
        "_over", "_pinged_at", "_reader", "_refusing", "_state", "_talk", "_timer", "_transport", "_waiter",
        "_writable",
    )  # fmt: skip

    def __init__(self, app: Any, state: ServerState, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._app = app
        self._state = state
        self._transport = transport
        self._loop = loop
        self._key = b""
        self._limits = SocketLimits()
        self._reader = FrameReader(self._limits.max_message)
        self._inbox: deque[dict[str, Any]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._over: asyncio.Future[None] | None = None
        self._talk: Talk | None = None
        self._accepted = self._closed = self._refusing = False
        self._code = 1006
        self._heard_at = 0.0
        self._deaf_until: float | None = None
        self._pinged_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    # The handshake

    def begin(self, scope: dict[str, Any]) -> None:
        """Take over a connection whose client asks for a WebSocket."""
        headers = dict(scope["headers"])
        self._key = headers.get(b"sec-websocket-key", b"").strip()
        try:
            fit = len(base64.b64decode(self._key, validate=True)) == 16
        except ValueError:
            fit = False
        if scope["method"] != "GET" or not fit or headers.get(b"sec-websocket-version", b"").strip() != b"13":
            self._transport.write(
                STATUS_LINE[400] + b"sec-websocket-version: 13\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
            self._transport.close()
            return
        asked = headers.get(b"sec-websocket-protocol", b"").decode("latin-1")
        scope |= {
            "type": "websocket",
            "scheme": "wss" if scope["scheme"] == "https" else "ws",
            "subprotocols": [part.strip() for part in asked.split(",") if part.strip()],
            "extensions": {"websocket.http.response": {}, "ors.line": self},
        }
        del scope["method"]
        scope["asgi"] = {**scope["asgi"], "spec_version": "2.4"}
        self._state.connections.add(self)  # type: ignore[arg-type]
        self._transport.set_protocol(self)
        self._inbox.append({"type": "websocket.connect"})
        task = self._loop.create_task(self._run(scope))
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)

    def limit(self, limits: SocketLimits) -> None:
        """What holds for this socket from now on; it is said before the handshake is over."""
        self._limits = limits
        self._reader.limit = limits.max_message

    async def _run(self, scope: dict[str, Any]) -> None:
        try:
            await self._app(scope, self.receive, self.send_message)
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("Exception in ASGI application")
            if not self._accepted and not self._refusing:
                self._refuse(500, [], b"Internal Server Error")
            self.close(1011)
            return
        if not self._accepted and not self._refusing:
            self._refuse(500, [], b"Internal Server Error")
        self.close(1000)

    def _accept(self, message: Any) -> None:
        digest = base64.b64encode(hashlib.sha1(self._key + _MAGIC).digest())  # noqa: S324 - the standard says so
        lines = [
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ",
            digest,
            b"\r\n",
        ]
        if (chosen := message.get("subprotocol")) is not None:
            lines.append(b"sec-websocket-protocol: %s\r\n" % chosen.encode("latin-1"))
        for name, value in [*self._state.default_headers, *message.get("headers", ())]:
            lines.append(b"%s: %s\r\n" % (name, value.replace(b"\r", b" ").replace(b"\n", b" ")))
        self._transport.write(b"".join([*lines, b"\r\n"]))
        self._accepted = True
        self._heard_at = self._loop.time()
        self._timer = self._loop.call_later(self._limits.ping_s, self._look)

    def _refuse(self, status: int, headers: Any, body: bytes) -> None:
        """Answer as to any HTTP request, in place of becoming a socket."""
        self._refusing = True
        lines = [STATUS_LINE.get(status, b"HTTP/1.1 %d \r\n" % status)]
        lines += [
            b"%s: %s\r\n" % (name, value)
            for name, value in headers
            if name.lower() not in (b"content-length", b"connection")
        ]
        lines.append(b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body))
        self._transport.write(b"".join([*lines, body]))
        self._transport.close()

    # For ASGI applications

    async def receive(self) -> dict[str, Any]:
        while not self._inbox:
            self._waiter = self._loop.create_future()
            await self._waiter
        message = self._inbox.popleft()
        if not self._inbox:
            self._transport.resume_reading()
        return message

    async def send_message(self, message: Any) -> None:
        kind = message["type"]
        if kind == "websocket.send":
            if self._closed:
                raise OSError("the client has left")
            text = message.get("text")
            if text is not None:
                self.send(text.encode())
            else:
                self._transport.write(frame(2, message.get("bytes") or b""))
            if self._writable is not None:
                await asyncio.shield(self._writable)
        elif kind == "websocket.accept":
            if self._accepted or self._refusing:
                raise RuntimeError("the handshake is over")
            self._accept(message)
        elif kind == "websocket.close":
            if self._accepted:
                self.close(message.get("code", 1000))
            elif not self._refusing:
                self._refuse(403, [], b"")
        elif kind == "websocket.http.response.start":
            self._refusing = True
            self._inbox.append(dict(message))
        elif kind == "websocket.http.response.body":
            start = self._inbox.pop()
            self._refuse(start["status"], start.get("headers", ()), message.get("body", b""))
        else:
            raise RuntimeError(f"unexpected ASGI message {kind!r}")

    def _push(self, message: dict[str, Any]) -> None:
        self._inbox.append(message)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if len(self._inbox) > 16:
            self._transport.pause_reading()

    # A line

    async def carry(self, talk: Talk) -> None:
        self._talk = talk
        self._over = self._loop.create_future()
        while self._inbox:  # what came before
            message = self._inbox.popleft()
            if message["type"] == "websocket.receive":
                talk.heard(message["text"] if "text" in message else message["bytes"])
            else:
                self._leave()
        await talk.begin()
        await self._over

    def send(self, text: bytes) -> None:
        if self._closed:
            return
        size = len(text)
        if size < _JOINED:
            self._transport.write(text_head(size) + text)
        else:
            self._transport.writelines([text_head(size), text])

    def hold(self, held: bool) -> None:
        if self._transport.is_closing():
            return
        if held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def close(self, code: int = 1000) -> None:
        if not self._closed and self._accepted:
            self._closed = True
            self._transport.write(close_frame(code))
            self._stop_timer()
            # the client answers with a frame of its own, and then this side closes; if it does not, so it does too
            self._timer = self._loop.call_later(_CLOSE_S, self._transport.abort)
            self._transport.resume_reading()
        self._leave()

    def abort(self) -> None:
        self._closed = True
        self._transport.abort()

    @property
    def silent_since(self) -> float | None:
        pinged = self._pinged_at
        if pinged is None or self._loop.time() - pinged < self._limits.ping_s:
            return None
        return pinged

    def _leave(self) -> None:
        """The talk is over."""
        if self._over is not None and not self._over.done():
            self._over.set_result(None)
            if self._talk is not None:
                self._talk.gone()

    # For the event loop

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        self._pinged_at = None
        if self._deaf_until is not None:
            self._linger(self._deaf_until)
            return
        try:
            messages = self._reader.feed(data)
        except FrameError as exc:
            self._gone_with(exc.code)
            self.close(exc.code)
            self._deaf_until = self._heard_at + _CLOSE_S
            self._linger(self._deaf_until)
            return
        for kind, content in messages:
            if kind == TEXT or kind == 2:
                if self._closed:
                    continue
                if self._talk is not None:
                    self._talk.heard(content)
                else:
                    self._push({"type": "websocket.receive", "text" if kind == TEXT else "bytes": content})
            elif kind == PING:
                if not self._closed:
                    self._transport.write(frame(PONG, content))  # type: ignore[arg-type]
            elif kind == CLOSE:
                self._close_came(content)  # type: ignore[arg-type]

    def _linger(self, until: float) -> None:
        """Let a client that still sends read why it is closed: a connection with unread data is reset, not closed."""
        self._stop_timer()
        left = max(0.0, min(_QUIET_S, until - self._loop.time()))
        self._timer = self._loop.call_later(left, self._transport.abort)

    def _close_came(self, content: bytes) -> None:
        code = int.from_bytes(content, "big") if content else 1005
        if not self._closed:
            self._closed = True
            self._transport.write(close_frame(1000 if code == 1005 else code))
            self._gone_with(code)
        self._transport.close()
        self._leave()

    def _gone_with(self, code: int) -> None:
        self._code = code
        if self._talk is None:
            self._push({"type": "websocket.disconnect", "code": code, "reason": ""})

    def eof_received(self) -> None:
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._state.connections.discard(self)
        self._stop_timer()
        if self._writable is not None:
            self._writable.set_result(None)
            self._writable = None
        if not self._closed:
            self._closed = True
            self._gone_with(1006)
        elif self._talk is None:
            self._push({"type": "websocket.disconnect", "code": self._code, "reason": ""})
        self._leave()

    def pause_writing(self) -> None:
        # what it does not read it need not ask for
        self._writable = self._loop.create_future()
        self.hold(True)

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set_result(None)
            self._writable = None
            self.hold(False)

    def shutdown(self) -> None:
        """The server stops."""
        if self._accepted:
            self._gone_with(1012)
            self.close(1012)
            self._transport.close()
        elif not self._refusing:
            self._refuse(503, [], b"")

    def _look(self) -> None:
        """See whether the client is there: ask it, where it was quiet since the last time."""
        self._timer = None
        if self._closed or self._transport.is_closing():
            return
        now = self._loop.time()
        quiet = now - self._heard_at
        if quiet >= self._limits.idle_s:
            self.abort()
            return
        if quiet < self._limits.ping_s and self._talk is not None:
            self._talk.alive()
        if self._transport.get_write_buffer_size() < HIGH_WATER_LIMIT:
            self._transport.write(frame(PING, b""))
        if self._pinged_at is None:
            self._pinged_at = now
        self._timer = self._loop.call_later(self._limits.ping_s, self._look)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
