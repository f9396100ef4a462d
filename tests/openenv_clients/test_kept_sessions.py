"""Our clients on our server: a connection that breaks is no lost episode, and nothing runs twice."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
from collections.abc import Iterator
from typing import Any

import pytest

from client.played import Proxy
from ors.client.portal import portal
from ors.errors import SessionLost
from ors.openenv import MCPToolClient, create_app
from ors.openenv.clients import ServerError
from ors.openenv.mcp_types import CallToolAction, CallToolObservation
from served import Served, wait_until

from .counting import Add, Client, Counter, Doubles, Total

COUNTER = {"env": Counter, "action_cls": Add, "observation_cls": Total, "env_name": "counter"}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    server = Served([create_app(**COUNTER)], socket_keep=30.0)
    yield server
    server.stop()


@pytest.fixture
def held() -> Iterator[type[Counter]]:
    Counter.HOLDING.clear()
    Counter.RELEASED.clear()
    yield Counter
    Counter.RELEASED.set()


def port_of(served: Served) -> int:
    return int(served.url.rsplit(":", 1)[1])


def wire(env: Client) -> Any:
    assert env._wire is not None
    return env._wire


def cut(env: Client) -> None:
    """Break the connection as a network does."""

    async def abort() -> None:
        line = wire(env)._line
        # there is none where it was cut just now, and the client is on its way back
        if line is not None and (connection := line._socket._response.connection) is not None:
            connection.transport.abort()

    portal().run(abort())


def test_a_connection_that_breaks_between_two_steps_is_opened_to_the_same_session_unasked(served: Served) -> None:
    with Client(served.url) as env:
        env.reset(start=3)
        session = wire(env)._session_id
        for expected in (4, 5, 6):
            line = wire(env)._line
            cut(env)
            # nobody asks anything meanwhile: a session is kept for a time only
            wait_until(lambda: wire(env)._line is not line and wire(env).connected)
            assert env.step(Add()).observation.total == expected
        assert wire(env)._session_id == session
        assert env.state().step_count == 3
        cut(env)
        assert env.step(Add()).observation.total == 7


def test_a_step_that_is_cut_at_any_byte_runs_once(served: Served) -> None:
    with Proxy(port_of(served)) as proxy, Client(proxy.url) as env:
        env.reset()
        before = proxy.passed
        env.step(Add(name="whole", number=0))
        exchange = proxy.passed - before
        line = wire(env)._line
        before = proxy.passed
        cut(env)
        wait_until(lambda: wire(env)._line is not line and wire(env).connected)
        opening = proxy.passed - before
        assert 100 < exchange < 1_000
        assert 200 < opening < 2_000
        places = [*range(1, opening, 60), *range(opening, opening + exchange + 12, 2)]
        cuts = 0
        for place in places:
            proxy.cut = place
            cut(env)
            result = env.step(Add(name=f"cut-{place}"))
            assert Counter.RAN[f"cut-{place}"] == 1, f"cut after {place} bytes"
            assert result.observation.total == places.index(place) + 1
            # a client that was coming back already has come before there was a cut to meet
            cuts += proxy.cut is None
            proxy.cut = None
        assert cuts > len(places) * 0.8
        assert env.state().step_count == len(places) + 1


def test_a_reset_that_is_cut_begins_one_episode(served: Served) -> None:
    with Proxy(port_of(served)) as proxy, Client(proxy.url) as env:
        env.reset()
        for place in range(500, 900, 50):
            proxy.cut = place
            cut(env)
            assert env.reset(start=place).observation.total == place
            proxy.cut = None
            assert env.state().episode_id == str(place)


def test_a_step_that_runs_while_the_connection_breaks_is_answered_over_the_next(
    served: Served, held: type[Counter]
) -> None:
    async def play() -> None:
        async with Client(served.url) as env:
            await env.reset(start=1)
            step = asyncio.ensure_future(env.step(Add(name="held", hold=True)))
            assert await asyncio.to_thread(held.HOLDING.wait, 30)
            for _ in range(3):
                line = wire(env)._line
                await asyncio.to_thread(cut, env)
                await asyncio.to_thread(wait_until, lambda line=line: wire(env)._line not in (line, None))
            held.RELEASED.set()
            assert (await step).observation.total == 2
            assert held.RAN["held"] == 1

    asyncio.run(play())


def test_a_time_out_and_a_cancelled_request_cost_no_session_and_their_answers_go_to_nobody(
    served: Served, held: type[Counter]
) -> None:
    with Client(served.url, message_timeout_s=0.2) as env:
        env.reset(start=1)
        with pytest.raises(TimeoutError, match=r"no answer to 'step' .* within 0\.2 s"):
            env.step(Add(number=2, hold=True))
        held.RELEASED.set()
        assert env.step(Add(number=4), timeout_s=20.0).observation.total == 7
        held.HOLDING.clear()
        held.RELEASED.clear()

        async def cancel() -> None:
            asked = asyncio.ensure_future(env.step(Add(number=1, hold=True), timeout_s=20.0))
            assert await asyncio.to_thread(held.HOLDING.wait, 30)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            held.RELEASED.set()
            assert (await env.state()).episode_id == "8"

        asyncio.run(cancel())
        assert env.state().step_count == 3


def test_a_step_has_the_time_that_it_is_given_also_on_the_server(served: Served, held: type[Counter]) -> None:
    with Client(served.url, message_timeout_s=None) as env:
        env.reset()
        with pytest.raises(RuntimeError) as late:
            env.step(Add(hold=True), timeout_s=0.2)
        assert isinstance(late.value, (ServerError, SessionLost))
        held.RELEASED.set()
        assert env.reset(start=2).observation.total == 2


def test_a_session_that_the_server_has_ended_is_lost_and_told(served: Served) -> None:
    with Client(served.url) as env:
        env.reset(start=3)
        sid = wire(env)._session_id
        served.on_loop(lambda: end(served, sid))
        with pytest.raises(SessionLost):
            env.step(Add())
        with pytest.raises(SessionLost, match=r"reset\(\) starts a new episode"):
            env.state()
        assert env.reset(start=1).observation.total == 1
        assert wire(env)._session_id != sid


async def end(served: Served, sid: str) -> None:
    from ors.core.ports import Principal

    await served.host.end(sid, Principal(), "operator")


def test_7_7_a_server_that_was_started_anew_has_no_such_session() -> None:
    first = Served([create_app(**COUNTER)])
    with Proxy(port_of(first)) as proxy, Client(proxy.url, connect_timeout_s=5.0) as env:
        env.reset(start=3)
        first.stop()
        second = Served([create_app(**COUNTER)])
        try:
            proxy._behind = port_of(second)
            with pytest.raises(SessionLost, match="the session is lost"):
                env.step(Add())
            assert env.reset(start=4).observation.total == 4
        finally:
            second.stop()


def test_a_server_that_is_gone_is_a_lost_session_after_a_while() -> None:
    server = Served([create_app(**COUNTER)])
    env = Client(server.url, connect_timeout_s=0.3)
    env.reset()
    server.stop()
    with pytest.raises(SessionLost):
        env.step(Add())
    with pytest.raises(ConnectionError, match="Failed to connect to"):
        env.reset()
    env.close()


def test_what_is_too_large_is_told_and_costs_no_session() -> None:
    server = Served([create_app(**COUNTER)], max_message=1 << 20)
    try:
        with Client(server.url, max_message_size_mb=0.5) as env:
            env.reset(start=1)
            with pytest.raises(ServerError, match="larger than the server takes") as large:
                env.step({"number": 1, "name": "x" * (2 << 20)})  # type: ignore[arg-type]
            assert large.value.code == "MESSAGE_TOO_LARGE"
            assert env.step(Add()).observation.total == 2
            with pytest.raises(ServerError, match="larger than max_message_size_mb"):
                env.step(Add(filling=200_000))
            # that step has run
            assert env.state().episode_id == "3"
    finally:
        server.stop()


def test_sessions_end_with_their_clients(served: Served) -> None:
    wait_until(lambda: served.status()["sessions"] == 0)
    env = Client(served.url)
    env.reset()
    other = env.new_session()
    other.reset()
    assert served.status()["sessions"] == 2
    env.close()
    wait_until(lambda: served.status()["sessions"] == 0)
    env.reset()
    cut(env)
    env.close()
    wait_until(lambda: served.status()["sessions"] == 0)
    env.reset()
    del env
    gc.collect()
    wait_until(lambda: served.status()["sessions"] == 0)


def test_one_place_is_enough_for_a_client_that_comes_back() -> None:
    server = Served([create_app(**COUNTER, max_concurrent_envs=1)])
    try:
        with Client(server.url) as env:
            env.reset(start=1)
            for total in (2, 3, 4):
                cut(env)
                assert env.step(Add()).observation.total == total
            with Client(server.url) as late, pytest.raises(ServerError) as full:
                late.reset()
            assert full.value.code == "CAPACITY_REACHED"
            # an episode that is refused is no lost one
            with pytest.raises(ServerError, match="not this time"):
                env.reset(fail=True)
            assert env.reset(start=9).observation.total == 9
    finally:
        server.stop()


def _in_a_child(env: Client, queue: Any) -> None:
    try:
        env.step(Add())
    except SessionLost as exc:
        queue.put(str(exc))
    queue.put(env.reset(start=8).observation.total)
    env.close()


def test_a_forked_child_has_a_session_of_its_own(served: Served) -> None:
    with Client(served.url) as env:
        env.reset(start=4)
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=_in_a_child, args=(env, queue))
        child.start()
        assert "belongs to the parent process" in queue.get(timeout=30)
        assert queue.get(timeout=30) == 8
        child.join(30)
        assert child.exitcode == 0
        assert env.step(Add()).observation.total == 5


def test_6_14_a_tool_is_called_by_a_step_and_paid_for() -> None:
    server = Served([create_app(Doubles, CallToolAction, CallToolObservation, env_name="doubles")])
    try:
        with MCPToolClient(server.url) as env:
            assert env.reset().observation.metadata["ready"] is True
            assert [tool.name for tool in env.list_tools()] == ["double"]
            assert env.has_tool("double")
            before = env.state().step_count
            assert env.call_tool("double", number=4) == 8
            assert env.state().step_count == before + 1
            assert (env.last_result.reward, env.last_result.done) == (0.5, False)
            cut(env)  # type: ignore[arg-type]
            assert env.call_tool("double", number=40) == 80
            assert env.last_result.done is True
            assert env.last_result.observation.result["meta"] == {"reward": 0.5, "done": True}
            with pytest.raises(RuntimeError, match="there is no treble"):
                env.call_tool("treble", number=1)
            assert env.state().step_count == before + 3
    finally:
        server.stop()
    with pytest.raises(ValueError, match="production"):
        MCPToolClient(base_url=server.url, mode="simulation")


def test_the_tasks_of_our_server(served: Served) -> None:
    tasks = Client(served.url).task_api
    assert tasks.list_environments() == ["counter"]
    assert tasks.num_tasks("train") == 30
    assert [task.task_spec["start"] for task in tasks.tasks("train", page=7)] == list(range(30))
