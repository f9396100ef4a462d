"""HTTP under the client: two methods, `fetch` and `open`, over aiohttp.

One transport belongs to one event loop. It repeats nothing, follows no redirects, and says of each failure whether the
request can have arrived.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import io
import socket
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from multidict import CIMultiDict
from yarl import URL

from ors.client import descriptors
from ors.client.limit import Limit

__all__ = ["Answer", "NetworkError", "Stream", "Transport", "abandon_all"]

CONNECT_S = 30.0
KEEP_ALIVE_S = 4.0
"""Shorter than any server's: a call on a connection that is just being closed would be lost."""
_LARGE = 512 * 1024
_PIECE = 64 * 1024
_CONNECTING = 256


class NetworkError(Exception):
    """The exchange was not completed. `sent` is false where the request cannot have arrived."""

    def __init__(self, words: str, *, sent: bool) -> None:
        super().__init__(words)
        self.sent = sent


class Answer:
    """A whole answer."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


class Stream:
    """An answer whose body is read as it comes. It must be closed."""

    __slots__ = ("_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        """What has come since; empty at the end."""
        try:
            return await self._response.content.readany()
        except (TimeoutError, aiohttp.ClientError, OSError) as exc:
            raise _lost(exc) from exc

    async def drain(self) -> None:
        """Read what stands after the result, if it has come already, so that the connection can be used again."""
        if self._response.content.at_eof():
            return
        # the end of a chunked answer may come in a packet of its own; waiting for it is cheaper than connecting
        try:
            async with Limit(0.25):
                while await self._response.content.readany():
                    pass
        except (TimeoutError, aiohttp.ClientError, OSError):
            pass

    async def rest(self) -> bytes:
        """All that is left."""
        try:
            return await self._response.read()
        except (TimeoutError, aiohttp.ClientError, OSError) as exc:
            raise _lost(exc) from exc

    def close(self) -> None:
        """Give the connection back if the body was read to its end, else close it."""
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


class _Connection(ResponseHandler):
    """A connection that is read in pieces of a moderate size.

    asyncio takes 256 KiB for each read, however little comes. In a small process each is a mapping of its own, made and
    unmapped again by the C library: an eighth of what an episode takes of the processor.
    """

    def connection_made(self, transport: Any) -> None:
        if getattr(transport, "max_size", 0) > _PIECE:
            transport.max_size = _PIECE
        super().connection_made(transport)


class _Connector(aiohttp.TCPConnector):
    """Connects to few at once: a thousand sessions that open together would otherwise hold the memory of a thousand
    connections being made, and overflow the server's queue of new ones."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = functools.partial(_Connection, loop=self._loop)  # type: ignore[assignment]
        self._turns = asyncio.Semaphore(_CONNECTING)

    async def _create_connection(self, *args: Any) -> ResponseHandler:
        async with self._turns:
            return await super()._create_connection(*args)


class Transport:
    """Connections of one event loop."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._connector = _Connector(
            # as many as there are sessions at work: a limit would make one session's call wait for another's
            limit=0,
            keepalive_timeout=KEEP_ALIVE_S,
            socket_factory=_socket,
        )
        self._http = aiohttp.ClientSession(
            connector=self._connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            headers=headers,
            skip_auto_headers=("Accept-Encoding",),
            auto_decompress=True,
        )
        # it would send a GET again by itself, and GET /prompt starts games on some servers
        self._http._retry_connection = False
        self.lock = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        _keep(self)
        self._closing = self._close_with_the_loop()
        # it goes on to its `yield` at once, and from then on the loop knows it
        with contextlib.suppress(StopIteration):
            self._closing.__anext__().send(None)

    @property
    def closed(self) -> bool:
        """Whether it was closed, or its loop was."""
        return self._http.closed

    async def fetch(self, method: str, url: URL, headers: CIMultiDict[str] | None, body: bytes | None) -> Answer:
        """Send a request and read the whole answer. Raises NetworkError."""
        response = await self._send(method, url, headers, body)
        try:
            return Answer(response.status, response.headers, await response.read())
        except (TimeoutError, aiohttp.ClientError, OSError) as exc:
            response.close()
            raise _lost(exc) from exc
        except BaseException:
            response.close()
            raise

    async def open(self, method: str, url: URL, headers: CIMultiDict[str] | None, body: bytes | None) -> Stream:
        """Send a request and read the head of the answer. Raises NetworkError."""
        return Stream(await self._send(method, url, headers, body))

    async def _send(self, method: str, url: URL, headers: Any, body: bytes | None) -> aiohttp.ClientResponse:
        data: Any = body
        if body is not None and len(body) > _LARGE:
            data = io.BytesIO(body)  # written in pieces
        try:
            return await self._http.request(method, url, headers=headers, data=data, allow_redirects=False)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as exc:
            raise NetworkError(_words(exc), sent=False) from exc
        except (TimeoutError, aiohttp.ClientError, OSError) as exc:
            raise _lost(exc) from exc

    async def close(self) -> None:
        """Close every connection."""
        await self._closing.aclose()

    def abandon(self) -> None:
        """In a forked child: these connections belong to the parent. They are not closed, and nothing complains."""
        self._connector._closed = True
        _KEPT.discard(self)

    async def _close_with_the_loop(self) -> AsyncGenerator[None, None]:
        # asyncio.run, and whoever ends a loop properly, closes its asynchronous generators
        try:
            yield
        finally:
            _KEPT.discard(self)
            await self._http.close()


_KEPT: set[Transport] = set()
"""Transports that are not closed: a collected one could only complain of its connections."""


def _keep(transport: Transport) -> None:
    for other in list(_KEPT):
        # its loop was closed without its generators, so nothing can be closed any more
        if other._loop.is_closed():
            other.abandon()
    _KEPT.add(transport)


def abandon_all() -> list[Transport]:
    """Every transport of this process, abandoned: at its end, and in a forked child."""
    kept = list(_KEPT)
    for transport in kept:
        transport.abandon()
    return kept


atexit.register(abandon_all)


def _lost(exc: BaseException) -> NetworkError:
    return NetworkError(_words(exc), sent=True)


def _words(exc: BaseException) -> str:
    return f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__


def _socket(address: Any) -> socket.socket:
    """A socket that notices within a minute that the other side is gone."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    descriptors.see(made.fileno())
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 4)):
        if (number := getattr(socket, option, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, number, value)
    return made
