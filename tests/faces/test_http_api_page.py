"""docs/http-api.md says what the table of routes says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ors import types
from ors.core.failures import KINDS
from ors.server.openapi import static_document
from ors.server.system import CAPABILITIES
from served import Served

from .environments import Sums
from .wire import Episode, client_of, events_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "http-api.md"
TEXT = PAGE.read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_every_route_is_named_and_no_other() -> None:
    named = re.findall(r"`(GET|POST) (/[^` ]*)`", TEXT)
    assert len(named) == len(set(named))
    paths: dict[str, Any] = json.loads(static_document())["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    # the bare spelling of an environment's route is said once for all
    bare = {(method, path) for method, path in routes if (method, f"/{{env_name}}{path}") in routes}
    assert set(named) == routes - bare


def test_every_route_stands_under_its_heading() -> None:
    headings = {"Task API": "Tasks", "Sessions": "Sessions", "Environments": "Environments", "Server": "The server"}
    headings["OpenEnv"] = "OpenEnv"
    parts = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
    for path, methods in json.loads(static_document())["paths"].items():
        for method, operation in methods.items():
            if not operation["operationId"].endswith("_bare"):
                assert f"`{method.upper()} {path}`" in parts[headings[operation["tags"][0]]]


def test_every_kind_of_failure_is_explained() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d{3}) \| (yes|no) \| \S.* \|$", TEXT, re.MULTILINE)
    assert [name for name, _, _ in rows] == list(KINDS)
    for name, status, again in rows:
        assert KINDS[name].status == int(status), name
        assert KINDS[name].retryable is (again == "yes"), name
    reasons = [kind.reason for kind in KINDS.values() if kind.reason]
    assert all(f"`{reason}`" in TEXT for reason in reasons)


def test_every_parameter_is_named() -> None:
    for methods in json.loads(static_document())["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                assert f"`{parameter['name']}`" in TEXT or f"{{{parameter['name']}}}" in TEXT


def test_every_capability_is_named() -> None:
    assert [name for name in CAPABILITIES if f"`{name}`" not in TEXT] == []


@pytest.mark.parametrize("block", blocks("json"))
def test_examples_are_what_they_say(block: str) -> None:
    value = json.loads(block)
    if "type" in value or "observation" in value:
        return  # OpenEnv's, whose frames are tested where they are answered
    model = types.ToolCall if "name" in value else types.RunToolOutput if "ok" in value else types.CreateSession
    model.model_validate(value)


def test_the_events_are_as_they_are_shown() -> None:
    served = Served([Sums])
    try:
        (shown,) = blocks("text")
        answer = (
            Episode(client_of(served), split="train", index=2)
            .opened()
            .call("submit", {"answer": 4}, "my-id-of-this-call")
        )
        sent = answer.text.replace("\r\n", "\n")
        assert sent.replace('"text":"right"', '"text":"Correct."') == shown + "\n"
        assert [event.name for event in events_of(answer.content)] == ["task_id", "end"]
    finally:
        served.stop()
