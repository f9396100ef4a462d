"""One HTTP/1.1 connection: uvicorn's protocol, with less to do for each request.

What an environment server answers is short, and most of what uvicorn spends on it is spent on things that are the same
for every request of a connection, or of all connections. Parsing, upgrades, pipelining, flow control and shutting down
are uvicorn's; here is

- one timer for a connection that has gone quiet, which looks when it is due, in place of one set for every answer;
- each header checked and written once, since the same few are sent again and again;
- the head of an answer whose length is known written together with its body;
- no event object for each request: there is one to wait for only when somebody waits.

Of a thousand requests that come at once not all begin at once: the loop looks at what else there is to do after every
few of them, and who asks whether the server is alive does not wait behind the rest.
"""

from __future__ import annotations

import asyncio
import logging
import urllib.parse
from collections import deque
from collections.abc import MutableMapping
from typing import Any, cast
from weakref import WeakKeyDictionary

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, service_unavailable
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from ors.server.websocket import WebSocket

__all__ = ["Connection"]

logger = logging.getLogger("uvicorn.error")

AT_A_STRETCH = 64
URGENT = frozenset(["/health", "/ready"])

_KEPT = 1024
_lines: dict[tuple[bytes, bytes], bytes] = {}
_places: dict[bytes, tuple[str, bytes, bytes]] = {}


