"""The HTTP client of the running event loop, and that its connections end with it."""

from __future__ import annotations

import asyncio
import socket
import weakref
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol

import aiohttp

__all__ = ["Socket", "ends_with_loop", "http_of_loop"]


class Socket(aiohttp.ClientWebSocketResponse):
    """A WebSocket that remembers what the server said when it was opened."""

    def __init__(self, reader: Any, writer: Any, protocol: Any, response: Any, *more: Any, **others: Any) -> None:
        super().__init__(reader, writer, protocol, response, *more, **others)
        self.headers: Mapping[str, str] = response.headers


class Ending(Protocol):
    """What has to be ended before its loop is."""

    async def finish(self) -> Any: ...


_sessions: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[bool, aiohttp.ClientSession]] = (
    weakref.WeakKeyDictionary()
)
_ending: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.WeakSet[Any]] = weakref.WeakKeyDictionary()
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
            ws_response_class=Socket,
        )
        closing = _close_with_the_loop(session)
        try:
            # it has to be begun for the loop to know of it
            closing.__anext__().send(None)
        except StopIteration:
            pass
        _closing.setdefault(loop, []).append(closing)
    return session


def ends_with_loop(ending: Ending) -> None:
    """Finish something when the running loop ends."""
    _ending.setdefault(asyncio.get_running_loop(), weakref.WeakSet()).add(ending)


async def _close_with_the_loop(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    # whoever ends a loop properly closes its asynchronous generators
    try:
        yield
    finally:
        ending = list(_ending.pop(asyncio.get_running_loop(), ()))
        await asyncio.gather(*(each.finish() for each in ending), return_exceptions=True)
        await session.close()


def _socket(address: Any) -> socket.socket:
    """A socket that notices within a minute that the other side is gone."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 4)):
        if (number := getattr(socket, option, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, number, value)
    return made
