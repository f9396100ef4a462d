"""What a server says of itself and of its environments, in every spelling of its routes."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from ors import Environment, Server, ToolOutput, tool
from ors.errors import SettingsError
from ors.server.openapi import static_document
from ors.server.system import CAPABILITIES

from .conftest import Serve
from .environments import Sums
from .probes import Indexed, Odd, Other, Probe, said
from .wire import Page, client_of, failure_of

ENV_ROUTES = [
    ("GET", "/tools"),
    ("GET", "/splits"),
    ("POST", "/tasks"),
    ("POST", "/num_tasks"),
    ("POST", "/task"),
    ("POST", "/task_range"),
    ("POST", "/get_task"),
    ("POST", "/get_task_range"),
    ("GET", "/prompt"),
    ("GET", "/task_tools"),
    ("POST", "/call"),
    ("POST", "/reset"),
    ("POST", "/step"),
    ("GET", "/state"),
    ("GET", "/schema"),
    ("GET", "/metadata"),
    ("POST", "/mcp"),
]


@pytest.fixture
def client(serve: Serve) -> httpx.Client:
    return client_of(serve(Probe, Other, Odd))


def test_health_is_exactly_what_the_text_says(client: httpx.Client) -> None:
    answer = client.get("/health")
    assert (answer.status_code, answer.content) == (200, b'{"status":"ok"}')
    assert answer.headers["content-type"] == "application/json"


def test_head_is_answered_like_get(client: httpx.Client) -> None:
    answer = client.head("/health")
    assert (answer.status_code, answer.content) == (200, b"")


def test_ready_counts(client: httpx.Client) -> None:
    answer = client.get("/ready").json()
    assert answer["ready"] is True
    assert answer["environments"] == ["probe", "other", "odd"]
    assert answer["zombies"] == []


def test_version_says_what_the_server_can_do(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = client.get("/version").json()
    assert set(answer) == {"version", "build_sha", "server", "capabilities"}
    assert answer["build_sha"] is None
    assert answer["capabilities"] == list(CAPABILITIES)
    monkeypatch.setenv("ORS_BUILD_SHA", "0123abc")
    assert client.get("/version").json()["build_sha"] == "0123abc"


def test_environments_are_listed_in_lower_case_and_in_order(client: httpx.Client) -> None:
    assert client.get("/list_environments").json() == ["probe", "other", "odd"]


def test_tools_are_exactly_specifications_in_alphabetical_order(client: httpx.Client) -> None:
    answer = client.get("/probe/tools").json()
    assert set(answer) == {"tools", "terminal_tool", "supports_score_group", "message_block_types"}
    names = [spec["name"] for spec in answer["tools"]]
    assert names == sorted(names)
    assert {"echo", "count", "modelled"} < set(names)
    for spec in answer["tools"]:
        assert list(spec) == ["name", "description", "input_schema"]
    by_name = {spec["name"]: spec for spec in answer["tools"]}
    assert by_name["count"] == {"name": "count", "description": "", "input_schema": None}
    assert by_name["echo"]["description"] == "Say it again."
    assert by_name["echo"]["input_schema"]["properties"]["text"]["description"] == "What to say."
    assert by_name["echo"]["input_schema"]["required"] == ["text"]


def test_what_is_not_listed(client: httpx.Client) -> None:
    answer = client.get("/probe/tools").json()
    assert not {"hidden", "answer", "not_a_tool", "trap", "setup"} & {spec["name"] for spec in answer["tools"]}
    assert answer["terminal_tool"] == {"name": "answer", "arg": "message", "description": ""}
    assert answer["supports_score_group"] is False
    assert client.get("/odd/tools").json()["terminal_tool"] is None


def test_tools_of_toolsets_come_last(client: httpx.Client) -> None:
    names = [spec["name"] for spec in client.get("/odd/tools").json()["tools"]]
    assert names[-1] == "borrowed"


def test_the_first_environment_answers_at_the_root_without_a_redirect(client: httpx.Client) -> None:
    assert not client.follow_redirects
    for path in ("/tools", "/splits"):
        bare = client.get(path)
        assert bare.status_code == 200
        assert bare.json() == client.get(f"/probe{path}").json()


@pytest.mark.parametrize("path", ["/PROBE/tools", "/Probe/Tools", "/probe/tools/", "/TOOLS", "/tools/"])
def test_spellings(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.json() == client.get("/probe/tools").json()


@pytest.mark.parametrize(("method", "path"), ENV_ROUTES)
def test_an_unknown_environment_is_404_on_every_route(client: httpx.Client, method: str, path: str) -> None:
    answer = client.request(method, f"/Nobody{path}", json={}, headers={"X-Session-ID": "x"})
    assert failure_of(answer) == (404, "unknown_environment")
    assert answer.json()["detail"] == "unknown environment 'Nobody'"


def test_the_routes_of_environments_are_all_tried_here() -> None:
    page = Page(json.loads(static_document()))
    named = [
        (method.upper(), path.removeprefix("/{env_name}"))
        for path, methods in page.document["paths"].items()
        for method in methods
        if path.startswith("/{env_name}")
    ]
    assert sorted(named) == sorted(ENV_ROUTES)


@pytest.mark.parametrize(
    "path", ["/v1/environments/somebody/probe/required-secrets", "/v1/environments//probe/required-secrets"]
)
def test_required_secrets_are_none(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()) == (200, {"secrets": []})


def test_a_subclass_never_serves_what_its_parent_cached(serve: Serve) -> None:
    client = client_of(serve(Parent, Child))
    for _ in range(2):
        assert [split["name"] for split in client.get("/parent/splits").json()] == ["train"]
        assert [split["name"] for split in client.get("/child/splits").json()] == ["train", "more"]
        assert client.post("/parent/num_tasks", json={"split": "train"}).json() == {"num_tasks": 1}
        assert client.post("/child/num_tasks", json={"split": "train"}).json() == {"num_tasks": 2}
        assert client.post("/child/task", json={"split": "more", "index": 0}).json()["task"] == {"of": "child"}
        assert [spec["name"] for spec in client.get("/parent/tools").json()["tools"]] == ["first"]
        assert [spec["name"] for spec in client.get("/child/tools").json()["tools"]] == ["first", "second"]


class Parent(Environment):
    @classmethod
    def list_splits(cls) -> list[str]:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> list[Any]:
        return [{"of": "parent"}]

    def get_prompt(self) -> str:
        return "Go."

    @tool
    async def first(self) -> ToolOutput:
        return said("first")


class Child(Parent):
    @classmethod
    def list_splits(cls) -> list[str]:
        return ["train", "more"]

    @classmethod
    def list_tasks(cls, split: str) -> list[Any]:
        return [{"of": "child"}, {"of": "child"}]

    @tool
    async def second(self) -> ToolOutput:
        return said("second")


def named(name: str) -> type[Environment]:
    return type("Named", (Sums,), {"name": classmethod(lambda cls: name)})


@pytest.mark.parametrize("name", ["health", "create", "Docs", "openapi.json", "v1", "delete_session", "", "a/b"])
def test_a_name_that_is_a_route_is_refused_at_start(name: str) -> None:
    with pytest.raises(SettingsError, match=r"cannot be named .* override name\(\)"):
        Server([named(name)])


def test_two_of_one_name_are_refused_at_start() -> None:
    with pytest.raises(SettingsError, match="two environments are named 'twin'"):
        Server([named("twin"), named("Twin")])


def test_a_server_without_environments_is_refused() -> None:
    with pytest.raises(SettingsError, match="at least one environment"):
        Server([])


def test_the_index_alone_is_enough(serve: Serve) -> None:
    client = client_of(serve(Indexed))
    assert client.get("/splits").json() == [{"name": "train", "type": "train"}]