class Entrance:
    """Where the requests of one server come in: a few in each pass of the loop, the urgent ones at once."""

    __slots__ = ("_begun", "_due", "_held", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._begun = 0
        self._due = False
        self._held: deque[tuple[Connection, Exchange]] = deque()

    def lets_in(self, path: str) -> bool:
        """Whether a request may begin at once."""
        if not self._due:
            self._due = True
            self._loop.call_soon(self._turn)
        elif (self._begun >= AT_A_STRETCH or self._held) and path not in URGENT:
            return False
        self._begun += 1
        return True

    def hold(self, connection: Connection, exchange: Exchange) -> None:
        """Let a request begin in one of the next passes, in the order in which they came."""
        self._held.append((connection, exchange))

    def _turn(self) -> None:
        self._begun = 0
        held = self._held
        while held and self._begun < AT_A_STRETCH:
            connection, exchange = held.popleft()
            connection.begin(exchange)
            self._begun += 1
        self._due = bool(self._begun)
        if self._due:
            self._loop.call_soon(self._turn)


_entrances: WeakKeyDictionary[ServerState, Entrance] = WeakKeyDictionary()


class Connection(HttpToolsProtocol):
    """A connection and its requests, one after another."""

    _quiet_since: float | None = None
    _timer: asyncio.TimerHandle | None = None
    _exchange: Exchange | None = None

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any], **options: Any) -> None:
        super().__init__(config, server_state, app_state, **options)
        entrance = _entrances.get(server_state)
        if entrance is None:
            entrance = _entrances[server_state] = Entrance(self.loop)
        self._entrance = entrance

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        super().connection_lost(exc)

    def _unset_keepalive_if_required(self) -> None:
        self._quiet_since = None

    def on_message_begin(self) -> None:
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_headers_complete(self) -> None:
        parser = self.parser
        version = parser.get_http_version()
        headers = self.headers
        scope: Any = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "method": parser.get_method().decode("ascii"),
            "root_path": self.root_path,
            "headers": headers,
            "state": self.app_state.copy(),
        }
        self.scope = scope
        if parser.should_upgrade() and self._should_upgrade():
            return
        place = _places.get(self.url)
        if place is None:
            place = self._place(self.url)
        scope["path"], scope["raw_path"], scope["query_string"] = place
        exchange = Exchange(self, scope, version != "1.0" and parser.should_keep_alive(), self.expect_100_continue)
        before, self._exchange = self._exchange, exchange
        self.cycle = exchange
        if before is None or before.response_complete:
            if self._entrance.lets_in(place[0]):
                self.begin(exchange)
            else:
                self._entrance.hold(self, exchange)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((exchange, self._application()))

    def _should_upgrade_to_ws(self) -> bool:
        return True

    def handle_websocket_upgrade(self) -> None:
        self.connections.discard(self)
        scope: Any = self.scope
        scope["path"], scope["raw_path"], scope["query_string"] = self._place(self.url)
        WebSocket(self.app, self.server_state, self.transport, self.loop).begin(scope)

    def begin(self, exchange: Exchange) -> None:
        """Hand a request to the application."""
        self._start_asgi_task(exchange, self._application())

    def _application(self) -> Any:
        limit = self.limit_concurrency
        if limit is not None and (len(self.connections) >= limit or len(self.tasks) >= limit):
            logger.warning("Exceeded concurrency limit.")
            return service_unavailable
        return self.app

    def _place(self, url: bytes) -> tuple[str, bytes, bytes]:
        """A URL's path, the same as it was sent, and its query."""
        parsed = httptools.parse_url(url)
        path = parsed.path.decode("ascii")
        if "%" in path:
            path = urllib.parse.unquote(path)
        place = (self.root_path + path, self.root_path.encode("ascii") + parsed.path, parsed.query or b"")
        if len(_places) < _KEPT and len(url) < 256:
            _places[url] = place
        return place

    def on_body(self, body: bytes) -> None:
        exchange = self._exchange
        if exchange is None or exchange.response_complete or exchange.scope is not self.scope:
            return
        exchange.body += body
        if len(exchange.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        exchange.wake()

    def on_message_complete(self) -> None:
        exchange = self._exchange
        if exchange is None or exchange.response_complete or exchange.scope is not self.scope:
            return
        exchange.more_body = False
        exchange.wake()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._quiet_since = self.loop.time()
        if self._timer is None:
            self._timer = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it has been quiet for long enough."""
        self._timer = None
        if self._quiet_since is None:
            return  # a request is under way: its answer sets the timer again
        left = self._quiet_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._timer = self.loop.call_later(left, self.timeout_keep_alive_handler)
        elif not self.transport.is_closing():
            self.transport.close()


class Exchange(RequestResponseCycle):
    """A request and its answer; `run_asgi` and the answer to what failed are uvicorn's."""

    def __init__(self, connection: Connection, scope: Any, keep_alive: bool, expects_continue: bool) -> None:
        self.scope = scope
        self.transport = connection.transport
        self.flow = connection.flow
        self.logger = logger
        self.default_headers = connection.server_state.default_headers
        self.on_response = connection.on_response_complete
        self.disconnected = False
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = expects_continue
        self.body = b""  # type: ignore[assignment]  # nearly all bodies come in one piece
        self.more_body = True
        self.response_started = False
        self.response_complete = False
        self.chunked_encoding = None
        self.expected_content_length = 0
        self._head = b""
        self._news = False
        self._waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """There is something to receive."""
        self._news = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    set = wake

    @property
    def message_event(self) -> asyncio.Event:  # type: ignore[override]
        """uvicorn wakes whoever waits by `message_event.set()`. Kept as an attribute it would be a reference cycle, and
        a server at work would stop for the garbage collector twenty times a second."""
        return cast(asyncio.Event, self)

    async def receive(self) -> Any:
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        if not self.disconnected and not self.response_complete:
            self.flow.resume_reading()
            while not self._news:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
            self._news = False
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body, self.body = self.body, b""  # type: ignore[assignment]
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def send(self, message: Any) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if self.response_started:
            self._write(message)
        else:
            self._start(message)

    def _start(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] != "http.response.start":
            raise RuntimeError(f"Expected ASGI message 'http.response.start', but got '{message['type']}'.")
        self.response_started = True
        self.waiting_for_100_continue = False
        status = message["status"]
        lines = [STATUS_LINE[status]]
        closes = False
        for header in self.default_headers + list(message.get("headers", ())):
            name, value = header
            lines.append(_lines.get((name, value)) or _line(name, value))
            name = name.lower()
            if name == b"content-length" and self.chunked_encoding is None:
                self.expected_content_length = int(value)
                self.chunked_encoding = False
            elif name == b"transfer-encoding" and value.lower() == b"chunked":
                self.expected_content_length = 0
                self.chunked_encoding = True
            elif name == b"connection" and b"close" in [token.strip() for token in value.lower().split(b",")]:
                self.keep_alive = False
                closes = True
        if not self.keep_alive and not closes:
            lines.append(b"connection: close\r\n")
        if self.chunked_encoding is None and self.scope["method"] != "HEAD" and status not in (204, 304):
            self.chunked_encoding = True
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        head = b"".join(lines)
        if self.chunked_encoding is False:
            self._head = head
        else:
            self.transport.write(head)

    def _write(self, message: MutableMapping[str, Any]) -> None:
        if self.response_complete:
            raise RuntimeError(f"Unexpected ASGI message '{message['type']}' sent, after response already completed.")
        if message["type"] != "http.response.body":
            raise RuntimeError(f"Expected ASGI message 'http.response.body', but got '{message['type']}'.")
        body = message.get("body", b"")
        more = message.get("more_body", False)
        if self.scope["method"] == "HEAD":
            self.expected_content_length = 0
            body = b""
        elif self.chunked_encoding:
            if body:
                body = b"%x\r\n%s\r\n" % (len(body), body)
            if not more:
                body += b"0\r\n\r\n"
        else:
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0:
                raise RuntimeError("Response content longer than Content-Length")
        head, self._head = self._head, b""
        if head:
            # joined where that copies little
            if len(body) <= HIGH_WATER_LIMIT:
                body = head + body
            else:
                self.transport.write(head)
        if body:
            self.transport.write(body)
        if not more:
            if self.expected_content_length != 0:
                raise RuntimeError("Response content shorter than Content-Length")
            self.response_complete = True
            self.wake()
            if not self.keep_alive:
                self.transport.close()
            self.on_response()


def _line(name: bytes, value: bytes) -> bytes:
    """A header as it is written. Raises RuntimeError when it is none."""
    if HEADER_RE.search(name):
        raise RuntimeError("Invalid HTTP header name.")
    if HEADER_VALUE_RE.search(value):
        raise RuntimeError("Invalid HTTP header value.")
    line = b"%s: %s\r\n" % (name.lower(), value)
    if len(_lines) < _KEPT and len(value) < 256:
        _lines[name, value] = line
    return line
