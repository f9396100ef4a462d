"""OpenEnv environments on a host of this process."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import ors.openenv
from ors.adapters.openenv_environment import OpenEnvOffering
from ors.core.failures import Failure
from ors.core.ports import Document, Op, Opened, Principal, Start, StepOutcome, TaskQuery
from ors.hosts.local import HostOptions, LocalHost
from ors.openenv import Action, Environment, Observation, State
from served import until

from .shapes import load

ME = Principal()
SHAPES: SimpleNamespace = load(ors.openenv)
_numbers = itertools.count(1)


def offering(kind: str, **options: Any) -> OpenEnvOffering:
    """The offering of one of the shapes."""
    return OpenEnvOffering(*SHAPES.kinds[kind], **options)


def plain(outcome: Any) -> Any:
    """What came of something, as data that a test compares."""
    if isinstance(outcome, Document):
        return json.loads(outcome.body)
    if isinstance(outcome, StepOutcome):
        seen = {"observation": {"metadata": outcome.metadata, **outcome.observation}, "reward": outcome.reward}
        seen |= {"done": outcome.done}
        return seen | ({"notes": outcome.notes} if outcome.notes else {})
    return outcome


class Least(Environment[Any, Any, Any]):
    """The least that an environment must have."""

    def reset(self) -> Any:
        return Observation()

    def step(self, action: Action) -> Any:
        return Observation()

    @property
    def state(self) -> State:
        return State()


class Episodes:
    """A session of an environment of steps."""

    def __init__(self, host: LocalHost, sid: str) -> None:
        self.host = host
        self.sid = sid

    async def ask(self, kind: Any, **op: Any) -> Any:
        return plain(await self.host.perform(self.sid, ME, Op(kind, **op)))

    async def reset(self, **options: Any) -> Any:
        return await self.ask("reset", start=Start(options=options))

    async def step(self, timeout_s: float | None = None, /, **action: Any) -> Any:
        return await self.ask("step", input=action, timeout_s=timeout_s)

    async def state(self) -> Any:
        return await self.ask("state")

    async def end(self) -> None:
        await self.host.end(self.sid, ME, "deleted")


class Stage:
    """A host of offerings."""

    def __init__(self, host: LocalHost) -> None:
        self.host = host

    async def open(self, **start: Any) -> Episodes:
        sid = f"s{next(_numbers)}"
        opened = await self.host.open(sid, None, Start(**start), ME, None)
        assert isinstance(opened, Opened), opened
        return Episodes(self.host, sid)

    async def query(self, *query: Any, **more: Any) -> Any:
        env = next(iter(self.host.offerings()))
        return plain(await self.host.task(env, TaskQuery(*query, **more)))

    async def listed(self, split: str) -> Any:
        env = next(iter(self.host.offerings()))
        pieces = [piece async for piece in self.host.tasks(env, split)]
        failed = [piece for piece in pieces if isinstance(piece, Failure)]
        return failed[0] if failed else json.loads(b"".join(pieces))  # type: ignore[arg-type]


@asynccontextmanager
async def staged(*offerings: Any, **options: Any) -> AsyncIterator[Stage]:
    others = set(threading.enumerate())
    host = LocalHost(offerings, HostOptions(**options))
    try:
        yield Stage(host)
    finally:
        await host.close()
        await until(lambda: not [t for t in set(threading.enumerate()) - others if t.name.startswith("ors-")])
