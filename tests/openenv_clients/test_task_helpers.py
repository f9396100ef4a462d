"""`client.task_api`: which tasks there are, asked for over HTTP, and as a lazy sequence."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest

from ors.errors import ProtocolError, RequestRefused
from ors.openenv import EnvClient, GenericEnvClient, MCPToolClient
from ors.openenv.clients.addresses import http_base, websocket_url

from .plain import Plain


@pytest.fixture
def server() -> Iterator[Plain]:
    with Plain() as made:
        yield made


def test_each_question(server: Plain) -> None:
    env = GenericEnvClient(server.url, headers={"Authorization": "Bearer k"})
    tasks = env.task_api
    assert tasks.list_environments() == ["count er"]
    assert tasks.list_splits() == [{"name": "train", "type": "train"}, {"name": "texts", "type": "train"}]
    assert tasks.num_tasks("train") == 250
    assert tasks.get_task("train", 3) == {"seed": 3}
    assert tasks.list_tasks("texts") == ["a", "b"]
    assert tasks.get_task_range("train", 248) == [{"seed": 248}, {"seed": 249}]
    assert tasks.get_task_range("texts", None, 1) == ["a"]
    assert server.asked[-1][2] == {"split": "texts", "stop": 1}
    assert {headers["authorization"] for *_, headers in server.asked} == {"Bearer k"}
    # the name is asked for once, and no session is opened for any of it
    assert [path for _, path, *_ in server.asked].count("/list_environments") == 2
    assert server.sessions == []
    with pytest.raises(RequestRefused, match="Invalid task index") as outside:
        tasks.get_task("train", -1)
    assert outside.value.status == 400
    with pytest.raises(RequestRefused) as unknown:
        tasks.of("other").list_splits()
    assert unknown.value.status == 404


def test_clients_of_the_core_have_no_such_methods_of_their_own() -> None:
    for client in (EnvClient, GenericEnvClient, MCPToolClient):
        for name in ("list_splits", "list_tasks", "num_tasks", "get_task", "get_task_range"):
            assert not hasattr(client, name)


def test_inside_of_a_loop_they_are_awaited_or_touched(server: Plain) -> None:
    async def ask() -> None:
        env = GenericEnvClient(server.url)
        assert await env.task_api.num_tasks("train") == 250
        assert len(range(env.task_api.num_tasks("texts"))) == 2
        assert env.task_api.get_task("train", 1)["seed"] == 1
        assert env.sync().task_api.list_tasks("texts") == ["a", "b"]
        assert len(await env.task_api.tasks("train")) == 250

    asyncio.run(ask())


@pytest.mark.parametrize("ranges", [True, False])
def test_the_tasks_as_a_lazy_sequence(server: Plain, ranges: bool) -> None:
    server.ranges = ranges
    tasks = GenericEnvClient(server.url).task_api.tasks("train", page=20)
    assert len(tasks) == 250
    assert tasks[-1].task_spec == {"seed": 249}
    assert (tasks[7].split, tasks[7].index) == ("train", 7)
    assert [task.task_spec["seed"] for task in tasks] == list(range(250))
    shares = [[task.index for task in tasks.shuffle(seed=3).shard(rank, 4)] for rank in range(4)]
    assert sorted(sum(shares, [])) == list(range(250))
    again = pickle.loads(pickle.dumps(tasks))
    assert again[3].task_spec == {"seed": 3}
    texts = GenericEnvClient(server.url).task_api.tasks("texts")
    with pytest.raises(ProtocolError):
        texts[0]


def test_a_server_that_is_not_there_or_no_openenv(server: Plain) -> None:
    with pytest.raises(ConnectionError, match="Failed to connect to http://127.0.0.1:9/list_environments"):
        GenericEnvClient("http://127.0.0.1:9").task_api.list_splits()


@pytest.mark.parametrize(
    ("given", "base", "socket"),
    [
        ("http://host:8000", "http://host:8000/", "ws://host:8000/ws"),
        ("http://host:8000/", "http://host:8000/", "ws://host:8000/ws"),
        ("host:8000", "http://host:8000/", "ws://host:8000/ws"),
        ("wss://host/ws", "https://host/", "wss://host/ws"),
        ("https://host/spaces/game/", "https://host/spaces/game/", "wss://host/spaces/game/ws"),
        ("ws://host/a/b/ws/", "http://host/a/b/", "ws://host/a/b/ws"),
        (" HTTP://host/x?y=1#z ", "http://host/x/", "ws://host/x/ws"),
    ],
)
def test_where_the_routes_are(given: str, base: str, socket: str) -> None:
    assert (http_base(given), websocket_url(given)) == (base, socket)
    env = GenericEnvClient(given)
    assert env._http_base() == base
    assert urljoin(env._http_base(), "game/splits") == f"{base}game/splits"
    assert env.base_url == given


def test_a_prefix_is_kept_for_sockets_and_routes(server: Plain) -> None:
    with GenericEnvClient(f"{server.url}/spaces/game/") as env:
        assert env.reset(start=2).observation["total"] == 2
        assert env.task_api.num_tasks("train") == 250
        assert server.asked[-1][1] == "/spaces/game/count er/num_tasks"
