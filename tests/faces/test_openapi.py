"""The description of the routes: valid, whole, true under fire, and readable for people."""

from __future__ import annotations

import copy
import json
import warnings
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from openapi_spec_validator import validate

from ors import Server, types
from ors.core.failures import KINDS
from ors.faces.openenv import messages
from ors.schema import json_schema
from ors.server.docs_page import page
from ors.server.openapi import document, static_document
from served import Served

from .environments import Sums
from .probes import Other, Probe
from .wire import Episode, Page, client_of, result_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis import GenerationMode

METHODS = {"get", "post"}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    served = Served([Probe, Other, Sums])
    yield served
    served.stop()


@pytest.fixture(scope="module")
def described(served: Served) -> dict[str, Any]:
    answer = client_of(served).get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    whole: dict[str, Any] = answer.json()
    return whole


def operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def test_it_is_valid() -> None:
    validate(json.loads(Server([Probe], api_keys=["key"]).application.document()))


def test_every_route_is_there_in_both_spellings(described: dict[str, Any], served: Served) -> None:
    routes = served.application.routes(served.host)
    expected = {(route.method.lower(), route.path) for route in routes}
    expected |= {(route.method.lower(), f"/{{env_name}}{route.path}") for route in routes if route.scope == "env"}
    assert {(method, path) for method, path, _ in operations(described)} == expected
    assert len(expected) >= 35


def test_names_are_unique_and_tags_are_known(described: dict[str, Any]) -> None:
    counted = Counter(operation["operationId"] for _, _, operation in operations(described))
    assert max(counted.values()) == 1
    tags = [tag["name"] for tag in described["tags"]]
    assert {tag for _, _, operation in operations(described) for tag in operation["tags"]} == set(tags)


def test_the_task_routes_have_their_tag(described: dict[str, Any]) -> None:
    tagged = {path for _, path, operation in operations(described) if operation["tags"] == ["Task API"]}
    names = ("splits", "tasks", "num_tasks", "task", "task_range", "get_task", "get_task_range")
    assert tagged == {"/list_environments"} | {f"/{name}" for name in names} | {
        f"/{{env_name}}/{name}" for name in names
    }


def test_bodies_are_the_real_models(described: dict[str, Any]) -> None:
    for _, path, operation in operations(described):
        if "requestBody" in operation:
            media = operation["requestBody"]["content"]["application/json"]
            name = media["schema"]["$ref"].rpartition("/")[2]
            assert name in described["components"]["schemas"]
            (getattr(types, name, None) or getattr(messages, name)).model_validate(media["example"])
            assert {"400", "413", "415", "422"} <= set(operation["responses"]), path
        else:
            assert "413" not in operation["responses"]
    with_bodies = {path for _, path, operation in operations(described) if "requestBody" in operation}
    assert {"/create", "/call", "/tasks", "/num_tasks", "/task", "/task_range"} < with_bodies


def test_the_types_are_those_of_ors_schema(described: dict[str, Any]) -> None:
    mine, printed = described["components"]["schemas"], json_schema()["definitions"]
    assert set(printed) - set(mine) == {"JSONValue"}
    for name in set(printed) - {"JSONObject", "JSONValue"}:
        moved = json.loads(json.dumps(printed[name]).replace("#/definitions/", "#/components/schemas/"))
        assert mine[name] == moved


def test_every_error_says_its_kinds(described: dict[str, Any]) -> None:
    named = set()
    for _, path, operation in operations(described):
        for status, response in operation["responses"].items():
            if status == "304":
                # no error: the answer that the client has is still the one, and there is nothing to say
                assert operation["tags"] == ["Task API"] and set(response) == {"description"}
            if status in ("200", "304"):
                continue
            schema = response["content"]["application/json"]["schema"]
            kinds = schema["properties"]["kind"]["enum"]
            assert schema["allOf"] == [{"$ref": "#/components/schemas/Error"}]
            assert {KINDS[kind].status for kind in kinds} == {int(status)}, path
            assert ("headers" in response) is any(KINDS[kind].retryable for kind in kinds)
            named |= set(kinds)
    in_streams = {kind for kind, facts in KINDS.items() if facts.reason is not None}
    in_streams |= {"call_conflict", "call_forgotten", "call_cancelled"}
    elsewhere = {"not_found", "method_not_allowed", "unauthorized", "client_gone"}
    assert set(KINDS) - named == in_streams | elsewhere


