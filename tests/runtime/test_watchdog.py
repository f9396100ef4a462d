"""Blocked author loops are named in the log; one that stays blocked is written off, and others take its place."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from ors.runtime import RuntimeOptions
from ors.runtime.watchdog import blame

from .harness import bench, kind, until

pytestmark = pytest.mark.anyio

QUICK = RuntimeOptions(grace_s=0.2, blocked_warn_s=0.05, blocked_limit_s=0.3)


class Blocker:
    """An `async def` with a blocking body."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.let_go = threading.Event()

    async def dig_deep(self) -> str:
        self.began.set()
        self.let_go.wait(30)
        return "dug"


async def test_who_blocks_a_loop_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async with bench(RuntimeOptions(blocked_warn_s=0.05, blocked_limit_s=60)) as b:
        blocker = Blocker()
        started = b.start(blocker.dig_deep, label="dig")
        await until(lambda: "has blocked its event loop" in caplog.text)
        assert "'dig' in Blocker.dig_deep (test_watchdog.py:" in caplog.text
        assert "make it a plain `def`" in caplog.text
        blocker.let_go.set()
        assert await started.outcome == "dug"
        assert len([record for record in caplog.records if "has blocked" in record.message]) == 1


async def test_a_loop_that_stays_blocked_is_written_off(caplog: pytest.LogCaptureFixture) -> None:
    async with bench(QUICK) as b:
        lost = list[Any]()
        b.runtime.on_blocked(lambda author, what: lost.append((author, what)))
        blocker = Blocker()
        home, neighbour = b.home(), b.home()

        async def where() -> int:
            return threading.get_ident()

        async def rest() -> None:
            await asyncio.sleep(60)

        old = await b.run(where, home)
        suspended = b.start(rest, neighbour)
        blocking = b.start(blocker.dig_deep, home, label="dig")
        await until(blocker.began.is_set)
        queued = b.start(where, neighbour)
        behind = b.start(where, neighbour, after=queued.running)
        continued = b.start(lambda: where(), neighbour)
        lane = b.start(threading.get_ident, neighbour, after=continued.running)
        for started in (blocking, suspended, queued, behind, continued):
            assert kind(await started.outcome) == "loop_blocked"
            assert await started.gone is True
        # what needs a lane only has lost nothing
        assert isinstance(await lane.outcome, int)
        assert [what.startswith("'dig' in ") for _, what in lost] == [True]
        assert lost[0][0] is home.author
        assert "the loop is given up" in caplog.text
        # whoever comes next gets another loop, in an old home and in a new one
        new = await b.run(where, home)
        assert new not in (old, threading.get_ident())
        assert await b.run(where, b.home()) == new
        # while it blocks it is counted, and when it ends its thread goes
        assert [name.startswith("'dig' in ") for name in b.runtime.status()["zombies"]] == [True]
        blocker.let_go.set()
        await until(lambda: not b.runtime.status()["zombies"])
        await until(lambda: old not in {thread.ident for thread in threading.enumerate()})
        assert b.runtime.active == 0


async def test_a_loop_that_is_busy_but_lives_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    async with bench(QUICK) as b:

        async def busy() -> str:
            deadline = asyncio.get_running_loop().time() + 0.8
            while asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(0)
            return "done"

        assert await b.run(busy) == "done"
        assert "given up" not in caplog.text


async def test_a_thread_without_a_work_is_blamed_by_its_place() -> None:
    let_go = threading.Event()

    def wait_here() -> None:
        running = object()  # a name that is also used in the runtime
        assert running
        let_go.wait(20)

    thread = threading.Thread(target=wait_here)
    thread.start()
    await until(lambda: "wait_here (test_watchdog.py:" in blame(thread))
    assert "'" not in blame(thread)
    let_go.set()
    thread.join()
    assert blame(thread) == "something"
