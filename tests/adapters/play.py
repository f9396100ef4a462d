"""Environment classes on a host of this process, for the tests of the adapters."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from ors import Environment, TextBlock, ToolOutput, tool
from ors.adapters.ors_environment import ORSOffering
from ors.core.failures import Failure
from ors.core.ports import Document, Op, Opened, Principal, Start, TaskQuery, TaskRef, ToolOutcome
from ors.core.secrets import Secrets
from ors.hosts.local import HostOptions, LocalHost
from ors.runtime import RuntimeOptions

ME = Principal()
_numbers = itertools.count(1)


def said(text: Any = "done", **more: Any) -> ToolOutput:
    """A result of one text."""
    return ToolOutput(blocks=[TextBlock(text=str(text))], **more)


class Plain(Environment):
    """The least that an environment must have."""

    @classmethod
    def list_splits(cls) -> Any:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [{"number": number} for number in range(3)]

    def get_prompt(self) -> Any:
        return "Go."

    @tool
    def go(self) -> ToolOutput:
        """Go."""
        return said()


class Episode:
    """A session of an environment."""

    def __init__(self, host: LocalHost, sid: str) -> None:
        self.host = host
        self.sid = sid

    async def ask(self, kind: Any) -> Any:
        outcome = await self.host.perform(self.sid, ME, Op(kind))
        return json.loads(outcome.body) if isinstance(outcome, Document) else outcome

    async def outcome(self, name: str, **input: Any) -> Any:
        return await self.host.perform(self.sid, ME, Op("call", f"c{next(_numbers)}", name, input))

    async def call(self, name: str, **input: Any) -> Any:
        """Call a tool; returns its output as JSON, or the failure."""
        outcome = await self.outcome(name, **input)
        return json.loads(outcome.body) if isinstance(outcome, ToolOutcome) else outcome

    async def text(self, name: str, **input: Any) -> str:
        output = await self.call(name, **input)
        assert not isinstance(output, Failure), output
        return str(output["blocks"][0]["text"])

    async def end(self) -> None:
        await self.host.end(self.sid, ME)


class Played:
    """A host."""

    def __init__(self, *classes: type[Environment], errors: Any = "exception", **options: Any) -> None:
        self.host = LocalHost([ORSOffering(cls, errors=errors) for cls in classes], HostOptions(**options))
        self.first = classes[0].name()

    async def open(
        self,
        task: Any = None,
        *,
        index: int | None = None,
        env: str | None = None,
        secrets: dict[str, str] | None = None,
        split: str = "train",
    ) -> Any:
        """Open a session on a task, or on the one at an index; returns it, or the failure."""
        sid = f"s{next(_numbers)}"
        ref = TaskRef(split, index) if index is not None else None
        start = Start(ref, {} if task is None and ref is None else task, secrets=Secrets(secrets))
        opened = await self.host.open(sid, env, start, ME, None)
        return Episode(self.host, sid) if isinstance(opened, Opened) else opened

    async def ask(self, kind: Any, split: str = "train", env: str | None = None, **place: Any) -> Any:
        """A question about tasks; returns the JSON, or the failure."""
        answer = await self.host.task(env or self.first, TaskQuery(kind, split, **place))
        return json.loads(answer.body) if isinstance(answer, Document) else answer

    async def listed(self, split: str = "train") -> Any:
        """All tasks of a split, as they are streamed."""
        pieces = [piece async for piece in self.host.tasks(self.first, split)]
        if isinstance(pieces[0], Failure):
            return pieces[0]
        return json.loads(b"".join(pieces))  # type: ignore[arg-type]


@asynccontextmanager
async def played(
    *classes: type[Environment], runtime: RuntimeOptions | None = None, **options: Any
) -> AsyncIterator[Played]:
    """A host that is closed afterwards; all of its threads end."""
    others = set(threading.enumerate())
    made = Played(*classes, runtime=runtime or RuntimeOptions(), **options)
    try:
        yield made
    finally:
        await made.host.close()
        await until(lambda: not [t for t in set(threading.enumerate()) - others if t.name.startswith("ors-")])


async def until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait until a condition holds; fail when it does not in time."""
    for _ in range(int(seconds / 0.005)):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not happen in time")


def kind(outcome: Any) -> str:
    """The kind of a failure."""
    assert isinstance(outcome, Failure), outcome
    return outcome.kind
