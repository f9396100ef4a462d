"""Many sessions at once: together, step by step, and each playing one episode after another."""

from __future__ import annotations

import asyncio
import functools
import itertools
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ors.client.portal import current_loop
from ors.errors import SessionLost
from ors.openenv import Batch, BatchError, GenericEnvClient, create_app
from ors.openenv.clients import ServerError
from served import Served, wait_until

from .counting import Add, Client, Counter, Total
from .plain import Plain


@pytest.fixture
def server() -> Iterator[Plain]:
    with Plain() as made:
        yield made


def totals(results: list[Any]) -> list[int]:
    return [result.observation["total"] for result in results]


def test_sessions_are_reset_and_step_together(server: Plain) -> None:
    with Batch(GenericEnvClient(server.url), 8) as batch:
        batch.connect()
        assert totals(batch.reset(start=2)) == [2] * 8
        assert totals(batch.reset([{"start": number} for number in range(8)], seed=1)) == list(range(8))
        assert server.sessions[0].heard[-1]["data"]["seed"] == 1
        actions = [{"number": 1} if number % 2 else None for number in range(8)]
        results = batch.step(actions, timeout_s=20)
        assert [result and result.observation["total"] for result in results] == [None, 2, None, 4, None, 6, None, 8]
        assert [state["step_count"] for state in batch.state()] == [0, 2, 2, 4, 4, 6, 6, 8]
        assert (len(batch), batch[3].state()["step_count"]) == (8, 4)
        assert [env.state()["step_count"] for env in batch] == [0, 2, 2, 4, 4, 6, 6, 8]
        some = batch.reset([None, *[{"start": 5}] * 7])
        assert some[0] is None
        assert batch[0].state()["step_count"] == 0
        with pytest.raises(ValueError, match="step was given 1 for 8 sessions; None leaves one alone"):
            batch.step([{}])
    assert len(server.sessions) == 8
    wait_until(lambda: server.alive == 0)
    with pytest.raises(ValueError, match="at least one session"):
        Batch(GenericEnvClient(server.url), 0)


def test_where_some_fail_the_others_are_heard(server: Plain) -> None:
    with Batch(GenericEnvClient(server.url).sync(), 3) as batch:
        batch.reset()
        with pytest.raises(BatchError, match=r"step\(\) failed in 1 of 3 sessions, first in session 1: .*only") as some:
            batch.step([{"number": 1}, {"number": -1}, {"number": 3}])
        assert [type(each).__name__ for each in some.value.results] == ["StepResult", "ServerError", "StepResult"]
        assert some.value.results[2].observation["total"] == 3
        again = pickle.loads(pickle.dumps(some.value))
        assert (str(again), len(again.results)) == (str(some.value), 3)
        results = batch.step([{"cut": "after"}, {"number": 1}, None], return_exceptions=True)
        assert isinstance(results[0], SessionLost)
        assert (results[1].observation["total"], results[2]) == (1, None)
        # only the session that is lost has to begin anew
        batch.reset([{"start": 7}, None, None])
        assert [state["step_count"] for state in batch.state()] == [7, 1, 3]


def test_inside_of_a_loop_a_batch_is_awaited(server: Plain) -> None:
    async def play() -> None:
        async with Batch(GenericEnvClient(server.url), 4) as batch:
            assert totals(await batch.reset(start=1)) == [1] * 4
            # as a notebook has it
            assert totals(batch.step([{"number": 1}] * 4)) == [2] * 4
            with pytest.raises(BatchError):
                await batch.step([{"number": -1}] * 4)

    asyncio.run(play())
    wait_until(lambda: server.alive == 0)


async def play(env: Any, first: Any) -> Any:
    result = first
    while not result.done:
        result = await env.step({"number": 3})
    return result.observation["total"]


def test_episodes_are_played_by_as_many_sessions_as_there_are(server: Plain) -> None:
    starts = [{"start": number} for number in range(9)]
    expected = [next(total for total in range(start, 99, 3) if total >= 10) for start in range(9)]
    with Batch(GenericEnvClient(server.url), 3) as batch:
        played = batch.gather(play, starts)
        assert [each.unwrap() for each in played] == expected
        assert [(each.number, each.start["start"], each.first.observation["total"]) for each in played] == [
            (number, number, number) for number in range(9)
        ]
        assert all(each.ok and each.seconds > 0 for each in played)
        assert len(server.sessions) == 3
        # one by one, and no more than are wanted of a supply without end
        endless = ({"start": 5} for _ in itertools.count())
        with_end = batch.as_ended(play, endless)
        assert [each.value for each in itertools.islice(with_end, 20)] == [11] * 20
        assert sorted(each.number for each in batch.gather(play, starts, in_order=False)) == list(range(9))
    wait_until(lambda: server.alive == 0)