def test_events_are_described(described: dict[str, Any]) -> None:
    call = described["paths"]["/call"]["post"]["responses"]["200"]["content"]
    assert list(call) == ["text/event-stream"]
    assert list(call["text/event-stream"]["x-events"]) == ["task_id", "chunk", "end", "error"]
    both = described["paths"]["/create_session"]["post"]["responses"]["200"]["content"]
    assert list(both) == ["application/json", "text/event-stream"]
    assert list(both["text/event-stream"]["x-events"]) == ["task_id", "end"]


def test_parameters_are_described(described: dict[str, Any]) -> None:
    def names(path: str, method: str) -> set[tuple[str, str, bool]]:
        found = described["paths"][path][method].get("parameters", [])
        return {(entry["name"], entry["in"], entry.get("required", False)) for entry in found}

    session = ("X-Session-ID", "header", True)
    assert names("/create", "post") == {session, ("X-Secrets", "header", False), ("Idempotency-Key", "header", False)}
    assert names("/cancel", "post") == {session, ("X-Call-ID", "header", True)}
    assert names("/{env_name}/call", "post") == {session, ("env_name", "path", True)}
    assert names("/call", "post") == {session}
    assert names("/health", "get") == set()
    (parameter,) = described["paths"]["/{env_name}/tools"]["get"]["parameters"]
    assert parameter["schema"]["enum"] == ["probe", "other", "sums"]


def test_keys_are_described_where_there_are_any(described: dict[str, Any]) -> None:
    assert "security" not in described and "securitySchemes" not in described["components"]
    assert not any("401" in operation["responses"] for _, _, operation in operations(described))
    guarded = json.loads(Server([Probe], api_keys=["key"]).application.document())
    assert guarded["security"] == [{"key": []}, {"bearer": []}]
    for _, path, operation in operations(guarded):
        is_open = path in ("/health", "/ready")
        assert (operation.get("security") == []) is is_open
        assert ("401" in operation["responses"]) is not is_open
    assert "key" not in json.dumps(guarded["info"])


def test_it_needs_no_environment_and_no_host() -> None:
    static = json.loads(static_document())
    bare = json.loads(document([], {}, has_keys=False))
    assert bare["paths"] == {} and bare["tags"] == []
    live = json.loads(Server([Probe], api_keys=["key"]).application.document())
    for whole in (static, live):
        for _, _, operation in operations(whole):
            for parameter in operation.get("parameters", ()):
                parameter["schema"].pop("enum", None)
    assert static == live


# Under fire


@pytest.fixture(scope="module")
def generated(described: dict[str, Any]) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schema = schemathesis.openapi.from_dict(copy.deepcopy(described))
        return [result.ok() for result in schema.get_all_operations()]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.name.lower())
def test_whatever_is_asked_the_answer_is_described(
    served: Served, described: dict[str, Any], generated: list[Any], mode: GenerationMode
) -> None:
    """Requests that fit the description and requests that break it; half of them about a session that lives."""
    judge, statuses = Page(described), Counter[int]()
    tools = [spec["name"] for spec in described_tools(served)] + ["answer", "hidden"]
    with httpx.Client(base_url=served.url, timeout=30) as client:
        for operation in generated:
            try:
                fire(operation, mode, client, judge, tools, statuses)
            except Unsatisfiable:  # there is nothing to get wrong in a request that only has a path
                assert mode is GenerationMode.NEGATIVE
                assert operation.method == "get" or operation.path == "/create_session"
    assert sum(statuses.values()) > 80
    assert statuses[200 if mode is GenerationMode.POSITIVE else 422] > 30
    assert {status for status in statuses if status >= 500} <= {500, 501}
    assert served.client.get("/health").status_code == 200


