"""Every question that the two clients can ask about tasks, tools and environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .environments import PIXEL, Answer, Essay
from .processes import Driver, ServedEnvironments

Play = Callable[..., Any]

ODD = [{"split": "odd", "index": index, "question": f"What is {index}+{index}?"} for index in range(3)]
TOOLS = [
    "echo", "explode", "explode_plainly", "guess", "hint", "image", "lived", "misreturn", "mixed", "refuse", "secrets",
    "submit", "text", "wait", "wait_plainly", "waited", "write",
]  # fmt: skip
FORMATS = [None, "openai", "anthropic", "google", "openrouter"]


def value(outcome: dict[str, Any]) -> Any:
    """What an action gave; fails with what the client raised."""
    assert "value" in outcome, f"{outcome.get('error')}: {outcome.get('text')}"
    return outcome["value"]


def specs(tasks: list[dict[str, Any]]) -> list[Any]:
    return [task["task_spec"] for task in tasks]


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
def test_every_query_of_an_environment(play: Play, sync: bool) -> None:
    report = play("queries", sync=sync, name="probe", variant=None, split="odd", index=1)

    assert value(report["list_splits"]) == ["train", "test", "odd"]
    assert specs(value(report["list_tasks"])) == ODD
    assert value(report["num_tasks"]) == 3
    assert value(report["get_task"])["task_spec"] == ODD[1]
    for bounds, expected in {
        "None None": ODD, "1 3": ODD[1:3], "-2 None": ODD[-2:], "None -3": [], "2 2": [], "3 1000000000": [],
    }.items():  # fmt: skip
        assert specs(value(report[f"get_task_range {bounds}"])) == expected, bounds
    tasks = [*value(report["list_tasks"]), value(report["get_task"]), *value(report["get_task_range 1 3"])]
    assert {task["environment_name"] for task in tasks} == {"probe"}
    check_tools(report)


def check_tools(report: dict[str, Any]) -> None:
    """The tool lists in every format that the clients make of them."""
    tools = {tool["name"]: tool for tool in value(report["list_tools None"])}
    assert list(tools) == TOOLS
    assert tools["hint"] == {"name": "hint", "description": "Takes nothing.", "input_schema": None}
    assert tools["submit"]["description"].split("\n\n")[0] == "Submit the answer."
    assert tools["submit"]["input_schema"] == Answer.model_json_schema()
    assert tools["write"]["input_schema"] == Essay.model_json_schema()

    for form in FORMATS[1:]:
        listed = value(report[f"list_tools {form}"])
        assert [tool.get("function", tool)["name"] for tool in listed] == TOOLS, form
        schema = listed[TOOLS.index("write")]["input_schema" if form == "anthropic" else "parameters"]
        assert (list(schema["properties"]), schema["required"]) == (["topic", "style", "limit"], ["topic"]), form


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
def test_every_query_of_a_session(play: Play, sync: bool) -> None:
    report = play("listed_episode", sync=sync, name="probe", variant=None, split="test", index=999)

    assert report["task"]["task_spec"] == {"split": "test", "index": 999, "question": "What is 999+999?"}
    assert report["sid"]
    assert value(report["prompt"]) == [
        {"text": "  \u3000What is 999+999?\n  (asked 1 time)\n", "detail": {"index": 999}, "type": "text"},
        {"data": PIXEL, "mimeType": "image/bmp", "detail": {"alt": "a pixel"}, "type": "image"},
    ]
    check_tools(report)


def test_tasks_that_cannot_be_listed_are_asked_for_by_index(play: Play) -> None:
    last = 10_000_000 - 1
    calls = [["list_tasks", "train"], ["num_tasks", "train"], ["get_task", "train", last]]
    calls += [["get_task_range", "train", -2, None], ["get_task", "train", last + 1], ["list_splits"]]
    listed, count, task, tail, outside, splits = play("task_queries", name="indexed", variant="indexed", calls=calls)

    assert (listed["error"], listed["status"]) != (None, None)
    assert "index-based API" in listed["text"]
    assert value(count) == 10_000_000
    assert value(task)["task_spec"] == {"square": last * last}
    assert specs(value(tail)) == [{"square": (last - 1) ** 2}, {"square": last * last}]
    assert outside["status"] == 400
    assert value(splits) == ["train"]


def test_questions_that_have_no_answer_say_why(play: Play) -> None:
    calls = [["list_tasks", "nope"], ["num_tasks", "nope"], ["get_task", "test", 1000], ["get_task", "test", -1]]
    calls += [["get_task_range", "nope", 0, 1]]
    *splits, outside, negative, part = play("task_queries", name="probe", variant=None, calls=calls)

    for outcome in (*splits, part):
        assert outcome["status"] == 400
        assert all(name in outcome["text"] for name in ("nope", "train", "test", "odd")), outcome["text"]
    assert outside["status"] == negative["status"] == 400
    assert "1000" in outside["text"]
    assert "-1" in negative["text"]


def test_an_unknown_environment_is_named(play: Play) -> None:
    calls: list[list[Any]] = [["list_splits"], ["list_tasks", "test"], ["list_tools"]]
    for outcome in play("task_queries", name="nope", variant="nope", calls=calls):
        assert outcome["status"] == 404
        assert "unknown environment 'nope'" in outcome["text"]


class TestByName:
    """A server with several environments. openreward's client puts only a variant's name into its paths."""

    @pytest.mark.parametrize("name", ["other", "OTHER"])
    def test_queries_and_sessions_by_task(self, play: Play, name: str) -> None:
        report = play("listed_episode", name=name, variant=name, split="special", index=3)

        assert report["task"]["task_spec"] == {"other": 3, "split": "special"}
        assert [block["text"] for block in value(report["prompt"])] == ["the other one, task 3"]
        assert [tool["name"] for tool in value(report["list_tools None"])] == ["name_it", "special"]

    def test_a_tool_is_listed_and_callable_only_for_its_tasks(self, play: Play) -> None:
        call = ["special", {"answer": "yes"}]
        tasks = [[{"other": 0, "split": "special"}, call], [{"other": 0, "split": "test"}, call]]
        ((listed,), (hidden,)) = play("calls", name="other", variant="other", sessions=tasks)

        assert value(listed)["metadata"] == {"special": True}
        assert hidden["error"] == "ToolCallError"
        assert "'special' is not a valid tool" in hidden["text"]

    def test_openreward_sessions_by_index_of_a_variant(self, openreward: Driver, server: ServedEnvironments) -> None:
        where = {"name": "anything", "variant": "other", "index": 1, "tool": "name_it"}
        for split in ("test", "special"):
            report = value(openreward.play(server.url, "session_by_index", split=split, **where))

            assert [block["text"] for block in value(report["prompt"])] == ["the other one, task 1"]
            assert value(report["call"])["reward"] == 2

    @pytest.mark.parametrize("name", ["other", "Other", "someone/other"])
    def test_openreward_without_a_variant(self, openreward: Driver, server: ServedEnvironments, name: str) -> None:
        # It asks for /splits, /task, … and names the environment in a header that its own server does not look at.
        where = {"name": name, "variant": None}
        report = openreward.play(server.url, "queries", split="special", index=1, **where)
        session = value(openreward.play(server.url, "session_by_index", split="test", index=1, tool="name_it", **where))

        assert value(report["list_splits"]) == ["test", "special"]
        assert value(report["get_task"])["environment_name"] == "other"
        assert [block["text"] for block in value(session["prompt"])] == ["the other one, task 1"]
        assert [tool["name"] for tool in value(session["tools"])] == ["name_it"]
        assert value(session["call"])["reward"] == 2

    def test_openreward_by_a_name_of_its_platform(self, openreward: Driver, server: ServedEnvironments) -> None:
        # Where the name is none of this server's, its bare paths are the first environment's, and the answers say so.
        where = {"name": "someone/something", "variant": None, "split": "odd", "index": 1}
        report = openreward.play(server.url, "queries", **where)
        session = value(openreward.play(server.url, "session_by_index", tool="hint", **where))

        assert value(report["list_splits"]) == ["train", "test", "odd"]
        assert value(report["get_task"])["environment_name"] == "probe"
        assert "What is 1+1?" in value(session["prompt"])[0]["text"]
        assert value(session["call"])["blocks"][0]["text"] == "Add the two numbers."

    def test_ors_sdk_sessions_by_index_of_the_first(self, ors_sdk: Driver, server: ServedEnvironments) -> None:
        where = {"name": "probe", "variant": None, "split": "odd", "index": 2, "tool": "hint"}
        report = value(ors_sdk.play(server.url, "session_by_index", **where))

        assert "What is 2+2?" in value(report["prompt"])[0]["text"]
        assert value(report["call"])["blocks"][0]["text"] == "Add the two numbers."

    def test_ors_sdk_sessions_by_index_of_another_are_refused(
        self, ors_sdk: Driver, server: ServedEnvironments
    ) -> None:
        # Its client leaves the name out of /create, so the session is one of the first environment. The routes that
        # it asks for afterwards carry the name: that is where the mistake shows, and it is not played silently.
        where = {"name": "other", "variant": None, "index": 1, "tool": "name_it"}
        report = value(ors_sdk.play(server.url, "session_by_index", split="test", **where))

        for outcome in report.values():
            assert "error" in outcome
            assert "400" in outcome["text"]
            assert "probe" in outcome["text"]
            assert "other" in outcome["text"]

    def test_ors_sdk_splits_of_another_are_refused(self, ors_sdk: Driver, server: ServedEnvironments) -> None:
        where = {"name": "other", "variant": None, "index": 1, "tool": "name_it"}
        refused = ors_sdk.play(server.url, "session_by_index", split="special", **where)

        assert "400" in refused["text"]
        assert all(name in refused["text"] for name in ("special", "train", "test", "odd"))


class TestOpenrewardExtras:
    """What openreward's client asks beyond ORS."""

    def test_what_a_server_of_its_own_would_answer(self, openreward: Driver, server: ServedEnvironments) -> None:
        report = openreward.play(server.url, "extras")

        version = value(report["version"])
        assert isinstance(version["version"], str)
        assert version["version"]
        assert value(report["list_required_secrets"]) == value(report["owned list_required_secrets"]) == []
        assert value(report["supports_score_group"]) is value(report["session supports_score_group"]) is False
        assert report["score_group"]["error"] == "ScoreGroupUnsupported"
        assert report["prompt without a session"]["status"] == report["get_task_difficulty"]["status"] == 404

    def test_messages_are_the_prompt(self, openreward: Driver, server: ServedEnvironments) -> None:
        report = openreward.play(server.url, "extras")

        (message,) = value(report["get_messages None"])
        text = "  \u3000What is 7+7?\n  (asked 1 time)\n"
        assert message["role"] == "user"
        assert [block.get("text") for block in message["blocks"]] == [text, None]
        for form in ("openai", "openrouter"):
            assert value(report[f"get_messages {form}"])[0]["content"][0] == {"type": "text", "text": text}
        assert value(report["get_messages anthropic"])["messages"][0]["content"][0] == {"type": "text", "text": text}
        assert value(report["get_messages google"])["contents"][0]["parts"][0] == {"text": text}

    @pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
    def test_a_terminal_tool_takes_the_last_message(
        self, openreward: Driver, server: ServedEnvironments, sync: bool
    ) -> None:
        where = {"name": "closing", "variant": "closing"}
        report = openreward.play(server.url, "terminal", sync=sync, message="  \u2028the end\n", **where)

        spec = {"name": "close_with", "arg": "message", "description": "Takes the last word."}
        assert value(report["env terminal_tool"]) == value(report["terminal_tool"]) == spec
        assert value(report["env is_final"]) is value(report["is_final"]) is True
        assert [tool["name"] for tool in value(report["listed"])] == ["look"]
        output = value(report["call"])
        assert (output["blocks"][0]["text"], output["reward"], output["finished"]) == ("  \u2028the end\n", 11.0, True)
        assert (report["again"]["error"], report["again"]["reason"]) == ("ToolCallError", "episode_finished")

    def test_without_a_terminal_tool(self, openreward: Driver, server: ServedEnvironments) -> None:
        report = openreward.play(server.url, "terminal", name="probe", variant=None, message="unheard")

        assert value(report["env terminal_tool"]) is value(report["terminal_tool"]) is None
        assert value(report["env is_final"]) is value(report["is_final"]) is False
        assert (report["call"]["error"], report["call"]["reason"]) == ("ToolCallError", "not_found")

    def test_a_toolset_is_refused_with_the_word(self, openreward: Driver, server: ServedEnvironments) -> None:
        # harnesses look for the word to try again without
        refused = openreward.play(server.url, "toolset", name="claude-code")

        assert refused["status"] == 400
        assert "toolset" in refused["text"]
