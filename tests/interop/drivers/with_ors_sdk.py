"""Drives the client of ors-sdk; run by the interpreter of its virtual environment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from scenarios import COMMON, Awaited, in_threads, serve

from ors.client import ORS, AsyncORS, Task


class OrsSdk:
    """Both of its clients behind one face."""

    def __init__(self, inner: AsyncORS | Awaited) -> None:
        self._inner = inner

    def environment(self, name: str, variant: str | None = None) -> Any:
        # it has no variants: the name is always in the path
        return self._inner.environment(variant or name)

    def task(self, env_name: str, spec: dict[str, Any]) -> Task:
        return Task(environment_name=env_name, task_spec=spec)

    def secrets(self, given: dict[str, str]) -> dict[str, str]:
        return given


@asynccontextmanager
async def opened(url: str, sync: bool, key: str | None) -> AsyncIterator[OrsSdk]:
    """A client for one server, closed at the end."""
    if sync:
        # its synchronous client has one private loop, so only one thread may use it
        inner = ORS(url, api_key=key)
        async with in_threads(inner, 1) as client:
            yield OrsSdk(client)
            await client.close()
        return
    asynchronous = AsyncORS(url, api_key=key)
    yield OrsSdk(asynchronous)
    # the asynchronous client cannot be closed; its connections are, so that none outlives a scenario
    for session in asynchronous.environments._clients.values():
        await session.close()
    await asyncio.sleep(0)


if __name__ == "__main__":
    serve(opened, COMMON)