def fire(
    operation: Any, mode: GenerationMode, client: httpx.Client, judge: Page, tools: list[str], statuses: Counter[int]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = operation.as_strategy(generation_mode=mode)

    @settings(max_examples=7, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=cases, alive=st.booleans(), fitting=st.booleans(), tool=st.sampled_from(tools))
    def shoot(case: Any, alive: bool, fitting: bool, tool: str) -> None:
        headers = {name: value for name, value in dict(case.headers or {}).items() if sendable(name, value)}
        if alive and "X-Session-ID" in headers:
            episode = Episode(client, {"tools": ["hidden"]}, env=(case.path_parameters or {}).get("env_name"))
            if operation.path != "/create" and episode.create().status_code == 200:
                headers["X-Session-ID"] = episode.sid
        content = None
        if operation.body:
            body = case.body if isinstance(case.body, (dict, list, str, int, float, bool)) else None
            if fitting and isinstance(body, dict):
                body = {**body, **({"split": "train"} if "split" in body else {"name": tool} if "name" in body else {})}
            content = json.dumps(body)
            headers["Content-Type"] = "application/json"
        query = {str(name): str(value) for name, value in dict(case.query or {}).items()}
        answer = client.request(case.method, case.formatted_path, params=query, content=content, headers=headers)
        statuses[answer.status_code] += 1
        judge.judge(answer)
        if answer.status_code == 500:
            # the environment's own code has stumbled over a task that was made up
            assert answer.json()["kind"] in ("setup_failed", "prompt_failed"), answer.text

    shoot()


def described_tools(served: Served) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = client_of(served).get("/tools").json()["tools"]
    # these wait for a test to open a gate
    return [spec for spec in listed if spec["name"] not in ("wait", "block", "overlap", "brief")]


def sendable(name: str, value: Any) -> bool:
    """Whether an HTTP library lets a header leave the machine."""
    text = str(value)
    return name.replace("-", "").isalnum() and text.isascii() and text.isprintable() and text == text.strip()


def test_the_judge_would_notice(served: Served) -> None:
    """A document that hides a status, a kind or a key makes the judge speak."""
    whole = json.loads(served.application.document())
    answer = served.client.post("/tasks", json={"split": "nowhere"})
    Page(whole).judge(answer)
    narrowed = whole["paths"]["/tasks"]["post"]["responses"]["400"]["content"]["application/json"]["schema"]
    narrowed["properties"]["kind"]["enum"].remove("unknown_split")
    with pytest.raises(Exception, match="unknown_split"):
        Page(whole).judge(answer)
    del whole["paths"]["/tasks"]["post"]["responses"]["400"]
    with pytest.raises(AssertionError, match="POST /tasks answers 400"):
        Page(whole).judge(answer)


# For people


class Seen(HTMLParser):
    """What a page holds."""

    VOID = {"meta", "br", "hr", "img", "input", "link"}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name == "href":
                (self.loads if tag == "link" else self.links).append(value or "")
            elif name in ("src", "srcset", "action", "data"):
                self.loads.append(value or "")
        if tag == "script":
            self.loads.append("a script")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_shows_everything_and_loads_nothing(served: Served, described: dict[str, Any]) -> None:
    answer = client_of(served).get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    seen = Seen()
    seen.feed(answer.text)
    assert seen.open == []
    assert seen.loads == []
    assert "@import" not in answer.text and "url(" not in answer.text
    assert len(seen.ids) == len(set(seen.ids))
    assert {link.removeprefix("#") for link in seen.links if link.startswith("#")} <= set(seen.ids)
    assert [link for link in seen.links if not link.startswith("#")] == ["openapi.json"]
    for _, path, operation in operations(described):
        assert path in seen.text
        assert operation["summary"] in seen.text
        for status, response in operation["responses"].items():
            if status != "200":
                assert status in seen.text
                assert response["description"].replace("`", "") in seen.text
    for name in described["components"]["schemas"]:
        assert name in seen.text


def test_the_page_escapes_what_it_shows(described: dict[str, Any]) -> None:
    evil = json.loads(json.dumps(described).replace("Call a tool", "<script>alert(1)</script>"))
    assert b"<script" not in page(json.dumps(evil).encode())


def test_the_page_says_that_keys_are_asked_for() -> None:
    assert b"asks for an API key" in page(static_document())
    assert b"asks for an API key" not in page(Server([Probe]).application.document())


def test_what_is_described_can_be_played(served: Served, described: dict[str, Any]) -> None:
    """A client that knows nothing but the document: ids and bodies are taken from its examples."""
    client = client_of(served)
    sid = client.post("/create_session").json()["sid"]
    body = described["paths"]["/create"]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert client.post("/create", json=body, headers={"X-Session-ID": sid}).status_code == 200
    body = described["paths"]["/call"]["post"]["requestBody"]["content"]["application/json"]["example"]
    answer = client.post("/call", json=body, headers={"X-Session-ID": sid})
    assert result_of(answer)["reason"] == "not_found"
    assert client.post("/delete", headers={"X-Session-ID": sid}).json() == {"sid": sid}
