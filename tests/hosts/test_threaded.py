"""A host on an event loop of its own: requests come from any loop, and sessions outlive all of them.

That it keeps the port is tested in test_port.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from ors import Server
from ors.core.ports import Document, Opened, TaskRef
from ors.hosts.threaded import ThreadedHost
from ors.tasks import task_key
from served import until

from .conftest import Player, make_host
from .environments import Workshop


@pytest.fixture
def host() -> Any:
    made = ThreadedHost(lambda: make_host("local"))
    yield made
    asyncio.run(made.close())


def text(outcome: Any) -> str:
    return str(json.loads(outcome.body)["blocks"][0]["text"])


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "ors-host"]


def test_a_session_outlives_the_loops_that_use_it(host: Any) -> None:
    player = Player(host, "one")
    assert asyncio.run(player.open(ref=TaskRef("train", 1))) == Opened(
        "one", "workshop", task_key({"index": 1, "big": 10**4000 + 1})
    )

    async def add() -> str:
        return text(await player.call("add", number=1))

    assert [asyncio.run(add()) for _ in range(3)] == ["1", "2", "3"]


def test_loops_in_several_threads_at_once(host: Any) -> None:
    async def play(sid: str) -> list[str]:
        player = Player(host, sid)
        await player.open()
        return [text(outcome) for outcome in await asyncio.gather(*(player.call("add", number=1) for _ in range(20)))]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda number: asyncio.run(play(f"s{number}")), range(16)))
    assert results == [[str(number + 1) for number in range(20)]] * 16


def test_a_loop_that_ends_leaves_its_calls_running(host: Any, tmp_path: Path) -> None:
    player, go = Player(host, "one"), tmp_path / "go"
    arguments = {"begun": str(tmp_path / "begun"), "go": str(go)}

    async def begin() -> None:
        await player.open()
        asyncio.ensure_future(player.call("hold", call_id="c", mode="run_or_attach", **arguments))
        await until((tmp_path / "begun").exists)

    asyncio.run(begin())  # cancels what is left
    go.touch()

    async def fetch() -> str:
        return text(await player.call("hold", call_id="c", mode="run_or_attach", **arguments))

    assert asyncio.run(fetch()) == "held 1"


def test_closing_ends_the_thread_and_tears_down(tmp_path: Path) -> None:
    before = len(threads())
    host = ThreadedHost(lambda: make_host("local"))
    assert len(threads()) == before + 1
    player = Player(host, "one")

    async def play() -> None:
        await player.open(task={"torn_down": str(tmp_path / "torn_down")})
        assert isinstance(await player.ask("prompt"), Document)
        await host.close()

    asyncio.run(play())
    assert (tmp_path / "torn_down").exists()
    assert len(threads()) == before


def test_a_host_that_cannot_be_made_leaves_no_thread() -> None:
    before = len(threads())

    async def make() -> Any:
        raise RuntimeError("no host today")

    with pytest.raises(RuntimeError, match="no host today"):
        ThreadedHost(make)
    assert len(threads()) == before


@pytest.mark.parametrize("host_process", ["local", "spawned"])
def test_an_application_that_nobody_starts(host_process: Any) -> None:
    """A test in memory sends no lifespan events, and may use a new event loop for every request."""
    server = Server([Workshop], host_process=host_process)

    async def ask(method: str, path: str, **rest: Any) -> httpx.Response:
        transport = httpx.ASGITransport(app=server.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path, headers={"X-Session-ID": "s"}, **rest)

    created = asyncio.run(ask("POST", "/create", json={"split": "train", "index": 2}))
    assert created.json() == {"sid": "s"}
    assert asyncio.run(ask("GET", "/prompt")).json()[0]["text"] == "task 2"
    called = asyncio.run(ask("POST", "/call", json={"name": "pid", "input": {}})).text
    pid = int(json.loads(called.partition("event: end\r\ndata: ")[2])["output"]["blocks"][0]["text"])
    assert (pid == os.getpid()) == (host_process == "local")
    assert asyncio.run(ask("GET", "/ready")).json()["sessions"] == 1
    asyncio.run(server.application.stop())
