"""Sessions whose author loop is blocked for too long are lost; others, and those that come next, are served."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ors import (
    ToolOutput,
    tool,
)
from ors.runtime import RuntimeOptions

from .play import Plain, kind, played, said, until

pytestmark = pytest.mark.anyio


async def test_sessions_whose_loop_is_blocked_are_lost_and_the_next_are_served() -> None:
    let_go, events = threading.Event(), list[str]()

    class Blocking(Plain):
        def teardown(self) -> None:
            events.append(f"teardown {self.task_spec['number']}")

        @tool
        async def block(self) -> ToolOutput:
            let_go.wait(30)
            return said("blocked")

        @tool
        async def wait(self) -> ToolOutput:
            return said("waited")

    options = RuntimeOptions(blocked_warn_s=0.05, blocked_limit_s=0.25, grace_s=0.1)
    async with played(Blocking, runtime=options) as p:
        one, other, unused = [await p.open(index=index) for index in range(3)]
        assert await other.text("wait") == "waited"
        blocked = asyncio.ensure_future(one.outcome("block"))
        await asyncio.sleep(0.02)
        waiting = asyncio.ensure_future(other.outcome("wait"))
        for lost in (await blocked, await waiting):
            assert kind(lost) == "loop_blocked"
            assert lost.detail.startswith("'block' in ")
        for episode in (one, other):
            assert kind(await episode.ask("prompt")) == "session_ended"
        await until(lambda: sorted(events) == ["teardown 0", "teardown 1"])
        # a session that never used the loop lives, and gets a new one
        assert await unused.text("wait") == "waited"
        assert await (await p.open(index=0)).text("wait") == "waited"
        assert [name.startswith("'block' in ") for name in (await p.host.status())["zombies"]] == [True]
        let_go.set()
        assert isinstance(await unused.ask("prompt"), list)
        for _ in range(2000):
            if not (await p.host.status())["zombies"]:
                break
            await asyncio.sleep(0.005)
        assert (await p.host.status())["zombies"] == []
