"""Which tools a session has, and what their input must be, however an author brings them."""

from __future__ import annotations

import httpx
import pytest

from .conftest import Serve
from .kinds import SCHEMA, Hidden, Listed, Overlapping, Rewritten, Routed, Unlistable
from .probes import Odd
from .wire import Episode, client_of, error_of, failure_of


@pytest.fixture
def client(serve: Serve) -> httpx.Client:
    return client_of(serve(Hidden, Listed, Overlapping, Rewritten, Routed, Unlistable, Odd))


def names(answer: httpx.Response) -> list[str]:
    return [spec["name"] for spec in answer.json()["tools"]]


def test_where_no_task_says_so_every_session_has_all(client: httpx.Client) -> None:
    episode = Episode(client, {}, env="hidden").opened()
    assert names(client.get("/hidden/tools")) == ["common"]
    assert names(episode.task_tools()) == ["common", "special"]
    assert episode.text("special") == "special"


@pytest.mark.parametrize("asked", [True, False])
def test_where_the_task_says_so_it_has_those(client: httpx.Client, asked: bool) -> None:
    """Whether or not the client has asked for the list before it calls."""
    without = Episode(client, {}, env="listed").opened()
    having = Episode(client, {"tools": ["special"]}, env="listed").opened()
    if asked:
        assert names(without.task_tools()) == ["common"]
        assert names(having.task_tools()) == ["common", "special"]
    assert without.refused("special") == ("'special' is not a valid tool", "not_found")
    assert having.text("special") == "special"
    assert having.text("common") == "common"


def test_names_are_unique(client: httpx.Client) -> None:
    answer = Episode(client, {}, env="overlapping").opened().task_tools()
    assert names(answer) == ["common", "special"]
    assert answer.json()["tools"][0]["description"] == ""  # the one that all have


def test_a_tool_that_is_listed_and_not_there(client: httpx.Client) -> None:
    episode = Episode(client, {"tools": ["imagined"]}, env="listed").opened()
    assert names(episode.task_tools()) == ["common", "imagined"]
    words, about = error_of(episode.call("imagined"))
    assert words == "'imagined' is listed, but Listed has no such tool"
    assert about["ran"] == "no"


def test_a_list_that_cannot_be_had(client: httpx.Client) -> None:
    half = Episode(client, {}, env="unlistable").opened()
    assert failure_of(half.task_tools()) == (500, "bad_output")
    assert "Unlistable.list_task_tools returned no list of tools" in half.task_tools().json()["detail"]
    raising = Episode(client, {"raise": True}, env="unlistable").opened()
    assert failure_of(raising.task_tools()) == (500, "tool_failed")
    # what all have can be called all the same
    assert raising.text("common") == "common"
    assert error_of(raising.call("unknown"))[0] == "LookupError: no list"


def test_what_is_listed_may_be_rewritten(client: httpx.Client) -> None:
    (spec,) = client.get("/rewritten/tools").json()["tools"]
    assert spec == {"name": "common", "description": "rewritten", "input_schema": None}
    assert Episode(client, {}, env="rewritten").opened().text("common") == "common"


def test_tools_of_a_toolset_know_their_environment(client: httpx.Client) -> None:
    assert Episode(client, {}, env="odd").opened().text("borrowed") == "for Odd"


# An environment that routes calls itself


def test_its_listed_schema_is_what_is_checked(client: httpx.Client) -> None:
    assert client.get("/routed/tools").json()["tools"][0]["input_schema"] == SCHEMA
    episode = Episode(client, {}, env="routed").opened()
    assert episode.text("say", word="hello") == "say hello"
    for wrong in ({}, {"word": 1}, {"word": "hunter2"}, {"word": "a", "more": "hunter2"}, {"words": "a"}):
        words, reason = episode.refused("say", **wrong)
        assert reason == "input_validation"
        assert words.startswith("Tool input validation error: ") and "hunter2" not in words


def test_a_null_schema_takes_nothing(client: httpx.Client) -> None:
    episode = Episode(client, {}, env="routed").opened()
    assert episode.text("nothing") == "nothing"
    assert episode.refused("nothing", x=1)[1] == "input_validation"


def test_it_may_answer_with_an_output_or_an_error(client: httpx.Client) -> None:
    episode = Episode(client, {}, env="routed").opened()
    assert episode.text("output") == "an output by itself"
    assert episode.refused("refuse") == ("not today", "tool_error")


def test_it_is_not_asked_for_what_it_does_not_list(client: httpx.Client) -> None:
    assert Episode(client, {}, env="routed").opened().refused("unlisted")[1] == "not_found"
