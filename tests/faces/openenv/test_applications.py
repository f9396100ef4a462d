"""`create_app` and its kin, as the environments of the hub use them."""

from __future__ import annotations

import asyncio
import functools
import inspect
import warnings
from typing import Any

import fastapi
import pytest
from starlette.middleware.base import BaseHTTPMiddleware

from ors.errors import SettingsError
from ors.openenv import Action, ConcurrencyConfig, ConcurrencyConfigurationError, Observation
from ors.openenv.server import HTTPEnvServer, create_app, create_fastapi_app
from served import Served, wait_until

from .games import LIVES, Adder, Alone, Bare, Broken, Move, Seen
from .talking import Socket

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient


def test_the_parameters_are_openenvs() -> None:
    """Some environments look at them before they call it."""
    assert list(inspect.signature(create_app).parameters) == [
        *("env", "action_cls", "observation_cls", "env_name", "max_concurrent_envs", "concurrency_config"),
        *("gradio_builder", "custom_tab_name", "custom_tab_primary", "show_default_tab", "title_override"),
        *("state_cls", "mode", "reset_observation_cls"),
    ]
    assert list(inspect.signature(create_fastapi_app).parameters) == [
        *("env", "action_cls", "observation_cls", "max_concurrent_envs", "concurrency_config", "env_name"),
        *("state_cls", "mode", "reset_observation_cls"),
    ]


def make_adder() -> Adder:
    return Adder()


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (Adder, "Adder"),
        (make_adder, "make_adder"),
        (functools.partial(make_adder), "make_adder"),
        (functools.partial(Adder), "Adder"),
    ],
)
def test_whatever_makes_an_environment_may_be_given(make: Any, name: str) -> None:
    app = create_app(make, Move, Seen)
    with TestClient(app) as client:
        assert client.get("/list_environments").json() == [name]
        with client.websocket_connect("/ws") as socket:
            socket.send_json({"type": "step", "data": {"number": 2}})
            assert socket.receive_json()["data"]["observation"]["total"] == 2
    assert isinstance(app, fastapi.FastAPI) and app.title == "OpenEnv Environment HTTP API"


def test_arguments_by_place() -> None:
    app = create_app(Bare, Action, Observation, "bare_env", 3)
    with TestClient(app) as client:
        assert client.get("/list_environments").json() == ["bare_env"]
        assert client.post("/bare_env/reset").json()["metadata"] == {"hello": "there"}
    assert app.state.openenv_server.max_concurrent_envs == 3


def test_names_that_are_routes_too_are_no_trouble() -> None:
    with TestClient(create_app(Adder, Move, Seen, "tools")) as client:
        assert client.get("/tools/schema").status_code == 200
        assert client.get("/tools").json()["tools"][0]["name"] == "step"
        assert client.get("/tools/tools").json()["tools"][0]["name"] == "step"
        assert client.post("/tools/reset").status_code == 200
    with pytest.raises(SettingsError, match="cannot be named 'v1'.*env_name"):
        create_app(Adder, Move, Seen, "v1")


def test_an_instance_is_refused_in_words_that_help() -> None:
    with pytest.raises(TypeError, match="pass the class Adder"):
        create_app(Adder(), Move, Seen)  # type: ignore[arg-type]


def test_a_mixed_up_capacity_is_refused() -> None:
    with pytest.raises(ValueError, match="not both"):
        create_app(Adder, Move, Seen, None, 3, ConcurrencyConfig(max_concurrent_envs=3))
    with pytest.raises(ValueError, match="at least 1"):
        create_app(Adder, Move, Seen, None, 0)
    with pytest.raises(ConcurrencyConfigurationError):
        create_app(lambda: Alone(), Move, Seen, max_concurrent_envs=4)
    assert create_app(Alone, Move, Seen, max_concurrent_envs=1).state.openenv_server.max_concurrent_envs == 1


def test_routes_and_middleware_may_be_added() -> None:
    app = create_app(Adder, Move, Seen)
    seen: list[str] = []

    @app.get("/config")
    def config() -> dict[str, str]:
        return {"mode": "test"}

    @app.post("/foo/task")
    def task() -> dict[str, str]:
        return {"mine": "yes"}

    async def watch(request: Any, following: Any) -> Any:
        seen.append(request.url.path)
        answer = await following(request)
        answer.headers["X-Seen"] = "1"
        return answer

    app.add_middleware(BaseHTTPMiddleware, dispatch=watch)
    with TestClient(app) as client:
        assert client.get("/config").json() == {"mode": "test"}
        assert client.post("/reset", json={}).headers["X-Seen"] == "1"
        # the Task API is for any name, as in OpenEnv
        assert client.post("/foo/task", json={}).status_code == 404
        assert "/config" in client.get("/openapi.json").json()["paths"]
    assert seen[:2] == ["/config", "/reset"]
    assert {"/reset", "/step", "/ws", "/config"} <= {route.path for route in app.routes}  # type: ignore[attr-defined]


def test_routes_may_be_taken_away_by_whoever_walks_them() -> None:
    """Some environments edit the list, for example to put a page of their own at the root."""
    app = create_app(Adder, Move, Seen)
    app.router.routes[:] = [route for route in app.router.routes if getattr(route, "path", "") != "/"]
    with TestClient(app) as client:
        assert client.post("/reset").status_code == 200


