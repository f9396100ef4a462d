"""Hosts of every kind, over the same environments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from ors.core.ports import Host, Op, Principal, Start
from ors.hosts.local import HostOptions, LocalHost
from ors.hosts.remote import RemoteHost
from ors.hosts.threaded import ThreadedHost

from .environments import offerings

TRAINER = Principal()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """A test that waits for what does not come fails; the event loop would catch what a signal raises in it."""
    test = pyfuncitem.obj
    if inspect.iscoroutinefunction(test):

        @functools.wraps(test)
        async def bounded(**arguments: Any) -> None:
            with anyio.fail_after(90):
                await test(**arguments)

        pyfuncitem.obj = bounded


async def make_host(kind: str, options: HostOptions | None = None) -> Any:
    """A host of a kind."""
    if kind == "local":
        return LocalHost(offerings(), options)
    if kind == "remote":
        return await RemoteHost.spawn(offerings, options)
    inner = kind.removeprefix("threaded ")
    return ThreadedHost(functools.partial(make_host, inner, options))


@pytest.fixture(scope="module", params=["local", "remote", "threaded local", "threaded remote"])
async def host(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncIterator[Host]:
    """One host of each kind for all tests of a module."""
    made = await make_host(request.param)
    yield made
    await made.close()


@pytest.fixture
async def spawn(anyio_backend: str) -> AsyncIterator[Callable[..., Any]]:
    """`await spawn(**options)` → a remote host of the test's own."""
    made: list[RemoteHost] = []

    async def start(make: Any = offerings, **options: Any) -> RemoteHost:
        made.append(await RemoteHost.spawn(make, HostOptions(**options)))
        return made[-1]

    yield start
    for each in made:
        await each.close()


class Player:
    """Opens a session and asks things of it, in few words."""

    def __init__(self, host: Any, sid: str, principal: Principal = TRAINER) -> None:
        self.host, self.sid, self.principal = host, sid, principal
        self.calls = 0

    async def open(self, env: str | None = None, *, key: str | None = None, **start: Any) -> Any:
        return await self.host.open(self.sid, env, Start(**start), self.principal, key)

    def ask(self, kind: str, **rest: Any) -> Any:
        return self.host.perform(self.sid, self.principal, Op(kind, **rest))  # type: ignore[arg-type]

    def call(self, name: str, *, call_id: str | None = None, mode: str = "run", **arguments: Any) -> Any:
        self.calls += 1
        return self.ask("call", call_id=call_id or f"{self.sid}-{self.calls}", name=name, input=arguments, mode=mode)

    async def end(self) -> Any:
        return await self.host.end(self.sid, self.principal, "deleted")