def test_inside_of_a_loop_episodes_are_played_on_that_loop(server: Plain) -> None:
    async def run() -> None:
        here = asyncio.get_running_loop()

        async def on_this_loop(env: Any, first: Any) -> bool:
            await env.step({"number": 1})
            return asyncio.get_running_loop() is here

        async with Batch(GenericEnvClient(server.url), 2) as batch:
            assert all(each.unwrap() for each in await batch.gather(on_this_loop, [{}] * 5))
            seen = [each.number async for each in batch.as_ended(on_this_loop, [{}] * 5)]
            assert sorted(seen) == list(range(5))

    asyncio.run(run())

    async def on_the_clients_loop(env: Any, first: Any) -> bool:
        return asyncio.get_running_loop() is current_loop()

    with Batch(GenericEnvClient(server.url), 2) as batch:
        assert all(each.unwrap() for each in batch.gather(on_the_clients_loop, [{}] * 3))


class Player:
    """What plays may be an object."""

    async def __call__(self, env: Any, first: Any) -> Any:
        return await play(env, first)


def plainly(env: Any, first: Any) -> tuple[int, str]:
    result = first
    while not result.done:
        result = env.step({"number": 5})
    return result.observation["total"], threading.current_thread().name


@pytest.mark.parametrize("player", [Player(), Player().__call__, functools.partial(play)])
def test_what_plays_may_be_any_callable(server: Plain, player: Any) -> None:
    with Batch(GenericEnvClient(server.url), 2) as batch:
        assert [each.unwrap() for each in batch.gather(player, [{"start": 1}] * 4)] == [10] * 4
        with pytest.raises(TypeError, match="make it an `async` one"):
            batch.gather(lambda env, first: player(env, first), [{}])[0].unwrap()


def test_plain_functions_are_run_in_threads(server: Plain) -> None:
    with Batch(GenericEnvClient(server.url), 2) as batch:
        values = [each.unwrap() for each in batch.gather(plainly, [{}] * 6)]
        assert {total for total, _ in values} == {10}
        assert all(name.startswith("ors-rollout") for _, name in values)
        assert len({name for _, name in values}) <= 2


def test_a_failure_is_that_of_its_episode(server: Plain) -> None:
    async def some_fail(env: Any, first: Any) -> int:
        start = first.observation["total"]
        if start == 1:
            raise KeyError("mine")
        if start == 2:
            await env.step({"cut": "before"})
        return (await env.step({"number": -1 if start == 3 else 1})).observation["total"]

    with Batch(GenericEnvClient(server.url), 2) as batch:
        played = batch.gather(some_fail, [{"start": number} for number in range(6)])
        assert [type(each.error) for each in played] == [
            type(None),
            KeyError,
            SessionLost,
            ServerError,
            type(None),
            type(None),
        ]
        assert [each.value for each in played] == [1, None, None, None, 5, 6]
        with pytest.raises(KeyError):
            played[1].unwrap()

        def broken() -> Iterator[dict[str, Any]]:
            yield {"start": 1}
            raise OSError("the starts end here")

        with pytest.raises(OSError, match="the starts end here"):
            batch.gather(play, broken())


def test_a_server_with_fewer_places_plays_them_all() -> None:
    with Plain(most=2) as server:
        with Batch(GenericEnvClient(server.url), 6) as batch:
            played = batch.gather(play, [{"start": number} for number in range(12)])
            assert [each.ok for each in played] == [True] * 12
    with Plain(most=0) as server:
        with Batch(GenericEnvClient(server.url), 3) as batch:
            played = batch.gather(play, [{}] * 4)
            assert [each.error.code for each in played] == ["CAPACITY_REACHED"] * 4  # type: ignore[union-attr]


def test_who_stops_iterating_stops_what_is_played(server: Plain) -> None:
    stopped: list[int] = []

    async def long(env: Any, first: Any) -> int:
        number = first.observation["total"]
        try:
            if number:
                await env.step({"number": 1, "hold": True})
        except asyncio.CancelledError:
            stopped.append(number)
            raise
        return number

    with Batch(GenericEnvClient(server.url), 3) as batch:
        iterating = iter(batch.as_ended(long, [{"start": number} for number in range(3)]))
        assert next(iterating).value == 0
        wait_until(lambda: server.held == 2)
        iterating.close()
        assert sorted(stopped) == [1, 2]
        # their sessions begin anew
        assert totals(batch.reset(start=4)) == [4] * 3


def test_6_24_hundreds_of_sessions_on_one_loop() -> None:
    served = Served([create_app(Counter, Add, Total, env_name="counter")])
    try:
        with Batch(Client(served.url, connect_timeout_s=60.0), 300) as batch:
            batch.reset([{"start": number} for number in range(300)])
            results = batch.step([Add(number=1)] * 300)
            assert [result.observation.total for result in results] == list(range(1, 301))
            names = [each.name for each in threading.enumerate()]
            assert len([name for name in names if name.startswith(("ors-client", "ors-rollout"))]) == 1
        wait_until(lambda: served.status()["sessions"] == 0)
    finally:
        served.stop()
