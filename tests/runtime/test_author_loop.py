"""The loop of authors' asynchronous code: whatever is raised in it, whoever cancels, it goes on and answers."""

from __future__ import annotations

import asyncio
import contextvars
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from ors.runtime import RuntimeOptions

from .harness import bench, kind, until

pytestmark = pytest.mark.anyio


def forever() -> int:
    return forever() + 1


@pytest.mark.parametrize(
    "exception",
    [
        asyncio.CancelledError(),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        MemoryError("all"),
        StopIteration(),
    ],
    ids=lambda exception: type(exception).__name__,
)
async def test_whatever_is_raised_is_an_answer(exception: BaseException) -> None:
    async def work() -> None:
        raise exception

    async def later() -> str:
        return threading.current_thread().name

    async with bench() as b:
        before = await b.run(later)
        outcome = await b.run(work)
        assert kind(outcome) == "internal"
        # a coroutine cannot raise StopIteration: Python makes a RuntimeError of it
        assert outcome.detail.startswith(f"work: {type(exception).__name__}".replace("StopIteration", "RuntimeError"))
        assert await b.run(later) == before, "the loop did not survive"


async def test_recursion_without_end_is_an_answer() -> None:
    async def work() -> int:
        return forever()

    async with bench() as b:
        assert (await b.run(work)).detail.startswith("work: RecursionError")


