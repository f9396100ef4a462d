"""Native offerings on a host of this process, and what is asked of their sessions."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ors.core.ports import Document, Op, Opened, Principal, Start, TaskQuery, ToolOutcome
from ors.hosts.local import HostOptions, LocalHost

from .play import until

ME = Principal()
_numbers = itertools.count(1)


class Hosted:
    """A host with sessions of the test's."""

    def __init__(self, *offerings: Any, **options: Any) -> None:
        self.host = LocalHost(offerings, HostOptions(**options))

    async def open(self, kind: Any = "tools", **start: Any) -> str:
        sid = f"s{next(_numbers)}"
        opened = await self.host.open(sid, None, Start(kind=kind, **start), ME, None)
        assert isinstance(opened, Opened), opened
        return sid

    async def ask(self, sid: str, kind: Any, **op: Any) -> Any:
        if kind == "call":
            op.setdefault("call_id", f"c{next(_numbers)}")
        outcome = await self.host.perform(sid, ME, Op(kind, **op))
        if isinstance(outcome, Document):
            return json.loads(outcome.body)
        return json.loads(outcome.body) if isinstance(outcome, ToolOutcome) else outcome

    async def step(self, sid: str, **action: Any) -> Any:
        """Call the tool `step`."""
        return await self.ask(sid, "call", name="step", input=action)

    async def query(self, *query: Any, **more: Any) -> Any:
        env = next(iter(self.host.offerings()))
        answer = await self.host.task(env, TaskQuery(*query, **more))
        return json.loads(answer.body) if isinstance(answer, Document) else answer


@asynccontextmanager
async def hosted(*offerings: Any, **options: Any) -> AsyncIterator[Hosted]:
    others = set(threading.enumerate())
    made = Hosted(*offerings, **options)
    try:
        yield made
    finally:
        await made.host.close()
        await until(lambda: not [t for t in set(threading.enumerate()) - others if t.name.startswith("ors-")])
