"""Limits of the client: what `asyncio.timeout` promises, with one timer for all."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ors.client import limit as module
from ors.client.limit import Limit


async def over(seconds: float | None, takes_s: float) -> bool:
    try:
        async with Limit(seconds):
            await asyncio.sleep(takes_s)
    except TimeoutError:
        return True
    return False


def test_what_takes_too_long_is_cancelled() -> None:
    assert asyncio.run(over(0.01, 30))
    assert asyncio.run(over(0.0, 30))
    assert asyncio.run(over(-1.0, 30))
    assert not asyncio.run(over(30, 0.0))
    assert not asyncio.run(over(None, 0.0))


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time goes on when there is nothing to do, and only then."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self.now = max(self.now, self._scheduled[0]._when)
        super()._run_once()


def run(work: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=Clock) as runner:
        return runner.run(work)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 20)), st.integers(0, 20)), max_size=12))
def test_each_ends_at_its_own_time(asked: list[tuple[int | None, int]]) -> None:
    async def all_of_them() -> list[tuple[bool, float]]:
        loop = asyncio.get_running_loop()

        async def one(seconds: int | None, takes: int) -> tuple[bool, float]:
            began = loop.time()
            # halves, so that nothing ends at the same moment as it is over
            ended = await over(seconds, takes + 0.5)
            return ended, loop.time() - began

        return await asyncio.gather(*(one(*each) for each in asked))

    for (seconds, takes), (ended, took) in zip(asked, run(all_of_them()), strict=True):
        assert ended == (seconds is not None and seconds < takes + 0.5)
        assert took == (seconds if ended else takes + 0.5)


def test_it_is_moved() -> None:
    async def moved(first: float | None, by: float, takes: float) -> tuple[bool, float]:
        loop = asyncio.get_running_loop()
        try:
            async with Limit(first) as limit:
                limit.reschedule(loop.time() + by)
                assert limit.when() == loop.time() + by
                await asyncio.sleep(takes)
        except TimeoutError:
            return True, loop.time()
        return False, loop.time()

    assert run(moved(5, 50, 20)) == (False, 20)
    assert run(moved(50, 5, 20)) == (True, 5)
    assert run(moved(None, 5, 20)) == (True, 5)


def test_one_within_another() -> None:
    async def nested(outer: float, inner: float) -> str:
        try:
            async with Limit(outer):
                try:
                    async with Limit(inner):
                        await asyncio.sleep(100)
                except TimeoutError:
                    return "inner"
        except TimeoutError:
            return "outer"
        return "neither"

    assert run(nested(10, 5)) == "inner"
    assert run(nested(5, 10)) == "outer"
    assert run(nested(5, 5)) in ("inner", "outer")


def test_a_cancellation_from_elsewhere_stays_one() -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(over(50, 100))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancelled())


def test_an_error_inside_stays_itself() -> None:
    async def fails() -> None:
        async with Limit(5):
            try:
                await asyncio.sleep(10)
            finally:
                raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        run(fails())


def test_a_loop_is_not_kept() -> None:
    asyncio.run(over(30, 0.0))
    gone = [weakref.ref(loop) for loop in module._timers if loop.is_closed()]
    assert gone
    asyncio.run(over(30, 0.0))  # whoever comes next forgets the loops that are closed
    gc.collect()
    assert all(ref() is None for ref in gone)
