"""A session with a server that cannot keep one: what is lost is told, and no answer goes to who did not ask for it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import copy
import gc
import json
import pickle
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ors.errors import SessionLost
from ors.openenv import Action, EnvClient, GenericEnvClient, MCPToolClient, Observation, State, StepResult
from ors.openenv.clients import ServerError, wire

from .plain import Plain
from .processes import wait_until


class Add(Action):
    number: int = 1


class Total(Observation):
    total: int


class Counter(EnvClient[Add, Total, State]):
    """Its types are all that there is to say."""


@pytest.fixture
def server() -> Iterator[Plain]:
    with Plain() as made:
        yield made


def test_6_3_a_session_that_is_lost_is_told_until_it_is_reset(server: Plain) -> None:
    with GenericEnvClient(server.url) as env:
        env.reset(start=3)
        for cut in ("before", "after"):
            with pytest.raises(SessionLost, match=r"the session is lost: .*"):
                env.step({"number": 1, "cut": cut})
            for again in (lambda: env.step({"number": 1}), env.state):
                with pytest.raises(SessionLost, match=r"reset\(\) starts a new episode"):
                    again()
            sessions = len(server.sessions)
            assert env.reset(start=5).observation["total"] == 5
            assert len(server.sessions) == sessions + 1
            assert env.step({"number": 1}).observation["total"] == 6


def test_7_7_a_socket_that_is_closed_while_nobody_asks_is_a_lost_session(server: Plain) -> None:
    with GenericEnvClient(server.url) as env:
        env.reset()
        server.cut()
        wait_until(lambda: server.alive == 0, "the connection was not cut")
        wait_until(lambda: not env._wire.connected, "the client has not noticed")  # type: ignore[union-attr]
        with pytest.raises(SessionLost):
            env.step({})
        # a client that has asked nothing has nothing to lose
        with GenericEnvClient(server.url) as fresh:
            fresh.connect()
            wait_until(lambda: server.alive == 1, "not connected")
            server.cut()
            wait_until(lambda: not fresh._wire.connected, "the client has not noticed")  # type: ignore[union-attr]
            assert fresh.step({"number": 2}).observation["total"] == 2


def test_7_6_an_answer_that_comes_too_late_goes_to_nobody(server: Plain) -> None:
    with GenericEnvClient(server.url, message_timeout_s=0.2) as env:
        env.reset(start=1)
        with pytest.raises(TimeoutError, match=r"no answer to 'step' from ws://.* within 0\.2 s"):
            env.step({"number": 5, "hold": True})
        server.release()
        for _ in range(3):
            with pytest.raises(SessionLost, match=r"there was no answer within 0\.2 s"):
                env.state()
        assert env.reset(start=2).observation["total"] == 2
        assert env.state()["step_count"] == 2
        # a longer time for one step
        assert env.step({"number": 1, "hold": True}, timeout_s=20).observation["total"] == 3


def test_a_request_that_is_cancelled_leaves_no_answer_behind(server: Plain) -> None:
    async def play() -> None:
        async with GenericEnvClient(server.url) as env:
            await env.reset(start=1)
            step = asyncio.ensure_future(env.step({"number": 5, "hold": True}))
            await asyncio.to_thread(server.holding.wait, 30)
            step.cancel()
            with pytest.raises(asyncio.CancelledError):
                await step
            server.release()
            with pytest.raises(SessionLost, match="a request was cancelled"):
                await env.state()
            assert (await env.reset(start=7)).observation["total"] == 7

    asyncio.run(play())


def test_what_a_server_says_unasked_is_nobodys_answer(server: Plain) -> None:
    late = '{"type": "observation", "data": {"observation": {"total": 99}, "reward": 99, "done": true}}'
    with GenericEnvClient(server.url) as env:
        env.reset()
        for unasked in (late, "no JSON", "[]"):
            env.step({"number": 1, "unasked": unasked})
            line = env._wire._line  # type: ignore[union-attr]
            wait_until(lambda: line._unasked, "it was not said")  # type: ignore[union-attr]
            assert env.step({"number": 0}).reward != 99
        assert env.state()["step_count"] == 3
        ends = '{"type": "error", "data": {"message": "it was idle", "code": "SESSION_ERROR"}}'
        env.step({"number": 1, "unasked": ends})
        wait_until(lambda: env._wire._line._unasked, "it was not said")  # type: ignore[union-attr]
        with pytest.raises(SessionLost, match="the session is lost: it was idle"):
            env.step({"number": 1})
        assert env.reset(start=4).observation["total"] == 4


def test_an_answer_that_is_none_is_told(server: Plain) -> None:
    with GenericEnvClient(server.url) as env:
        for say in ("no JSON", "[1]", '"x"'):
            with pytest.raises(RuntimeError, match="which is no message"):
                env.step({"say": say})
        with pytest.raises(ServerError, match=r"Server error: Unknown error \(code: UNKNOWN\)"):
            env.step({"say": '{"type": "error"}'})
        assert env.step({"number": 1}).observation["total"] >= 1
        # JSON as Python writes it
        assert str(env.step({"say": '{"type": "observation", "data": {"reward": NaN}}'}).reward) == "nan"


def test_errors_are_the_servers_words_and_the_session_goes_on(server: Plain) -> None:
    with GenericEnvClient(server.url) as env:
        env.reset(start=1)
        with pytest.raises(RuntimeError, match=r"Server error: only numbers .* \(code: EXECUTION_ERROR\)") as failed:
            env.step({"number": -1})
        again = pickle.loads(pickle.dumps(failed.value))
        assert (again.code, again.message, str(again)) == (
            "EXECUTION_ERROR",
            "only numbers from 0 on are added",
            str(failed.value),
        )
        with pytest.raises(TypeError, match=r"takes an action and timeout_s, not request_id, x"):
            env.step({}, x=1, request_id="a")
        assert env.step({"number": 1}).observation["total"] == 2
        with pytest.raises(SessionLost, match="larger than the server takes"):
            env.step({"filling": "x" * (2 << 20)})


def test_a_server_that_is_full_says_so_and_may_be_asked_again() -> None:
    with Plain(most=1) as server:
        first, second = GenericEnvClient(server.url), GenericEnvClient(server.url)
        first.reset()
        for _ in range(2):
            with pytest.raises(ServerError) as full:
                second.reset()
            assert (full.value.code, full.value.data) == (
                "CAPACITY_REACHED",
                {"active_sessions": 1, "max_sessions": 1},
            )
        second.connect()
        with pytest.raises(ServerError, match="full"):
            second.step({})
        first.close()
        wait_until(lambda: server.alive == 0, "the first session is still there")
        assert second.reset(start=3).observation["total"] == 3
        second.close()


def test_a_server_that_is_not_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=r"Failed to connect to ws://.*/ws: no answer within 0\.2 s"):
            GenericEnvClient(url, connect_timeout_s=0.2).reset()
    with pytest.raises(ConnectionError, match="Failed to connect to"):
        GenericEnvClient(url).connect()
    with pytest.raises(ValueError, match="needs a base_url, or a provider"):
        GenericEnvClient()
    for wrong in ("ftp://host", "http://", "/path"):
        with pytest.raises(ValueError, match="is no address of a server"):
            GenericEnvClient(wrong).connect()


def test_7_10_7_12_plain_code_threads_and_notebooks(server: Plain) -> None:
    shared = GenericEnvClient(server.url)
    assert shared.reset(start=0).observation["total"] == 0

    def in_a_loop_of_its_own(_: int) -> tuple[int, int]:
        async def ask() -> tuple[int, int]:
            # awaited, and as a notebook's cells have it
            awaited = await shared.step({"number": 1})
            touched = shared.step({"number": 1})
            return awaited.observation["total"], touched.observation["total"]

        return asyncio.run(ask())

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        plain = [pool.submit(lambda: shared.step({"number": 1}).observation["total"]) for _ in range(10)]
        looped = list(pool.map(in_a_loop_of_its_own, range(5)))
    totals = [each.result() for each in plain] + [total for pair in looped for total in pair]
    assert sorted(totals) == list(range(1, 21))
    assert shared.state()["step_count"] == 20
    assert len(server.sessions) == 1
    shared.close()


def test_7_9_7_11_a_client_that_connected_in_one_loop_is_used_from_another_and_without_any() -> None:
    with Plain(most=1) as server:

        async def connect() -> GenericEnvClient:
            env = GenericEnvClient(server.url)
            await env.connect()
            await env.reset(start=2)
            return env

        env = asyncio.run(connect())
        assert env.sync().step({"number": 1}).observation["total"] == 3
        assert env.step({"number": 1}).observation["total"] == 4

        async def state() -> Any:
            return await env.state()

        assert asyncio.run(state())["step_count"] == 4
        assert len(server.sessions) == 1
        env.close()
        wait_until(lambda: server.alive == 0, "the session is still there")


def test_6_4_what_is_not_awaited_in_a_notebook_is_asked_all_the_same(
    server: Plain, caplog: pytest.LogCaptureFixture
) -> None:
    async def cells() -> None:
        env = GenericEnvClient(server.url)
        env.reset(start=5)
        assert env.step({"number": 1}).observation["total"] == 6
        env.step({"number": -1})
        gc.collect()
        assert (await env.state())["step_count"] == 6
        pending = env.state()
        assert "on its way" in repr(pending) or "answer to" in repr(pending)
        with pytest.raises(TypeError, match="await it"):
            copy.copy(pending)
        assert pending["step_count"] == 6
        env.close()

    asyncio.run(cells())
    wait_until(lambda: server.alive == 0, "close() was not heard")
    assert "step() failed, and its result was not looked at: Server error: only numbers" in caplog.text


def test_7_14_pings_are_sent_and_no_answer_is_waited_for() -> None:
    with Plain(pongs=False) as server:
        with GenericEnvClient(server.url, websocket_ping_interval_s=0.01, websocket_ping_timeout_s=0.01) as env:
            env.reset(start=1)
            wait_until(lambda: server.pings >= 10, "no pings came")
            assert env.state()["step_count"] == 1
        pings = server.pings
        with GenericEnvClient(server.url, websocket_ping_interval_s=None) as env:
            env.reset(start=2)
            assert env.state()["step_count"] == 2
        assert server.pings == pings


def test_7_15_pings_are_answered_while_the_programs_own_loop_is_blocked() -> None:
    with Plain(pongs=False) as server:

        async def play() -> None:
            async with GenericEnvClient(server.url) as env:
                await env.reset(start=3)
                for answers in range(1, 6):
                    server.ping()
                    # as a model that generates, or a step of an optimizer: nothing else runs on this loop
                    wait_until(lambda answers=answers: server.answers == answers, "a ping was not answered")
                assert (await env.state())["step_count"] == 3

        asyncio.run(play())


def test_7_17_another_session_has_the_same_options(server: Plain) -> None:
    class Mine(MCPToolClient):
        def __init__(self, base_url: str, **kwargs: Any) -> None:
            super().__init__(base_url, **{"max_message_size_mb": 7.0, **kwargs})

    with Mine(server.url, headers={"X-Who": "me"}, message_timeout_s=9.0) as env:
        other = env.new_session()
        assert (type(other), other._options) == (Mine, env._options)
        env.reset()
        assert other.reset(start=3).observation.total == 3
        assert other.state().step_count == 3
        assert env.state().step_count == 0
        assert {session.headers["x-who"] for session in server.sessions} == {"me"}
    # it is closed with its first
    wait_until(lambda: server.alive == 0, "the other session is still there")


def test_7_19_this_machine_is_reached_without_proxies_and_without_touching_the_environment(
    server: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)

    async def many() -> None:
        clients = [GenericEnvClient(server.url) for _ in range(20)]
        await asyncio.gather(*(client.connect() for client in clients))
        results = await asyncio.gather(*(client.reset(start=n) for n, client in enumerate(clients)))
        assert [result.observation["total"] for result in results] == list(range(20))
        await asyncio.gather(*(client.close() for client in clients))

    import os

    before = dict(os.environ)
    asyncio.run(many())
    assert dict(os.environ) == before


def test_6_25_no_compression_on_this_machine(server: Plain) -> None:
    with GenericEnvClient(server.url) as env:
        env.reset()
    assert "sec-websocket-extensions" not in server.sessions[0].headers


def test_many_sessions_need_one_thread(server: Plain) -> None:
    before = threading.active_count()
    clients = [GenericEnvClient(server.url).sync() for _ in range(30)]
    for client in clients:
        client.reset()
    assert threading.active_count() <= before + 1
    for client in clients:
        client.close()


def test_7_41_reward_and_done_are_in_the_result_and_in_the_observation(server: Plain) -> None:
    with Counter(server.url) as env:
        env.reset()
        result = env.step(Add(number=12))
        assert result == StepResult(Total(total=12, reward=1.2, done=True), reward=1.2, done=True)
        assert (result.observation.reward, result.observation.done) == (1.2, True)
        assert env.state() == State(step_count=12)


def test_copies_are_clients_with_sessions_of_their_own(server: Plain) -> None:
    with GenericEnvClient(server.url) as env:
        env.reset(start=5)
        for other in (copy.copy(env), pickle.loads(pickle.dumps(env))):
            with other:
                assert other.reset(start=1).observation["total"] == 1
        assert env.state()["step_count"] == 5
    assert len(server.sessions) == 3
    assert server.url in repr(env)


def test_a_client_that_nobody_has_any_more_leaves_no_session_behind(server: Plain) -> None:
    env = GenericEnvClient(server.url)
    env.reset()
    assert server.alive == 1
    del env
    gc.collect()
    wait_until(lambda: server.alive == 0, "the session is still there")
    # it was ended, not cut off
    assert server.sessions[0].heard[-1] == {"type": "close"}


def test_close_ends_the_session_and_a_client_may_be_used_again(server: Plain) -> None:
    env = GenericEnvClient(server.url)
    env.close()
    env.disconnect()
    env.reset()
    env.disconnect()
    assert server.sessions[0].heard[-1] == {"type": "close"}
    # whoever has ended a session means to begin anew
    assert env.step({"number": 2}).observation["total"] == 2
    env.close()
    env.close()
    assert len(server.sessions) == 2


def test_closing_waits_for_what_was_asked_before_and_not_for_ever(
    server: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def in_order() -> None:
        env = GenericEnvClient(server.url)
        env.reset(start=3)
        step = env.step({"number": 1})
        env.close()
        assert (await step).observation["total"] == 4

    asyncio.run(in_order())
    monkeypatch.setattr(wire, "_LET_END_S", 0.1)
    env = GenericEnvClient(server.url, message_timeout_s=None)
    env.reset()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        hung = pool.submit(env.step, {"hold": True})
        wait_until(lambda: server.held == 1, "the step was not begun")
        behind = pool.submit(env.state)
        env.close()
        for waiting in (hung, behind):
            with pytest.raises(SessionLost, match="the client was closed"):
                waiting.result(30)
    assert env.reset(start=2).observation["total"] == 2
    env.close()


def test_6_15_tools_that_cannot_be_listed_are_an_error(server: Plain) -> None:
    with MCPToolClient(server.url) as env:
        # this server knows nothing of tools: neither by JSON-RPC nor by steps
        with pytest.raises(RuntimeError, match="lists no tools; it said {'metadata'"):
            env.list_tools()


def test_6_34_all_is_asked_over_one_socket(server: Plain) -> None:
    with MCPToolClient(server.url) as env:
        env.reset()
        assert env.call_tool("anything") == {"metadata": {}, "total": 1}
        assert env.state().step_count == 1
        assert (env.last_result.reward, env.last_result.observation.total) == (0.1, 1)
    assert (len(server.sessions), server.asked) == (1, [])


def test_observations_of_environments_with_tools_keep_their_fields(server: Plain) -> None:
    with MCPToolClient(server.url) as env:
        for seen in ({"tools": ["hammer"], "board": 1}, {"tool_name": "saw", "board": 1}):
            said = {"observation": {"metadata": {"m": 1}, **seen}, "reward": 1.0, "done": True}
            result = env.step({"say": json.dumps({"type": "observation", "data": said})})
            assert {name: getattr(result.observation, name) for name in seen} == seen
            assert (result.observation.metadata, result.observation.reward, result.done) == ({"m": 1}, 1.0, True)