def test_in_memory_without_lifespan_events() -> None:
    app = create_app(Adder, Move, Seen)
    client = TestClient(app)
    sid = client.post("/reset", json={"seed": 2}).headers["X-Session-ID"]
    assert client.get("/state", headers={"X-Session-ID": sid}).json()["seed"] == 2
    with client.websocket_connect("/ws") as socket:
        socket.send_json({"type": "reset"})
        assert socket.receive_json()["type"] == "observation"
        socket.send_json({"type": "close"})
        assert socket.receive()["code"] == 1000
    asyncio.run(app.application.stop())


def test_the_server_class_adds_its_routes_to_an_application() -> None:
    closed = LIVES["closed"]
    server = HTTPEnvServer(Adder, Move, Seen, max_concurrent_envs=2, env_name="adding")
    app = fastapi.FastAPI()

    @app.get("/own")
    def own() -> str:
        return "mine"

    server.register_routes(app)
    assert server.active_sessions == 0 and server.max_concurrent_envs == 2
    with TestClient(app) as client:
        assert client.get("/own").json() == "mine"
        assert client.get("/health").json() == {"status": "healthy"}
        with client.websocket_connect("/ws") as socket:
            socket.send_json({"type": "reset"})
            socket.receive_json()
            status = server.get_capacity_status()
            assert (status.active_sessions, status.max_sessions, status.available_slots) == (1, 2, 1)
            sid = client.post("/reset").headers["X-Session-ID"]
            client.post("/step", json={"action": {}}, headers={"X-Session-ID": sid})
            info = server.get_session_info(sid)
            assert info is not None
            assert (info.session_id, info.step_count, info.environment_type) == (sid, 1, "adding")
            assert info.created_at <= info.last_activity_at
            assert server.get_capacity_status().is_at_capacity
            assert server.get_session_info("nobody") is None
    assert LIVES["closed"] == closed + 2 and server.active_sessions == 0


def test_the_server_class_knows_modes() -> None:
    server = HTTPEnvServer(Adder, Move, Seen)
    with pytest.raises(ValueError, match="Invalid mode"):
        server.register_routes(fastapi.FastAPI(), "training")
    app = fastapi.FastAPI()
    server.register_routes(app, mode="PRODUCTION")
    with TestClient(app) as client:
        assert client.post("/reset").status_code == 404
        assert client.get("/schema").status_code == 200
    assert server.is_concurrency_safe and not HTTPEnvServer(Alone, Move, Seen).is_concurrency_safe


def test_two_servers_on_one_application_do_not_hide_each_other() -> None:
    app = fastapi.FastAPI()
    HTTPEnvServer(Adder, Move, Seen, env_name="one").register_routes(app)
    HTTPEnvServer(Bare, Action, Observation, env_name="two").register_routes(app)

    @app.post("/foo/task")
    def task() -> str:
        return "mine"

    with TestClient(app) as client:
        assert client.post("/reset").json()["metadata"] is None
        assert client.post("/one/reset").json()["metadata"] is None
        assert client.post("/TWO/reset").json()["metadata"] == {"hello": "there"}
        for name, about in (("one", None), ("two", {"hello": "there"})):
            with client.websocket_connect(f"/{name}/ws") as socket:
                socket.send_json({"type": "reset"})
                assert socket.receive_json()["data"].get("metadata") == about
        assert client.post("/three/reset").status_code == 404
        assert client.post("/foo/task").json() == "mine"


def test_a_session_that_is_idle_for_its_timeout_ends() -> None:
    app = create_app(
        Adder, Move, Seen, concurrency_config=ConcurrencyConfig(max_concurrent_envs=1, session_timeout=0.3)
    )
    assert app.state.openenv_server.concurrency_config.session_timeout == 0.3
    with TestClient(app) as client:
        sid = client.post("/reset").headers["X-Session-ID"]
        client.post("/step", json={"action": {}}, headers={"X-Session-ID": sid})
        wait_until(lambda: app.state.openenv_server.active_sessions == 0)
        assert client.post("/step", json={"action": {}}, headers={"X-Session-ID": sid}).status_code == 410


def test_a_web_interface_is_told_not_to_be_there(caplog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_WEB_INTERFACE", "true")
    create_app(Adder, Move, Seen, gradio_builder=lambda *_: None, custom_tab_name="Play")
    assert "web interface" in caplog.text


def test_what_create_app_made_is_served_beside_others() -> None:
    app = create_app(Adder, Move, Seen, env_name="first_env")

    @app.get("/extra")
    def extra() -> str:
        return "there"

    running = Served([app, create_app(Bare, Action, Observation, env_name="second_env")], through_app=True)
    try:
        assert running.client.get("/list_environments").json() == ["first_env", "second_env"]
        assert running.client.get("/extra").json() == "there"
        with Socket(running.url, "/second_env/ws") as socket:
            assert socket.reset()["metadata"] == {"hello": "there"}
    finally:
        running.stop()


def test_an_environment_that_cannot_be_made_is_found_out_when_it_is_asked_for() -> None:
    with TestClient(create_app(Broken, Move, Seen)) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/schema").status_code == 200
        answer = client.post("/reset")
        assert answer.status_code == 500 and "no disk" in answer.json()["detail"]
