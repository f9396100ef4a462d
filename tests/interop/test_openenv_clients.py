"""Our OpenEnv clients on the server of the `openenv` package, unchanged, from its own virtual environment."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ors.client.portal import portal
from ors.errors import RequestRefused, SessionLost
from ors.openenv import Action, EnvClient, GenericAction, GenericEnvClient, MCPToolClient, Observation, State
from ors.openenv.clients.wire import ServerError
from ors.openenv.mcp_types import CallToolAction, ListToolsAction
from ors.openenv.providers.base import free_port, wait_until_healthy

from .peers import clean_environ, peer_python

SERVER = Path(__file__).with_name("openenv_server.py")


class Add(Action):
    number: int
    wait_s: float = 0.0
    reply: int = 0


class Total(Observation):
    total: int
    filling: str = ""


class Sums(State):
    total: int = 0


class Counter(EnvClient[Add, Total, Sums]):
    """Its types are all that there is to say."""


class ByHand(EnvClient[Any, Any, Any]):
    """As the clients of the hub are written."""

    def _step_payload(self, action: Any) -> dict[str, Any]:
        return {"number": action}

    def _parse_result(self, payload: dict[str, Any]) -> Any:
        return (payload["observation"]["total"], payload["reward"], payload["done"])

    def _parse_state(self, payload: dict[str, Any]) -> Any:
        return payload["total"]


@contextlib.contextmanager
def serving(which: str, folder: Path) -> Iterator[str]:
    port = free_port()
    with (folder / f"{which}.log").open("wb") as log:
        command = [str(peer_python("openenv")), str(SERVER), str(port), which]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=clean_environ())
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_healthy(url, 90, alive=lambda: process.poll() is None)
            yield url
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving("counter", tmp_path_factory.mktemp("openenv")) as address:
        yield address


@pytest.fixture(scope="module")
def tools_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving("tools", tmp_path_factory.mktemp("openenv")) as address:
        yield address


def test_plain_code_gets_results(url: str) -> None:
    with Counter(base_url=url) as env:
        first = env.reset(start=3)
        assert (first.observation, first.reward, first.done) == (Total(total=3), None, False)
        result = env.step(Add(number=4))
        assert result.observation == Total(total=7, reward=0.7)
        assert (result.reward, result.done) == (0.7, False)
        assert env.step(Add(number=5)).done
        state = env.state()
        assert isinstance(state, Sums)
        assert (state.total, state.step_count) == (12, 2)


def test_asynchronous_code_awaits_them(url: str) -> None:
    async def play() -> None:
        async with Counter(base_url=url.replace("http", "ws") + "/ws") as env:
            assert (await env.reset(start=1)).observation.total == 1
            assert (await env.step(Add(number=4))).reward == 0.5
            assert (await env.state()).total == 5

    asyncio.run(play())


def test_inside_a_loop_nothing_is_lost_that_is_not_awaited(url: str) -> None:
    async def notebook() -> None:
        env = Counter(base_url=url)
        env.reset(start=2)
        assert env.step(Add(number=1)).observation.total == 3
        env.step(Add(number=1))
        assert (await env.state()).total == 4
        with pytest.raises(AttributeError):
            env.state().nothing  # noqa: B018
        with env.sync() as sync:
            assert sync.state().total == 4
            assert sync.reset().observation.total == 0

    asyncio.run(notebook())


def test_the_synchronous_front(url: str) -> None:
    with Counter(base_url=url).sync() as env:
        assert env.reset(start=1).observation.total == 1
        assert env.step(Add(number=2)).observation.total == 3
        assert env.state().total == 3
        other = env.new_session()
        assert other.reset(start=9).observation.total == 9
        assert env.state().total == 3
        assert env.base_url == url


def test_clients_written_by_hand_and_without_types(url: str) -> None:
    with ByHand(url) as by_hand:
        assert by_hand.reset() == (0, None, False)
        assert by_hand.step(3) == (3, 0.3, False)
        assert by_hand.state() == 3
    with GenericEnvClient(url) as generic:
        assert generic.reset(start=1).observation == {"total": 1, "filling": "", "metadata": {}}
        assert generic.step(GenericAction(number=2)).observation["total"] == 3
        assert generic.step(Add(number=1)).observation["total"] == 4
        assert generic.state()["total"] == 4
    with pytest.raises(TypeError, match="does not say its types"):
        EnvClient(url)


def test_errors_are_the_servers_words(url: str) -> None:
    with Counter(base_url=url) as env:
        env.reset()
        with pytest.raises(
            RuntimeError, match=r"Server error: only numbers from 0 on are added \(code: EXECUTION_ERROR\)"
        ):
            env.step(Add(number=-1))
        with pytest.raises(ServerError) as invalid:
            env.step({"nothing": 1})
        assert invalid.value.code == "VALIDATION_ERROR"
        assert invalid.value.data["errors"]
        assert env.step(Add(number=1)).observation.total == 1
    with pytest.raises(ConnectionError, match=r"Failed to connect to ws://127\.0\.0\.1:9/ws"):
        Counter(base_url="http://127.0.0.1:9").reset()


def test_a_full_server_says_so(url: str) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(16):
            stack.enter_context(Counter(base_url=url)).reset()
        late = stack.enter_context(Counter(base_url=url))
        with pytest.raises(ServerError) as full:
            late.reset()
        assert full.value.code == "CAPACITY_REACHED"
        assert full.value.data == {"active_sessions": 16, "max_sessions": 16}


def test_large_messages_and_every_plane(url: str) -> None:
    with Counter(base_url=url) as env:
        env.reset()
        assert env.step(Add(number=1, reply=2_000_000)).observation.filling == "é🙂" * 2_000_000
    with Counter(base_url=url, max_message_size_mb=1) as small:
        small.reset()
        with pytest.raises(SessionLost):
            small.step(Add(number=1, reply=1_000_000))


def test_a_late_answer_goes_to_nobody(url: str) -> None:
    with Counter(base_url=url, message_timeout_s=0.3) as env:
        env.reset(start=5)
        with pytest.raises(TimeoutError, match=r"no answer to 'step' .* within 0\.3 s"):
            env.step(Add(number=1, wait_s=1.0))
        with pytest.raises(SessionLost, match=r"reset\(\) starts a new episode"):
            env.step(Add(number=1))
        with pytest.raises(SessionLost):
            env.state()
        assert env.reset(start=2).observation.total == 2
        assert env.step(Add(number=1, wait_s=0.5), timeout_s=5).observation.total == 3


def test_a_dropped_connection_is_never_a_fresh_environment(url: str) -> None:
    env = Counter(base_url=url)
    env.reset(start=5)

    async def cut() -> None:
        assert env._wire is not None
        assert env._wire._line is not None
        env._wire._line._socket._response.connection.transport.abort()  # type: ignore[union-attr]

    portal().run(cut())
    with pytest.raises(SessionLost):
        env.step(Add(number=1))
    with pytest.raises(SessionLost):
        env.step(Add(number=1))
    assert env.reset(start=1).observation.total == 1
    env.close()


def test_a_cancelled_request_leaves_no_answer_behind(url: str) -> None:
    async def play() -> None:
        async with Counter(base_url=url) as env:
            await env.reset()
            asked = asyncio.ensure_future(env.step(Add(number=1, wait_s=0.5)))
            await asyncio.sleep(0.1)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            with pytest.raises(SessionLost):
                await env.state()
            assert (await env.reset(start=7)).observation.total == 7

    asyncio.run(play())


def test_many_threads_use_clients_of_their_own_and_one_together(url: str) -> None:
    def play(start: int) -> int:
        with Counter(base_url=url).sync() as env:
            env.reset(start=start)
            return env.step(Add(number=1)).observation.total

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(play, range(3))) == [1, 2, 3]
    with Counter(base_url=url) as shared, concurrent.futures.ThreadPoolExecutor(8) as pool:
        shared.reset()
        totals = list(pool.map(lambda _: shared.step(Add(number=1)).observation.total, range(30)))
        assert sorted(totals) == list(range(1, 31))


def _in_a_child(env: Any, url: str, queue: Any) -> None:
    try:
        env.step(Add(number=1))
        queue.put("stepped")
    except SessionLost as exc:
        queue.put(str(exc))
    queue.put(env.reset(start=8).observation.total)
    env.close()


def test_a_forked_child_has_a_session_of_its_own(url: str) -> None:
    with Counter(base_url=url) as env:
        env.reset(start=4)
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=_in_a_child, args=(env, url, queue))
        child.start()
        assert "belongs to the parent process" in queue.get(timeout=30)
        assert queue.get(timeout=30) == 8
        child.join(30)
        assert child.exitcode == 0
        assert env.step(Add(number=1)).observation.total == 5


def test_the_task_api(url: str) -> None:
    env = Counter(base_url=url)
    assert env.task_api.list_environments() == ["counter"]
    assert env.task_api.list_splits() == [{"name": "train", "type": "train"}, {"name": "holdout", "type": "validation"}]
    assert env.task_api.num_tasks("train") == 3
    assert env.task_api.get_task("train", 2) == {"start": 2}
    assert env.task_api.get_task_range("train", 1) == [{"start": 1}, {"start": 2}]
    with pytest.raises(RequestRefused) as outside:
        env.task_api.get_task("train", 3)
    assert outside.value.status == 400
    with pytest.raises(RequestRefused) as missing:
        env.task_api.list_tasks("train")
    assert missing.value.status == 501
    assert env._http_base() == f"{url}/"


def test_tools_by_name(tools_url: str) -> None:
    with MCPToolClient(base_url=tools_url) as env:
        assert [tool.name for tool in env.list_tools()] == ["double", "fail"]
        assert env.get_tool("double").input_schema["properties"]["number"]["type"] == "integer"
        assert (env.has_tool("double"), env.has_tool("treble")) == (True, False)
        assert env.call_tool("double", number=21) == 42
        for name, arguments in (("fail", {}), ("treble", {}), ("double", {"number": "x"})):
            with pytest.raises(RuntimeError):
                env.call_tool(name, **arguments)
        assert env.reset().observation.metadata["ready"] is True
        result = env.step(CallToolAction(tool_name="double", arguments={"number": 4}))
        assert result.observation.tool_name == "double"
        assert [tool.name for tool in env.step(ListToolsAction()).observation.tools] == ["double", "fail"]
        assert env.state().episode_id == "one"
    with pytest.raises(ValueError, match="production"):
        MCPToolClient(base_url=tools_url, mode="simulation")


def test_tools_of_an_environment_without_any_are_an_error_and_not_an_empty_list(url: str) -> None:
    with MCPToolClient(base_url=url) as env, pytest.raises(RuntimeError, match="MCP"):
        env.list_tools()


def test_nothing_is_left_to_warn_of(url: str) -> None:
    code = (
        "from ors.openenv import GenericEnvClient\n"
        f"env = GenericEnvClient({url!r})\n"
        "print(env.reset(start=2).observation['total'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("2\n", "")
    gc.collect()