@pytest.mark.parametrize("exception", [SystemExit, KeyboardInterrupt])
async def test_a_task_of_the_authors_own_may_raise_anything(
    exception: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    kept = set[Any]()

    async def leave() -> None:
        raise exception

    async def work() -> str:
        kept.add(asyncio.get_running_loop().create_task(leave()))
        await asyncio.sleep(0.01)
        return threading.current_thread().name

    async def wait_for_it() -> None:
        await asyncio.get_running_loop().create_task(leave())

    async with bench() as b:
        first = await b.run(work)
        assert "author code raised out of a task of its own" in caplog.text
        assert kind(await b.run(wait_for_it)) == "internal"
        assert await b.run(work) == first
        for task in kept:
            assert isinstance(task.exception(), exception)


async def test_stopping_the_loop_does_not_end_it() -> None:
    async def stop() -> str:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        return "went on"

    async with bench() as b:
        assert await b.run(stop) == "went on"
        assert await b.run(stop) == "went on"


async def test_a_cut_cancels_and_answers_at_once() -> None:
    async with bench() as b:
        began, seen = threading.Event(), list[str]()

        async def work() -> None:
            began.set()
            try:
                await asyncio.sleep(60)
            finally:
                seen.append("cleaned up")

        started = b.start(work)
        await until(began.is_set)
        started.cut()
        assert kind(started.outcome.result()) == "call_cancelled"
        assert await started.gone is True
        assert seen == ["cleaned up"]


async def test_a_cut_may_come_at_any_moment() -> None:
    """Before the work is on its loop, before its first step, in it, and when it is over: it is gone, and no zombie."""
    async with bench() as b:
        dice = random.Random(3)
        outcomes = list[Any]()

        async def work(steps: int) -> str:
            for _ in range(steps):
                await asyncio.sleep(0)
            return "ended"

        for _ in range(1500):

            async def one(steps: int = dice.randrange(4)) -> str:
                return await work(steps)

            first = b.start(one)
            second = b.start(one, after=first.running)
            for _ in range(dice.randrange(8)):
                await asyncio.sleep(0)
            first.cut()
            outcomes.append(await first.outcome)
            assert await second.outcome == "ended"
            assert await asyncio.wait_for(first.gone, 20) is True
        cuts = sum(outcome != "ended" for outcome in outcomes)
        assert cuts > 100, "the test cut too few works to mean anything"
        assert b.runtime.active == 0


class Stubborn:
    """Swallows every cancellation until it is let go."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.let_go = threading.Event()

    async def run(self) -> str:
        self.began.set()
        while not self.let_go.is_set():
            try:
                await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                pass
        return "at last"


async def test_what_swallows_its_cancellation_is_a_zombie_that_nobody_waits_for() -> None:
    async with bench(RuntimeOptions(grace_s=0.05)) as b:
        stubborn = Stubborn()
        hung = b.start(stubborn.run, label="cling")

        async def next_one() -> str:
            return "next"

        behind = b.start(next_one, after=hung.running)
        await until(stubborn.began.is_set)
        hung.cut()
        assert await behind.outcome == "next"
        assert await hung.gone is False
        assert b.runtime.status()["zombies"] == ["cling"]
        assert await b.run(next_one, after=hung.running) == "next"
        stubborn.let_go.set()
        await until(lambda: not b.runtime.status()["zombies"])


async def test_a_work_that_keeps_its_task_can_hurt_no_other_with_it() -> None:
    """Works that end without waiting may share a task with the next; one that refers to it later may not."""
    kept = list[Any]()

    async def keep() -> str:
        kept.append(asyncio.current_task())
        return "kept"

    async def wait() -> str:
        await asyncio.sleep(0.2)
        return "waited"

    async def cancel() -> int:
        return len([task.cancel() for task in kept])

    async with bench() as b:
        for _ in range(5):
            together = [b.start(work) for work in (keep, wait, keep, keep, wait)]
            await asyncio.gather(*(together[at].outcome for at in (0, 2, 3)))
            assert await b.run(cancel) == len(kept)
            assert [await together[at].outcome for at in (1, 4)] == ["waited", "waited"]


async def test_a_work_may_be_cancelled_by_another_that_has_its_task() -> None:
    kept = list[Any]()

    async def wait() -> str:
        kept.append(asyncio.current_task())
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            return "stopped"
        return "waited"

    async def stop() -> None:
        kept[0].cancel()

    async with bench() as b:
        waiting = b.start(wait)
        await until(lambda: kept)
        await b.run(stop)
        assert await waiting.outcome == "stopped"


async def test_a_limit_reaches_its_caller_while_the_loop_is_blocked() -> None:
    async with bench() as b:
        let_go = threading.Event()

        async def block() -> None:
            let_go.wait(20)

        async def brief() -> str:
            return "brief"

        blocking = b.start(block, limit=0.05)
        queued = b.start(brief, limit=0.2)
        assert kind(await blocking.outcome) == "tool_timeout"
        assert not blocking.gone.done()
        await asyncio.sleep(0.3)
        assert not queued.outcome.done(), "its time ran although its code had not begun"
        let_go.set()
        assert await queued.outcome == "brief"
        assert await blocking.gone is True


async def test_each_call_has_a_copy_of_its_context() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="nothing")
    one, another = contextvars.Context(), contextvars.Context()
    one.run(variable.set, "one")
    another.run(variable.set, "another")

    async def read_then_write() -> str:
        await asyncio.sleep(0)
        before = variable.get()
        variable.set("written")
        return before

    def read_then_write_in_a_lane() -> str:
        before = variable.get()
        variable.set("written")
        return before

    async with bench() as b:
        works: list[Callable[[], Any]] = [read_then_write, read_then_write_in_a_lane]
        for work in works:
            assert [await b.run(work, context=one) for _ in range(2)] == ["one", "one"]
            assert await b.run(work, context=another) == "another"
        assert variable.get() == "nothing"
        assert one.run(variable.get) == "one"


async def test_the_loop_of_a_class_is_shared_and_others_have_their_own() -> None:
    async def where() -> int:
        return threading.get_ident()

    async with bench() as b:
        here = await b.run(where, b.home(group="A"))
        assert await b.run(where, b.home(group="A")) == here
        assert await b.run(where, b.home(group="B")) != here
        assert here != threading.get_ident()


async def test_stopping_cancels_what_still_runs() -> None:
    ended = list[str]()
    began = threading.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")

    before = time.monotonic()
    async with bench() as b:
        b.start(work)
        await until(began.is_set)
    assert ended == ["cancelled"]
    assert time.monotonic() - before < 10
