"""What an environment says of itself: `/schema`, `/metadata`, `/health`, the description, and what production hides."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ors import Environment as ORSEnvironment
from ors import Server, TextBlock, tool
from ors.openenv import EnvironmentMetadata
from ors.openenv.models import ServerMode
from ors.openenv.server import create_app
from ors.types import ToolOutput
from served import Served

from .games import Adder, Move, Seen, Sums, Toolbox
from .talking import Socket, rpc


def test_schemas_are_those_of_the_models(served: Served) -> None:
    told = served.client.get("/schema").json()
    assert list(told) == ["action", "observation", "state", "reset_observation"]
    assert told["action"] == Move.model_json_schema()
    assert told["observation"] == told["reset_observation"] == Seen.model_json_schema()
    # what the state's class adds is there without a word from its author
    assert told["state"] == Sums.model_json_schema()
    assert served.client.get("/toolbox/schema").json()["action"]["title"] == "Action"


def test_metadata_that_nobody_wrote_needs_no_instance(served: Served) -> None:
    assert served.client.get("/metadata").json() == {
        "name": "Adder",
        "description": "Adder environment",
        "readme_content": None,
        "version": "1.0.0",
        "author": None,
        "documentation_url": None,
    }


def test_metadata_is_asked_of_an_instance_away_from_the_event_loop() -> None:
    threads: list[int] = []

    class Told(Adder):
        def get_metadata(self) -> EnvironmentMetadata:
            threads.append(threading.get_ident())
            return EnvironmentMetadata(name="told", description="It tells.", version="2")

    running = Served([Told])
    try:
        assert running.client.get("/metadata").json()["description"] == "It tells."
        assert running.on_loop(_ident) not in threads and threads
    finally:
        running.stop()


async def _ident() -> int:
    return threading.get_ident()


def test_metadata_that_fails_is_an_error_as_json() -> None:
    class Shy(Adder):
        def get_metadata(self) -> EnvironmentMetadata:
            raise RuntimeError("not now")

    running = Served([Shy])
    try:
        answer = running.client.get("/metadata")
        assert answer.status_code == 500 and "not now" in answer.json()["detail"]
        assert running.client.get("/health").status_code == 200
    finally:
        running.stop()


def test_health_is_openenvs_where_there_is_nothing_else() -> None:
    running = Served([create_app(Adder, Move, Seen)])
    try:
        assert running.client.get("/health").json() == {"status": "healthy"}
    finally:
        running.stop()
    running = Served([Adder])
    try:
        assert running.client.get("/health").json() == {"status": "ok"}
    finally:
        running.stop()


@pytest.mark.parametrize("mode", ["production", "Production", ServerMode.PRODUCTION])
def test_production_has_no_routes_for_trainers(mode: Any) -> None:
    running = Served([Toolbox], openenv_mode=getattr(mode, "value", mode))
    try:
        for method, path in (("POST", "/reset"), ("POST", "/step"), ("GET", "/state")):
            assert running.client.request(method, path, json={}).status_code == 404
        for path in ("/health", "/schema", "/metadata"):
            assert running.client.get(path).status_code == 200
        assert rpc(running.client, "tools/list")["result"]["tools"]
        paths = running.client.get("/openapi.json").json()["paths"]
        assert not {"/reset", "/step", "/state"} & set(paths)
        with Socket(running.url) as socket:
            assert socket.ask({"type": "reset"})["data"]["metadata"] == {"ready": True}
    finally:
        running.stop()


def test_a_mode_that_there_is_not() -> None:
    with pytest.raises(ValueError, match=r"Invalid mode: .*Must be one of: \['simulation', 'production'\]"):
        create_app(Adder, Move, Seen, mode="training")


def test_the_mode_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENENV_MODE", "PRODUCTION")
    assert not any(route.path == "/reset" for route in create_app(Adder, Move, Seen).routes)
    assert any(route.path == "/reset" for route in create_app(Adder, Move, Seen, mode="simulation").routes)


def test_tools_are_those_of_the_mode() -> None:
    class Modes(Toolbox):
        def __init__(self) -> None:
            super().__init__()

            @self.tool(mode="production")
            def only_there() -> str:
                """For production."""
                return "there"

            @self.tool(mode="simulation")
            def only_here() -> str:
                """For training."""
                return "here"

    for mode, has in (("production", "only_there"), ("simulation", "only_here")):
        running = Served([Modes], openenv_mode=mode)
        try:
            names = {tool["name"] for tool in rpc(running.client, "tools/list")["result"]["tools"]}
            assert names == {"add", "fail", has}
            assert rpc(running.client, "tools/call", name=has, arguments={})["result"]["is_error"] is False
            other = ({"only_there", "only_here"} - {has}).pop()
            assert rpc(running.client, "tools/call", name=other, arguments={})["error"]["code"] == -32603
        finally:
            running.stop()


class Echo(ORSEnvironment):
    @classmethod
    def list_splits(cls) -> list[str]:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> list[Any]:
        return [{}]

    def get_prompt(self) -> list[TextBlock]:
        return [TextBlock(text="Say something.")]

    @tool
    def say(self, text: str) -> ToolOutput:
        """Say it."""
        return ToolOutput(blocks=[TextBlock(text=text)], reward=1.0, finished=True)


def test_both_kinds_beside_each_other() -> None:
    running = Served([Echo, Adder])
    try:
        assert running.client.get("/list_environments").json() == ["echo", "Adder"]
        assert running.client.get("/health").json() == {"status": "ok"}
        assert running.client.get("/metadata").json()["name"].lower() == "echo"
        assert running.client.get("/adder/metadata").json()["name"] == "Adder"
        assert "reset_observation" in running.client.get("/echo/schema").json()
    finally:
        running.stop()


def test_what_a_validator_of_openenvs_looks_for(served: Served) -> None:
    """`openenv validate --url`."""
    document = served.client.get("/openapi.json").json()
    assert document["info"]["version"]
    assert {"/reset", "/step", "/state"} <= set(document["paths"])
    metadata = served.client.get("/metadata").json()
    assert metadata["name"] and metadata["description"]
    assert all(isinstance(served.client.get("/schema").json()[key], dict) for key in ("action", "observation", "state"))
    answer = served.client.post("/mcp", json={})
    assert (answer.status_code, answer.json()["jsonrpc"]) == (200, "2.0")


def test_two_environments_of_one_name_are_refused() -> None:
    with pytest.raises(Exception, match="two environments are named 'Adder'.*env_name"):
        Server([Adder, create_app(Adder, Move, Seen)])
