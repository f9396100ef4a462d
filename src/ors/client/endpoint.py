"""One server as a client sees it: address, key, what it can do, and requests that are tried until they are done."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from multidict import CIMultiDict
from yarl import URL

from ors._version import __version__
from ors.client.abilities import Abilities
from ors.client.answers import parse, refusal
from ors.client.limit import Limit
from ors.client.portal import current_loop
from ors.client.retrying import Attempts, Retry, may_pass
from ors.client.transport import Answer, NetworkError, Transport, abandon_all
from ors.errors import ClientError, RequestLost
from ors.jsontext import dump

__all__ = ["Endpoint"]


class Endpoint:
    """A server. It may be used from any thread and event loop, pickled, and used after a fork."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        timeout: float | None = 600.0,
        call_timeout: float | None = None,
        retry: Retry | None = None,
        ping_interval: float = 30.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.base_url = str(base_url).rstrip("/")
        self.api_key = api_key
        self.timeout = timeout
        self.call_timeout = call_timeout
        self.retry = retry or Retry()
        self.ping_interval = ping_interval
        self.headers = dict(headers or {})
        self.abilities: Abilities | None = None
        self._start()

    def _start(self) -> None:
        url = URL(self.base_url)
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError(f"base_url is no address of a server: {self.base_url[:200]!r}; write http://host:port")
        self._urls: dict[str, URL] = {}
        self._transports: weakref.WeakKeyDictionary[Any, Transport] = weakref.WeakKeyDictionary()
        self._latest: tuple[Any, Transport] | None = None
        _ENDPOINTS.add(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def __repr__(self) -> str:
        return f"<server at {self.base_url}>"

    def __del__(self) -> None:
        # nobody has it any more, and nobody closed it: its connections need not wait for the end of their loop
        for loop, transport in list(getattr(self, "_transports", {}).items()):
            if not transport.closed:
                try:
                    loop.call_soon_threadsafe(_close_later, loop, transport)
                except RuntimeError:
                    pass  # that loop is closed, and its connections with it

    # Connections

    def transport(self) -> Transport:
        """The connections of the running event loop."""
        loop = asyncio.get_running_loop()
        latest = self._latest
        if latest is not None and latest[0] is loop and not latest[1].closed:
            return latest[1]
        transport = self._transports.get(loop)
        if transport is None or transport.closed:
            transport = Transport(self._headers())
            with _LOCK:
                for other in [other for other in self._transports if other.is_closed()]:
                    del self._transports[other]
                self._transports[loop] = transport
        self._latest = (loop, transport)
        return transport

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        loop, other = asyncio.get_running_loop(), current_loop()
        with _LOCK:
            transport = self._transports.pop(loop, None)
            pinging = self._transports.pop(other, None) if other is not None else None
        self._latest = None
        if transport is not None:
            await transport.close()
        if pinging is not None and other is not None:
            other.call_soon_threadsafe(_close_later, other, pinging)

    def _headers(self) -> dict[str, str]:
        headers = {"User-Agent": f"ors-kit/{__version__}", **self.headers}
        if self.api_key:
            headers["X-API-Key"] = self.api_key
        return headers

    def url(self, path: str) -> URL:
        """The address of a path."""
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = URL(self.base_url + path, encoded=True)
        return url

    # Requests

    async def ask(
        self,
        method: str,
        path: str,
        *,
        headers: CIMultiDict[str] | None = None,
        body: bytes | None = None,
        sid: str | None = None,
        of_session: bool = False,
        repeatable: bool = True,
        limit: Limit | None = None,
    ) -> Answer:
        """Send a request until it is done, and return the answer of 2xx.

        `repeatable`: nothing happens twice when it arrives twice; else it is sent again only while it cannot have
        arrived, and RequestLost is raised where that is not known. `limit` is the deadline around this.
        """
        url, what = self.url(path), f"{method} {path}"
        transport = self.transport()
        attempts: Attempts | None = None
        while True:
            failed: ClientError | NetworkError
            try:
                answer = await transport.fetch(method, url, headers, body)
            except NetworkError as exc:
                if exc.sent and not repeatable:
                    words = f"{what}: the connection was lost ({exc}), and asking again could do it again"
                    raise RequestLost(words, sid=sid, kind="connection_lost") from exc
                failed = exc
            else:
                if answer.status < 300:
                    return answer
                failed = refusal(answer, what, sid, of_session=of_session)
                if not may_pass(failed) or (not repeatable and may_have_run(failed)):
                    raise failed
            if attempts is None:
                attempts = Attempts(self.retry, what, limit.when() if limit is not None else None)
            await attempts.again(failed, sid)

    async def within(self, method: str, path: str, **options: Any) -> Answer:
        """`ask` within the endpoint's timeout."""
        try:
            async with Limit(self.timeout) as limit:
                return await self.ask(method, path, limit=limit, **options)
        except TimeoutError as exc:
            if isinstance(exc, ClientError):
                raise
            raise Attempts(self.retry, f"{method} {path}", None).overdue(options.get("sid")) from exc

    async def value(self, method: str, path: str, send: Any = None, **options: Any) -> Any:
        """The JSON of the answer to a request with a JSON body."""
        headers = options.pop("headers", None)
        body = None
        if send is not None:
            body = dump(send)
            headers = CIMultiDict(headers or ())
            headers["Content-Type"] = "application/json"
        answer = await self.within(method, path, headers=headers, body=body, **options)
        return parse(answer.body, f"{method} {path}", options.get("sid"))

    async def able(self) -> Abilities:
        """What the server can do; asked once."""
        if self.abilities is None:
            transport = self.transport()
            async with transport.lock:
                if self.abilities is None:
                    self.abilities = await self._find_abilities()
        return self.abilities

    async def _find_abilities(self) -> Abilities:
        try:
            answer = await self.within("GET", "/version")
        except ClientError as exc:
            # servers without this route answer 404, or send on to an environment that has none either
            if exc.status is None or exc.status in (401, 403) or exc.status >= 500 or may_pass(exc):
                raise
            return Abilities()
        return Abilities.read(answer.body)


def may_have_run(error: ClientError) -> bool:
    """Whether a request that was answered like this may have been done, on a server that says nothing of it."""
    if error.status in (408, 425, 429):
        return False
    return not (error.status == 503 and error.retry_after is not None)


def segment(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")


def _close_later(loop: asyncio.AbstractEventLoop, transport: Transport) -> None:
    task = loop.create_task(transport.close())
    _CLOSING.add(task)
    task.add_done_callback(_CLOSING.discard)


_LOCK = threading.Lock()
_CLOSING: set[asyncio.Task[None]] = set()
_ENDPOINTS: weakref.WeakSet[Endpoint] = weakref.WeakSet()
_OF_THE_PARENT: list[Any] = []


def _forget_connections() -> None:
    """In a forked child: the parent's connections are not ours to use, and not ours to close."""
    global _LOCK
    _LOCK = threading.Lock()
    _OF_THE_PARENT.extend(abandon_all())
    for endpoint in list(_ENDPOINTS):
        _OF_THE_PARENT.append(endpoint._latest)
        endpoint._transports = weakref.WeakKeyDictionary()
        endpoint._latest = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections)
