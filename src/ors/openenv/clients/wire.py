"""One session over a WebSocket: one question, one answer, in order; and what is true once the socket is gone.

A session that has begun an episode is never replaced in silence: what is asked of it then is a `SessionLost`, and only
a reset, or `new_session`, opens another one. An answer that comes too late is never taken for the next one: after a
time-out the socket is gone.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import weakref
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec

from ors.errors import SessionLost
from ors.openenv.clients.addresses import is_local, websocket_url

__all__ = ["ServerError", "Wire", "http_of_loop"]

logger = logging.getLogger("ors.openenv.client")
_CLOSE_S = 5.0
_ENDS_SESSION = frozenset(["CAPACITY_REACHED", "FACTORY_ERROR", "SESSION_ERROR"])


class ServerError(RuntimeError):
    """The server answered with an error. code: its kind; data: what else the server said of it."""

    def __init__(self, message: str, code: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"Server error: {message} (code: {code})")
        self.code = code
        self.data = dict(data or {})


class Wire:
    """The session of one client. Its coroutines run on one event loop, one after another."""

    def __init__(
        self,
        base_url: str,
        *,
        connect_timeout_s: float,
        message_timeout_s: float,
        max_message_size: int,
        ping_interval_s: float | None,
        headers: Mapping[str, str] | None,
        query: Mapping[str, str] | None = None,
    ) -> None:
        self.url = websocket_url(base_url)
        self._local = is_local(base_url)
        self._connect_timeout_s = connect_timeout_s
        self._message_timeout_s = message_timeout_s
        self._max_message_size = max_message_size
        self._ping_interval_s = ping_interval_s
        self._headers = dict(headers or {})
        self._query = dict(query or {})
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self._pinger: asyncio.TimerHandle | None = None
        self._pinging: asyncio.Task[None] | None = None
        self._turn: asyncio.Lock | None = None
        self._turn_pid = 0
        self._why_gone = ""
        self._refusal: dict[str, Any] | None = None
        self.playing = False

    @property
    def connected(self) -> bool:
        """Whether there is a socket."""
        return self._socket is not None and not self._socket.closed and self._pid == os.getpid()

    async def connect(self) -> None:
        """Open a session, unless there is one. Raises ConnectionError."""
        async with self._in_turn():
            await self._connect()

    async def ask(self, message: Mapping[str, Any], *, timeout_s: float | None = None, begins: bool = False) -> Any:
        """Send a message and wait for the data of its answer.

        `begins`: the message starts an episode. Raises SessionLost, ServerError, ConnectionError, TimeoutError.
        """
        text = _encoded(message)
        seconds = timeout_s if timeout_s is not None else self._message_timeout_s
        async with self._in_turn():
            if not self.connected:
                if self.playing and not begins:
                    raise SessionLost(f"{self._gone()}; reset() starts a new episode", kind="connection_lost")
                self.playing = False
                await self._connect()
            assert self._socket is not None
            if begins:
                self.playing = True
            try:
                async with asyncio.timeout(seconds):
                    answer = await self._exchange(text)
            except TimeoutError:
                await self._drop(f"there was no answer within {seconds:g} s")
                raise TimeoutError(
                    f"no answer to {message.get('type')!r} from {self.url} within {seconds:g} s"
                ) from None
            except asyncio.CancelledError:
                # its answer is still on the way, and must not be taken for another's
                await self._drop("a request was cancelled")
                raise
            return self._data(answer)

    async def close(self) -> None:
        """End the session."""
        async with self._in_turn():
            if self.connected and self._socket is not None:
                try:
                    async with asyncio.timeout(_CLOSE_S):
                        await self._socket.send_str('{"type":"close"}')
                except (TimeoutError, ConnectionError, aiohttp.ClientError):
                    pass
            await self._drop("the client was closed")
            self.playing = False

    def __del__(self) -> None:
        # a client that nobody closed and nobody has any more: its session ends all the same
        if self._loop is not None and self._socket is not None and self._pid == os.getpid():
            try:
                self._loop.call_soon_threadsafe(_close_later, self._loop, self._socket)
            except RuntimeError:
                pass  # that loop is closed, and its sockets with it

    # Inside

    def _in_turn(self) -> asyncio.Lock:
        if self._turn is None or self._turn_pid != os.getpid():
            self._turn, self._turn_pid = asyncio.Lock(), os.getpid()
        return self._turn

    def _gone(self) -> str:
        if self._pid not in (0, os.getpid()):
            return "the connection belongs to the parent process"
        return f"the session is lost: {self._why_gone or 'the connection was closed'}"

    async def _connect(self) -> None:
        if self.connected:
            return
        url = f"{self.url}?{urlencode(self._query)}" if self._query else self.url
        self._refusal = None
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                self._socket = await http_of_loop(proxies=not self._local).ws_connect(
                    url,
                    headers=self._headers,
                    max_msg_size=self._max_message_size,
                    compress=0 if self._local else 15,
                    timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
                )
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            why = str(exc) or f"no answer within {self._connect_timeout_s:g} s"
            raise ConnectionError(f"Failed to connect to {self.url}: {why}") from exc
        self._loop = asyncio.get_running_loop()
        _sockets.setdefault(self._loop, weakref.WeakSet()).add(self._socket)
        self._pid = os.getpid()
        self._why_gone = ""
        self._ping_later()

    async def _exchange(self, text: str) -> dict[str, Any]:
        assert self._socket is not None
        try:
            await self._socket.send_str(text)
        except (ConnectionError, aiohttp.ClientError) as exc:
            # the server may have said why it closes before it did
            if (said := await self._last_words()) is not None:
                return said
            await self._drop(str(exc) or type(exc).__name__)
            raise SessionLost(self._gone(), kind="connection_lost") from exc
        return await self._receive()

    async def _receive(self) -> dict[str, Any]:
        assert self._socket is not None
        message = await self._socket.receive()
        if message.type is aiohttp.WSMsgType.TEXT:
            try:
                answer = msgspec.json.decode(message.data)
            except msgspec.DecodeError:
                answer = json.loads(message.data)
            if not isinstance(answer, dict):
                raise RuntimeError(f"the server answered with {message.data[:200]!r}, which is no message")
            return answer
        close_code = self._socket.close_code
        if message.type is aiohttp.WSMsgType.ERROR:
            await self._drop(f"{message.data}")
        elif close_code == 1009:
            await self._drop("a message was larger than the server takes (close code 1009)")
        else:
            await self._drop(f"the server closed the connection (close code {close_code})")
        raise SessionLost(self._gone(), kind="connection_lost")

    async def _last_words(self) -> dict[str, Any] | None:
        """What had arrived before the socket was closed."""
        try:
            async with asyncio.timeout(1.0):
                return await self._receive()
        except (SessionLost, TimeoutError, RuntimeError):
            return None

    def _data(self, answer: dict[str, Any]) -> Any:
        kind, data = answer.get("type"), answer.get("data")
        if kind != "error":
            return data
        about = data if isinstance(data, dict) else {}
        code = str(about.get("code", "UNKNOWN"))
        if code in _ENDS_SESSION:
            self.playing = False
        raise ServerError(
            str(about.get("message", "Unknown error")),
            code,
            {name: value for name, value in about.items() if name not in ("message", "code")},
        )

    async def _drop(self, why: str) -> None:
        socket_, self._socket = self._socket, None
        self._why_gone = why
        for stopping in (self._pinger, self._pinging):
            if stopping is not None:
                stopping.cancel()
        self._pinger = self._pinging = None
        if socket_ is not None and self._pid == os.getpid():
            await _close(socket_)

    def _ping_later(self) -> None:
        # a ping keeps what stands between from closing a quiet connection; no pong is asked for, since some of what
        # stands between eats them
        if self._ping_interval_s:
            loop = asyncio.get_running_loop()
            self._pinger = loop.call_later(self._ping_interval_s, self._ping)

    def _ping(self) -> None:
        if self.connected:
            assert self._socket is not None
            self._pinging = asyncio.get_running_loop().create_task(_ping(self._socket))
            self._ping_later()


async def _ping(socket_: aiohttp.ClientWebSocketResponse) -> None:
    try:
        await socket_.ping()
    except (ConnectionError, aiohttp.ClientError):
        pass  # whoever uses it next finds out


def _encoded(message: Mapping[str, Any]) -> str:
    try:
        return msgspec.json.encode(message).decode()
    except (TypeError, OverflowError, ValueError):
        return json.dumps(message)


_sessions: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[bool, aiohttp.ClientSession]] = (
    weakref.WeakKeyDictionary()
)

_sockets: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.WeakSet[aiohttp.ClientWebSocketResponse]] = (
    weakref.WeakKeyDictionary()
)
_closing: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[Any]] = weakref.WeakKeyDictionary()


def http_of_loop(*, proxies: bool) -> aiohttp.ClientSession:
    """The HTTP client of the running event loop; with or without the proxies of the environment."""
    loop = asyncio.get_running_loop()
    made = _sessions.setdefault(loop, {})
    session = made.get(proxies)
    if session is None or session.closed:
        session = made[proxies] = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, socket_factory=_socket),
            trust_env=proxies,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30.0),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        closing = _close_with_the_loop(session)
        try:
            closing.__anext__().send(None)
        except StopIteration:
            pass
        _closing.setdefault(loop, []).append(closing)
    return session


async def _close_with_the_loop(session: aiohttp.ClientSession) -> Any:
    # whoever ends a loop properly closes its asynchronous generators
    try:
        yield
    finally:
        for socket_ in list(_sockets.get(asyncio.get_running_loop(), ())):
            await _close(socket_)
        await session.close()


async def _close(socket_: aiohttp.ClientWebSocketResponse) -> None:
    try:
        async with asyncio.timeout(_CLOSE_S):
            await socket_.close()
    except (TimeoutError, ConnectionError, aiohttp.ClientError):
        pass


def _close_later(loop: asyncio.AbstractEventLoop, socket_: aiohttp.ClientWebSocketResponse) -> None:
    task = loop.create_task(_close(socket_))
    _ending.add(task)
    task.add_done_callback(_ending.discard)


_ending: set[asyncio.Task[None]] = set()


def _socket(address: Any) -> socket.socket:
    """A socket that notices within a minute that the other side is gone."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 4)):
        if (number := getattr(socket, option, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, number, value)
    return made
