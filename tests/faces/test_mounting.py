"""`Server(...).app` as existing code treats it: a FastAPI application to extend, mount, serve and test in memory."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import fastapi
import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.websockets import WebSocketDisconnect

from ors import Server
from served import Served, wait_until

from .probes import Other, Probe
from .wire import Episode, Notes, events_of, failure_of, result_of

with warnings.catch_warnings():
    # newer ones prefer a package that not everybody has
    warnings.simplefilter("ignore", DeprecationWarning)
    warnings.simplefilter("ignore", UserWarning)
    from starlette.testclient import TestClient


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


@pytest.fixture
def app() -> Iterator[Any]:
    server = Server([Probe, Other])
    yield server.app
    asyncio.run(server.application.stop())


def play(client: Any, notes: Notes, prefix: str = "") -> None:
    """An episode with a stream, a prompt and an end."""
    headers = {"X-Session-ID": client.post(f"{prefix}/create_session").json()["sid"]}
    created = client.post(f"{prefix}/create", json={"task_spec": notes.spec()}, headers=headers)
    assert created.status_code == 200, created.text
    assert client.get(f"{prefix}/prompt", headers=headers).json()[0]["text"] == "Do something."
    assert client.get(f"{prefix}/nobody/prompt", headers=headers).status_code == 404
    called = client.post(f"{prefix}/probe/call", json={"name": "echo", "input": {"text": "x"}}, headers=headers)
    assert result_of(called)["output"]["blocks"][0]["text"] == "x"
    assert client.post(f"{prefix}/delete", headers=headers).status_code == 200
    assert notes.words[-1] == "gone"


def test_it_is_a_fastapi_application(app: Any) -> None:
    assert isinstance(app, fastapi.FastAPI)


def test_in_memory_without_lifespan_events(app: Any, notes: Notes) -> None:
    client = TestClient(app)
    for _ in range(2):
        play(client, notes)
    assert failure_of(client.get("/nothing")) == (404, "not_found")


def test_in_memory_with_lifespan_events(app: Any, notes: Notes) -> None:
    for _ in range(2):  # and again: what was stopped can be started
        with TestClient(app) as client:
            play(client, notes)
            client.post("/create", json={"task_spec": notes.spec()}, headers={"X-Session-ID": "left open"})
            client.get("/prompt", headers={"X-Session-ID": "left open"})
        assert notes.words[-1] == "gone"


def test_in_memory_from_an_event_loop(app: Any, notes: Notes) -> None:
    async def ask() -> None:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            headers = {"X-Session-ID": "in memory"}
            await client.post("/create", json={"task_spec": notes.spec()}, headers=headers)
            calls = [client.post("/call", json={"name": "overlap", "input": {"gate": "g"}}, headers=headers)] * 1
            asking = asyncio.gather(*calls)
            while notes.count("waits g") < 1:
                await asyncio.sleep(0.005)
            notes.open("g")
            (answer,) = await asking
            assert result_of(answer)["ok"] is True

    asyncio.run(ask())

    async def ask_later() -> None:
        """From another event loop: the session is still there."""
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            assert (await client.post("/delete", headers={"X-Session-ID": "in memory"})).status_code == 200
            assert notes.words[-1] == "gone"

    asyncio.run(ask_later())


def test_routes_may_be_added(app: Any) -> None:
    @app.get("/hello")
    def hello(name: str = "you") -> dict[str, str]:
        return {"hello": name}

    @app.post("/probe/extra")
    async def extra(body: dict[str, int]) -> int:
        return sum(body.values())

    app.mount("/files", Starlette(routes=[Route("/a", lambda request: PlainTextResponse("a file"))]))
    client = TestClient(app)
    assert client.get("/hello?name=Ada").json() == {"hello": "Ada"}
    assert client.post("/probe/extra", json={"a": 1, "b": 2}).json() == 3
    assert client.get("/files/a").text == "a file"
    assert client.get("/tools").status_code == 200
    assert client.get("/hello/nobody").status_code == 404
    described = app.openapi()
    assert {"/hello", "/probe/extra", "/call"} <= set(described["paths"])
    # everything that is referred to is there
    assert "HTTPValidationError" in described["components"]["schemas"]


def test_what_nobody_knows_is_answered_in_one_shape() -> None:
    app = Server([Probe], api_keys=["key"]).app

    @app.get("/mine")
    def mine() -> str:
        return "open"

    client = TestClient(app)
    assert failure_of(client.get("/nothing")) == (401, "unauthorized")
    assert failure_of(client.get("/nothing", headers={"X-API-Key": "key"})) == (404, "not_found")
    assert client.get("/mine").json() == "open"  # an added route is its author's to guard


def test_middleware_wraps_the_servers_own_routes(app: Any, notes: Notes) -> None:
    seen: list[str] = []

    @app.middleware("http")
    async def note(request: fastapi.Request, call_next: Any) -> Any:
        seen.append(request.url.path)
        answer = await call_next(request)
        answer.headers["X-Seen"] = "yes"
        return answer

    app.add_middleware(GZipMiddleware, minimum_size=10)
    client = TestClient(app)
    play(client, notes)
    assert seen == ["/create_session", "/create", "/prompt", "/nobody/prompt", "/probe/call", "/delete"]
    assert client.get("/tools").headers["x-seen"] == "yes"
    assert client.get("/nothing").headers["x-seen"] == "yes"


def test_middleware_may_refuse(app: Any, notes: Notes) -> None:
    @app.middleware("http")
    async def refuse(request: fastapi.Request, call_next: Any) -> Any:
        if request.url.path == "/create":
            return PlainTextResponse("no", 418)
        return await call_next(request)

    client = TestClient(app)
    answer = client.post("/create", json={"task_spec": notes.spec()}, headers={"X-Session-ID": "x"})
    assert answer.status_code == 418
    assert notes.words == []


def test_cross_origin_middleware_answers_preflights() -> None:
    app = Server([Probe], allowed_origins=["https://trainer.example"]).app
    app.add_middleware(CORSMiddleware, allow_origins=["https://trainer.example"], allow_methods=["*"])
    headers = {"Origin": "https://trainer.example", "Access-Control-Request-Method": "POST"}
    client = TestClient(app)
    assert client.options("/call", headers=headers).status_code == 200
    answer = client.get("/tools", headers={"Origin": "https://trainer.example"})
    assert answer.headers["access-control-allow-origin"] == "https://trainer.example"


@pytest.mark.parametrize("parent", [Starlette, fastapi.FastAPI])
def test_mounted_under_a_prefix(app: Any, notes: Notes, parent: Any) -> None:
    whole = parent(routes=[Route("/own", lambda request: PlainTextResponse("mine")), Mount("/envs", app=app)])
    with TestClient(whole) as client:
        play(client, notes, "/envs")
        assert client.get("/own").text == "mine"
        assert client.get("/envs/docs").status_code == 200
        assert client.get("/envs/list_environments").json() == ["probe", "other"]
        assert failure_of(client.get("/envs/nobody/tools")) == (404, "unknown_environment")
        assert failure_of(client.get("/envs/nothing")) == (404, "not_found")
        assert client.get("/tools").status_code == 404


def test_two_servers_in_one_application(notes: Notes) -> None:
    whole = Starlette(routes=[Mount("/a", app=Server([Probe]).app), Mount("/b", app=Server([Other]).app)])
    client = TestClient(whole)
    play(client, notes, "/a")
    headers = {"X-Session-ID": "shared name"}
    assert client.post("/b/create", json={"task_spec": {}}, headers=headers).status_code == 200
    assert failure_of(client.get("/a/prompt", headers=headers)) == (404, "unknown_session")
    assert client.get("/b/list_environments").json() == ["other"]


def test_behind_a_proxy_that_keeps_a_prefix(notes: Notes) -> None:
    """`uvicorn --root-path`: the path arrives with the prefix or, where the proxy strips it, without."""
    app = Server([Probe, Other]).app
    for client in (TestClient(app, root_path="/envs"), TestClient(app)):
        assert client.get("/tools").status_code == 200
    assert TestClient(app, root_path="/envs").get("/envs/tools").status_code == 200


def test_with_uvicorn_alone(notes: Notes) -> None:
    served = Served([Probe, Other], through_app=True)
    try:
        episode = Episode(served.client, notes.spec()).opened()
        with episode.begin("wait", {"gate": "g"}) as stream:
            pieces = stream.iter_bytes()
            assert next(pieces).startswith(b"event: task_id")
            notes.open("g")
            assert events_of(b"".join(pieces))[-1].name == "end"
    finally:
        served.stop()
    assert notes.words[-1] == "gone"


def test_a_stream_passes_middleware_as_it_comes(notes: Notes) -> None:
    served = Served([Probe], through_app=True)
    try:
        app = served.server.app

        @app.get("/added-before-the-first-request")
        def added() -> str:
            return "here"

        episode = Episode(served.client, notes.spec()).opened()
        assert served.client.get("/added-before-the-first-request").json() == "here"
        with episode.begin("wait", {"gate": "g"}) as stream:
            assert next(stream.iter_bytes()).startswith(b"event: task_id")
            notes.wait_for("waits g")
        notes.open("g")
        wait_until(lambda: served.status()["running"] == 0)
    finally:
        served.stop()


def test_added_parts_have_their_own_lifespan(notes: Notes) -> None:
    """They start after the server and stop before it: what they use of it is there."""
    order: list[str] = []
    server = Server([Probe])

    @asynccontextmanager
    async def lifespan(app: Any) -> Any:
        order.append("up" if server.application.host is not None else "up too early")
        yield {"shared": 7}
        order.append("down" if server.application.host is not None else "down too late")

    server.app.router.lifespan_context = lifespan

    @server.app.get("/shared")
    def shared(request: fastapi.Request) -> int:
        return int(request.state.shared)

    with TestClient(server.app) as client:
        assert client.get("/shared").json() == 7
        client.post("/create", json={"task_spec": notes.spec()}, headers={"X-Session-ID": "x"})
        client.get("/prompt", headers={"X-Session-ID": "x"})
    assert order == ["up", "down"]
    assert notes.words[-1] == "gone"
    assert server.application.host is None


def test_web_sockets_are_refused_and_may_be_added(app: Any) -> None:
    client = TestClient(app)
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/chat"):
        pass

    @app.websocket("/chat")
    async def ws(socket: fastapi.WebSocket) -> None:
        await socket.accept()
        await socket.send_text("hello")
        await socket.close()

    with client.websocket_connect("/chat") as socket:
        assert socket.receive_text() == "hello"


def test_nothing_is_made_before_it_is_needed() -> None:
    """Importing an application starts no thread."""
    before = threading.active_count()
    app = Server([Probe]).app
    assert app.openapi()["info"]["title"] == "ORS Kit"
    assert threading.active_count() == before


PROGRAM = """
import asyncio
import httpx
import sys
from faces.probes import Probe
from ors import Server

async def play():
    transport = httpx.ASGITransport(app=Server([Probe], host_process=sys.argv[2]).app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        headers = {"X-Session-ID": "x"}
        created = await client.post("/create", json={"task_spec": {"folder": sys.argv[1]}}, headers=headers)
        assert created.status_code == 200
        assert (await client.get("/prompt", headers=headers)).status_code == 200

if __name__ == "__main__":
    asyncio.run(play())
"""


@pytest.mark.parametrize("host", ["local", "spawned"])
def test_a_program_that_ends_tears_down_what_nobody_stopped(notes: Notes, tmp_path: Path, host: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run = subprocess.run(
        [sys.executable, str(program), str(notes.folder), host],
        env={"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stderr) == (0, "")
    notes.wait_for("gone")
