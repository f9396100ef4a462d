"""The asynchronous client: a server, and the environments on it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ors.client.endpoint import Endpoint
from ors.client.environment import AsyncEnvironment
from ors.client.retrying import Retry
from ors.errors import ProtocolError

__all__ = ["AsyncEnvironmentsAPI", "AsyncORS"]


class AsyncEnvironmentsAPI:
    """The environments of a server. The options are those of `AsyncORS`."""

    def __init__(self, base_url: str, api_key: str | None = None, **options: Any) -> None:
        self._endpoint = Endpoint(base_url, api_key, **options)
        self._api_key = api_key
        self._options = options
        self._others: dict[str, Endpoint] = {}

    def get(self, name: str, base_url: str | None = None) -> AsyncEnvironment:
        """A handle on an environment. Nothing is asked of the server yet."""
        return AsyncEnvironment(name, self._at(base_url))

    async def list(self) -> list[str]:
        """The names of the environments; the first is the server's default."""
        names = await self._endpoint.value("GET", "/list_environments")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ProtocolError("GET /list_environments answered no list of names", kind="bad_answer")
        return names

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        for endpoint in (self._endpoint, *self._others.values()):
            await endpoint.close()

    def _at(self, base_url: str | None) -> Endpoint:
        if base_url is None or base_url.rstrip("/") == self._endpoint.base_url:
            return self._endpoint
        url = base_url.rstrip("/")
        if url not in self._others:
            self._others[url] = Endpoint(url, self._api_key, **self._options)
        return self._others[url]


class AsyncORS:
    """A client for a server of the Open Reward Standard.

    base_url: the address, with any path prefix. api_key: sent as `X-API-Key`; the default is the environment variable
    `ORS_API_KEY`. timeout: seconds for a request with all its attempts. call_timeout: the same for a call of a tool,
    which has no limit by default. retry: how often, and after how long, a request that failed in a passing way is sent
    again. ping_interval: seconds after which a session that is not used is kept alive. headers: sent with each request.

    Use it as `async with`, or `await close()`; connections also close with their event loop. It may be used from
    several event loops and threads, pickled, and used after a fork.
    """

    def __init__(
        self,
        base_url: str = "http://localhost:8080",
        api_key: str | None = None,
        *,
        timeout: float | None = 600.0,
        call_timeout: float | None = None,
        retry: Retry | None = None,
        ping_interval: float = 30.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._environments = AsyncEnvironmentsAPI(
            base_url,
            api_key if api_key is not None else os.environ.get("ORS_API_KEY"),
            timeout=timeout,
            call_timeout=call_timeout,
            retry=retry,
            ping_interval=ping_interval,
            headers=headers,
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self._environments._endpoint.base_url}>"

    @property
    def environments(self) -> AsyncEnvironmentsAPI:
        """The environments of the server: `get(name)` and `await list()`."""
        return self._environments

    def environment(self, name: str) -> AsyncEnvironment:
        """A handle on an environment."""
        return self._environments.get(name)

    async def close(self) -> None:
        """Close the connections of the running event loop. The client can still be used: it opens others."""
        await self._environments.close()

    async def __aenter__(self) -> AsyncORS:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
