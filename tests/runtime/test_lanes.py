"""Threads for synchronous author code: how many there are, which one runs what, and how one is made to stop."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
import time
from typing import Any

import pytest

from ors.runtime import RuntimeOptions
from ors.runtime.lanes import CutError, Lanes

from .harness import Stubborn, bench, kind, until

pytestmark = pytest.mark.anyio


async def test_works_that_block_do_not_wait_for_each_other() -> None:
    async with bench() as b:
        began = time.monotonic()
        results = await asyncio.gather(*(b.run(lambda: time.sleep(0.2)) for _ in range(200)))
        took = time.monotonic() - began
        assert results == [None] * 200
        # one after another they would take 40 s; the rest is for a slow machine
        assert took < 5


async def test_threads_grow_with_the_backlog_and_go_away_when_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lanes, "IDLE_S", 0.1)
    async with bench() as b:
        doors = threading.Event()
        started = [b.start(doors.wait) for _ in range(50)]
        await until(lambda: b.runtime.status()["lanes"] >= 50)
        await until(lambda: b.runtime.status()["lanes_waiting"] == 0)
        doors.set()
        await asyncio.gather(*(one.outcome for one in started))
        await until(lambda: b.runtime.status()["lanes"] == 0)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("ors-lane")]
        # and they come back
        assert await b.run(lambda: 7) == 7


async def test_there_are_never_more_threads_than_allowed() -> None:
    async with bench(RuntimeOptions(max_threads=3)) as b:
        inside, most = set[int](), 0
        lock = threading.Lock()

        def work() -> None:
            nonlocal most
            with lock:
                inside.add(threading.get_ident())
                most = max(most, len(inside))
            time.sleep(0.02)
            with lock:
                inside.discard(threading.get_ident())

        await asyncio.gather(*(b.run(work) for _ in range(30)))
        assert most == 3
        assert b.runtime.status()["lanes"] == 3


async def test_works_of_one_thread_stay_on_it() -> None:
    async with bench() as b:
        one, another = b.home("session"), b.home("session")
        first = {await b.run(threading.get_ident, one) for _ in range(5)}
        second = {await b.run(threading.get_ident, another) for _ in range(5)}
        assert len(first) == len(second) == 1
        assert first != second
        b.runtime.leave(one)
        b.runtime.leave(another)


async def test_works_of_one_class_share_a_thread() -> None:
    async with bench() as b:
        homes = [b.home("class", "Env") for _ in range(3)]
        idents = {await b.run(threading.get_ident, home) for home in homes}
        assert len(idents) == 1
        assert await b.run(threading.get_ident, b.home("class", "Other")) not in idents


async def test_a_cut_raises_in_the_work_and_answers_at_once() -> None:
    async with bench() as b:
        began, seen = threading.Event(), list[str]()

        def work() -> None:
            began.set()
            try:
                while True:
                    time.sleep(0.001)
            except CutError:
                seen.append("cut")
                raise

        started = b.start(work)
        await until(began.is_set)
        started.cut()
        assert started.outcome.done()
        assert kind(started.outcome.result()) == "call_cancelled"
        assert await started.gone is True
        assert seen == ["cut"]
        assert b.runtime.zombies == {}


async def test_a_cut_leaves_a_sessions_thread_usable() -> None:
    """What is bound to its thread, as a connection of sqlite is, outlives a cut."""
    async with bench() as b:
        home = b.home("session")
        connection: sqlite3.Connection = await b.run(lambda: sqlite3.connect(":memory:"), home)
        began = threading.Event()

        def endless() -> None:
            began.set()
            while True:
                time.sleep(0.001)

        cut = b.start(endless, home)
        behind = b.start(lambda: connection.execute("select 7").fetchone(), home)
        chained = b.start(lambda: connection.execute("select 8").fetchone(), home, after=cut.running)
        await until(began.is_set)
        cut.cut()
        assert await behind.outcome == (7,)
        assert await chained.outcome == (8,)
        await b.run(connection.close, home)
        b.runtime.leave(home)


@pytest.mark.parametrize("affinity", ["session", "any"])
async def test_a_cut_never_hits_the_next_work(affinity: str) -> None:
    """Cuts that come just as a work ends, again and again."""
    async with bench() as b:
        home = b.home(affinity)
        dice = random.Random(7)
        cuts = 0

        def brief(steps: int) -> str:
            for _ in range(steps):
                pass
            return "ended"

        for _ in range(1500):
            steps = dice.randrange(4000)
            one = b.start(lambda steps=steps: brief(steps), home)
            second = b.start(lambda: brief(300), home, after=one.running)
            third = b.start(lambda: brief(300), home, after=second.running)
            await asyncio.sleep(0)
            for _ in range(dice.randrange(6)):
                await asyncio.sleep(0)
            one.cut()
            outcome = await one.outcome
            cuts += outcome != "ended"
            assert [await second.outcome, await third.outcome] == ["ended", "ended"]
            assert await one.gone
        assert cuts > 100, "the test cut too few works to mean anything"
        assert b.runtime.zombies == {}
        assert b.runtime.active == 0
        b.runtime.leave(home)


async def test_what_ignores_its_cut_is_counted_and_named_until_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    async with bench(RuntimeOptions(grace_s=0.05)) as b:
        stubborn = Stubborn()
        started = b.start(stubborn, label="dig")
        await until(stubborn.began.is_set)
        started.cut()
        assert await started.gone is False
        assert b.runtime.status()["zombies"] == ["dig"]
        assert "'dig' did not stop within 0.05 s of being cut" in caplog.text
        # others are served meanwhile
        assert await b.run(lambda: 7) == 7
        stubborn.let_go.set()
        await until(lambda: not b.runtime.status()["zombies"])
        assert kind(started.outcome.result()) == "call_cancelled", "the late result was not dropped"


async def test_zombies_take_no_places_from_the_living() -> None:
    async with bench(RuntimeOptions(grace_s=0.05, max_threads=2)) as b:
        stubborn = [Stubborn() for _ in range(2)]
        hung = [b.start(each) for each in stubborn]
        await until(lambda: all(each.began.is_set() for each in stubborn))
        waiting = [b.start(lambda: 7) for _ in range(5)]
        for each in hung:
            each.cut()
        assert [await each.outcome for each in waiting] == [7] * 5
        assert b.runtime.status()["lanes"] <= 2
        for each in stubborn:
            each.let_go.set()
        await until(lambda: not b.runtime.zombies)


async def test_a_limit_counts_from_the_start_of_the_code() -> None:
    """Three calls that wait for each other, each well within its own limit."""
    async with bench(RuntimeOptions(max_threads=1)) as b:
        first = b.start(lambda: time.sleep(0.5), limit=5)
        second = b.start(lambda: time.sleep(0.3) or "second", after=first.running, limit=0.45)
        third = b.start(lambda: "third", limit=0.2)
        assert await second.outcome == "second"
        assert await third.outcome == "third"
        over = b.start(lambda: [time.sleep(0.01) for _ in range(1000)], limit=0.1, label="slow")
        assert kind(await over.outcome) == "tool_timeout"
        assert over.outcome.result().detail == "'slow' took longer than its limit of 0.1 s"
        assert await over.gone is True


async def test_a_work_that_is_cut_while_it_waits_never_runs_and_is_no_zombie() -> None:
    async with bench(RuntimeOptions(grace_s=0.05)) as b:
        doors, ran = threading.Event(), list[int]()
        first = b.start(doors.wait)
        queued = b.start(lambda: ran.append(1), after=first.running)
        queued.cut()
        assert kind(queued.outcome.result()) == "call_cancelled"
        await asyncio.sleep(0.2)  # longer than the grace, in which it must not be given up
        assert not queued.gone.done()
        assert b.runtime.zombies == {}
        doors.set()
        assert await queued.gone is True
        assert ran == []


async def test_what_waits_behind_a_zombie_goes_on() -> None:
    async with bench(RuntimeOptions(grace_s=0.05)) as b:
        stubborn = Stubborn()
        hung = b.start(stubborn)
        behind = b.start(lambda: threading.get_ident(), after=hung.running)
        await until(stubborn.began.is_set)
        hung.cut()
        assert isinstance(await behind.outcome, int)
        assert await hung.gone is False
        later = b.start(lambda: "later", after=hung.running)
        assert await later.outcome == "later"
        stubborn.let_go.set()
        await until(lambda: not b.runtime.zombies)


@pytest.mark.parametrize("affinity", ["session", "class"])
async def test_a_thread_that_is_lost_is_replaced(affinity: Any) -> None:
    async with bench(RuntimeOptions(grace_s=0.05)) as b:
        home, neighbour = b.home(affinity), b.home(affinity)
        stubborn = Stubborn()
        lost = await b.run(threading.get_ident, home)
        await b.run(threading.get_ident, neighbour)
        hung = b.start(stubborn, home)
        waiting = b.start(threading.get_ident, neighbour)
        behind = b.start(threading.get_ident, home)
        await until(stubborn.began.is_set)
        hung.cut()
        replacement = await behind.outcome
        assert replacement != lost
        assert await b.run(threading.get_ident, home) == replacement
        assert (await waiting.outcome == replacement) is (affinity == "class")
        stubborn.let_go.set()
        await until(lambda: not b.runtime.zombies)
        b.runtime.leave(home)
        b.runtime.leave(neighbour)


async def test_a_system_without_threads_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start, refusals = threading.Thread.start, [3]

    def failing(thread: threading.Thread) -> None:
        if refusals[0] and thread.name.startswith("ors-"):
            refusals[0] -= 1
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", failing)
    async with bench() as b:
        assert await b.run(lambda: 7) == 7
        assert refusals == [0]
        assert "no more threads for author code" in caplog.text
        doors = threading.Event()
        started = [b.start(doors.wait) for _ in range(5)]
        refusals[0] = 2
        await until(lambda: b.runtime.status()["lanes"] >= 5)
        doors.set()
        await asyncio.gather(*(one.outcome for one in started))
        # a thread of its own is refused in words
        refusals[0] = 1
        home = b.home("session")
        refused = await b.run(lambda: 7, home)
        assert (refused.kind, refused.retryable, refused.ran) == ("worker_unavailable", True, "no")
        assert await b.run(lambda: 7, home) == 7
        b.runtime.leave(home)

        async def later() -> int:
            return 8

        refusals[0] = 1
        assert kind(await b.run(later)) == "worker_unavailable"
        assert await b.run(later) == 8


async def test_every_thread_ends_when_the_runtime_stops() -> None:
    others = set(threading.enumerate())
    async with bench() as b:
        homes = [b.home("session"), b.home("class", "Env"), b.home()]
        for home in homes:
            await b.run(lambda: None, home)
        b.runtime.leave(homes[0])
    await until(lambda: not [t for t in set(threading.enumerate()) - others if t.name.startswith("ors-")])


async def test_a_synchronous_work_may_go_on_on_the_author_loop() -> None:
    async with bench() as b:
        where = list[str]()

        async def rest() -> str:
            where.append(threading.current_thread().name)
            return "rest"

        def work() -> Any:
            where.append(threading.current_thread().name)
            return rest()

        first = b.start(work)
        # what comes after it waits for its end, and is a lane's again
        second = b.start(lambda: where.append(threading.current_thread().name), after=first.running)
        assert await first.outcome == "rest"
        await second.outcome
        assert [name.rsplit("-", 1)[0] for name in where] == ["ors-lane", "ors-author-env", "ors-lane"]


async def test_the_rest_of_a_synchronous_work_that_is_cut_lets_the_next_begin() -> None:
    async with bench() as b:
        began = threading.Event()

        async def rest() -> None:
            began.set()
            await asyncio.sleep(60)

        first = b.start(lambda: rest())
        second = b.start(lambda: threading.current_thread().name, after=first.running)
        await until(began.is_set)
        first.cut()
        assert (await second.outcome).startswith("ors-lane")
        assert await first.gone is True


async def test_lanes_survive_an_exception_that_cannot_be_shown() -> None:
    class Odd(BaseException):
        def __str__(self) -> str:
            raise SystemExit

    def work() -> None:
        raise Odd

    async with bench() as b:
        assert (await b.run(work)).detail == "work raised something that cannot be shown"
        assert await b.run(lambda: 7) == 7
