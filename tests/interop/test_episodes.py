"""Whole episodes with both clients: many at once, how they begin, what goes wrong in them, and how they end."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .processes import Driver, ServedEnvironments, log_file
from .test_queries import TOOLS, value
from .texts import sha256, text_of

Play = Callable[..., Any]


def said(outcome: dict[str, Any]) -> str:
    """The text of a tool's result."""
    return str(value(outcome)["blocks"][0]["text"])


def check_episodes(report: Any, count: int) -> None:
    assert len(report["episodes"]) == count
    sids = set()
    for index, outcome in enumerate(report["episodes"]):
        episode = value(outcome)
        sids.add(episode["sid"])
        assert episode["prompt"][0]["text"] == f"  \u3000What is {index}+{index}?\n  (asked 1 time)\n"
        assert episode["tools"] == TOOLS
        assert (episode["hint"]["blocks"][0]["text"], episode["hint"]["reward"]) == ("Add the two numbers.", None)
        assert (episode["guess"]["blocks"][0]["text"], episode["guess"]["reward"]) == (f"    {index}?", -0.125)
        assert episode["text"]["blocks"][0]["text"]["sha256"] == sha256(text_of("indented", 20_000, index))
        assert (episode["submit"]["reward"], episode["submit"]["finished"]) == (1.0, True)
        # a call after the end is refused and pays nothing
        assert episode["late"]["error"] == "ToolCallError"
    assert len(sids) == count


def test_two_hundred_episodes_at_32_at_once(play: Play) -> None:
    report = play("episodes", name="probe", variant=None, count=200, at_once=32)

    check_episodes(report, 200)
    assert report["peak"] == 32


def test_episodes_with_the_synchronous_client(play: Play) -> None:
    check_episodes(play("episodes", sync=True, name="probe", variant=None, count=20, at_once=8), 20)


def test_the_end_is_final_and_says_so(openreward: Driver, server: ServedEnvironments) -> None:
    actions = [["submit", {"answer": "wrong"}], ["submit", {"answer": "0"}], ["hint"], ["nope"]]
    ((first, *late),) = openreward.play(server.url, "calls", name="probe", variant=None, sessions=[[{}, *actions]])

    assert (value(first)["reward"], value(first)["finished"]) == (0.0, True)
    assert [outcome["reason"] for outcome in late] == ["episode_finished"] * 3


def test_of_many_answers_at_once_one_is_paid(play: Play) -> None:
    outcomes = play("race", tool="submit", given={"answer": "0"}, runners=8)

    paid = [outcome["value"]["reward"] for outcome in outcomes if "value" in outcome]
    assert paid == [1.0]
    assert [outcome["error"] for outcome in outcomes if "error" in outcome] == ["ToolCallError"] * 7


@pytest.mark.parametrize("tool", ["wait", "wait_plainly"])
def test_calls_of_one_tool_take_turns(play: Play, tool: str) -> None:
    outcomes = play("race", tool=tool, given={"seconds": 0.1}, runners=5)

    # each says how many began before it ended: more than its own place in the queue if they overlapped
    assert sorted(said(outcome) for outcome in outcomes) == ["1", "2", "3", "4", "5"]


class TestSecrets:
    """Both clients send them in a header. openreward's adds its own key under two names."""

    GIVEN = {"openai_api_key": "sk-12345678", "Pass Wort": "pä\u2028ss  \U0001f511 ", "empty": ""}

    @pytest.mark.parametrize("split", [None, "test"], ids=["by task", "by index"])
    def test_arrive(self, play: Play, driver: Driver, split: str | None) -> None:
        own = {} if driver.peer == "ors-sdk" else {"api_key": "", "OPENREWARD_API_KEY": ""}

        assert play("secrets", given=self.GIVEN, split=split) == {**own, **self.GIVEN}

    def test_none(self, play: Play, driver: Driver) -> None:
        own = {} if driver.peer == "ors-sdk" else {"api_key": "", "OPENREWARD_API_KEY": ""}

        assert play("secrets", given={}, split=None) == own

    def test_many(self, play: Play) -> None:
        # a header has limits of its own: 40 keys with long values take about 8 KiB of it
        given = {f"key_{number}": f"{number:0120}" for number in range(40)}

        assert given.items() <= play("secrets", given=given, split=None).items()

    def test_are_in_no_log(self, play: Play, server: ServedEnvironments) -> None:
        secret = uuid.uuid4().hex
        assert play("secrets", given={"k": secret}, split=None)["k"] == secret
        assert secret not in server.log.read_text()


class TestFaults:
    """Nothing that goes wrong in a call ends anything but that call, as far as the client lets it."""

    def test_unknown_tools_bad_input_and_tools_that_refuse(self, play: Play, driver: Driver) -> None:
        actions = [
            ["nope", {}],
            ["_call_tool", {}],
            ["task_spec", {}],
            ["submit", {}],
            ["submit", {"answer": 5}],
            ["hint", {"unexpected": 1}],
            ["refuse", {"message": "  the disk is full\n  twice"}],
            ["submit", {"answer": "0"}],
        ]
        (outcomes,) = play("calls", name="probe", variant=None, sessions=[[{}, *actions]])

        *unknown, missing, mistyped, surplus, refused, last = outcomes
        for name, outcome in zip(("nope", "_call_tool", "task_spec"), unknown, strict=True):
            assert outcome["error"] == "ToolCallError"
            assert f"'{name}' is not a valid tool" in outcome["text"]
        for outcome in (missing, mistyped, surplus):
            assert outcome["error"] == "ToolCallError"
            assert "Tool input validation error" in outcome["text"]
        assert "answer" in missing["text"]
        assert "answer" in mistyped["text"]
        assert "unexpected" in surplus["text"]
        assert refused["error"] == "ToolCallError"
        assert refused["text"].endswith("Tool 'refuse' failed:   the disk is full\n  twice")
        # none of these ended the episode
        assert value(last)["reward"] == 1.0
        if driver.peer == "openreward":
            assert [outcome["reason"] for outcome in unknown] == ["not_found"] * 3
            assert [o["reason"] for o in (missing, mistyped, surplus)] == ["input_validation"] * 3

    def test_exceptions(self, play: Play, driver: Driver) -> None:
        faults = {
            "explode": ["explode", {"message": "kaputt\nin two lines"}],
            "explode_plainly": ["explode_plainly", {"message": "kaputt too"}],
            "empty": ["explode", {"message": ""}],
            "long": ["explode", {"message": "äöü " * 50_000}],
            "misreturn": ["misreturn", {}],
        }
        sessions = [[{}, action, ["hint"]] for action in faults.values()]
        outcomes = dict(zip(faults, play("calls", name="probe", variant=None, sessions=sessions), strict=True))

        raised = "RuntimeError" if driver.peer == "ors-sdk" else "ToolFailed"
        for fault, after in outcomes.values():
            assert fault["error"] == raised
            # openreward's client gives a session up after an exception
            assert driver.peer == "openreward" or said(after) == "Add the two numbers."
        assert "kaputt\nin two lines" in outcomes["explode"][0]["text"]
        assert "kaputt too" in outcomes["explode_plainly"][0]["text"]
        # an exception without a text is named at least
        assert "RuntimeError" in outcomes["empty"][0]["text"]
        assert "äöü äöü" in str(outcomes["long"][0]["text"]) or outcomes["long"][0]["text"]["length"] > 2_000
        assert "misreturn" in outcomes["misreturn"][0]["text"]
        assert "ToolOutput" in outcomes["misreturn"][0]["text"]

    def test_input_that_is_no_json(self, play: Play) -> None:
        action = ["echo", {"text": "", "value": float("nan")}]
        ((refused, after),) = play("calls", name="probe", variant=None, sessions=[[{}, action, ["hint"]]])

        assert "NaN" in refused["text"]
        assert (refused["status"] or 400) // 100 == 4
        assert said(after) == "Add the two numbers."

    def test_a_setup_that_fails_is_reported_by_whatever_comes_next(self, play: Play) -> None:
        task = {"setup_error": "no more machines"}
        sessions = [[task, ["hint"], ["hint"]], [task, ["prompt"]]]
        ((call, again), (prompt,)) = play("calls", name="probe", variant=None, sessions=sessions)

        for outcome in (call, again, prompt):
            assert "error" in outcome
            assert "no more machines" in outcome["text"]


class TestLifetime:
    """A client that leaves takes the episode with it."""

    @pytest.mark.parametrize("leave", ["exit", "error"])
    def test_leaving_tears_down(self, play: Play, leave: str) -> None:
        assert play("lifetime", token=uuid.uuid4().hex, leave=leave)["lived"] == ["made", "ready", "gone"]

    def test_leaving_while_setup_runs(self, play: Play) -> None:
        report = play("lifetime", token=uuid.uuid4().hex, leave="exit during setup")

        # the constructor ran, so teardown does, though setup never ended
        assert report["lived"] == ["made", "gone"]
        assert value(report["left"]) is None
        assert report["left"]["took"] < 10


def test_slow_setup(play: Play) -> None:
    slow = {"setup_s": 2.5}
    sessions = [[slow, ["wait", {"seconds": 0}], ["waited"]], [slow, ["prompt"], ["waited"]]]
    ((call, count), (prompt, none)) = play("calls", name="probe", variant=None, sessions=sessions)

    assert (said(call), said(count), said(none)) == ("1", "1", "0")
    assert "asked 1 time" in value(prompt)[0]["text"]
    assert min(call["took"], prompt["took"]) > 1.5


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedEnvironments]:
    log = log_file(tmp_path_factory.mktemp("guarded"), "server")
    with ServedEnvironments(log, environ={"ORS_API_KEYS": "first-key-1234,second-key-5678"}) as served:
        yield served


class TestKeys:
    """A server with API keys: both clients send theirs with every request, pings and queries too."""

    @pytest.mark.parametrize("key", ["first-key-1234", "second-key-5678"])
    def test_with_a_key(self, driver: Driver, guarded: ServedEnvironments, key: str) -> None:
        driver.ask(guarded.url, "enter", key=key)
        report = driver.report()

        assert value(report["query"]) == 1000
        assert value(report["episode"])["reward"] == 1.0

    @pytest.mark.parametrize("key", ["first-key-123", None], ids=["wrong", "none"])
    def test_without(self, driver: Driver, guarded: ServedEnvironments, key: str | None) -> None:
        driver.ask(guarded.url, "enter", key=key)
        report = driver.report()

        assert report["query"]["error"] == report["episode"]["error"] == "AuthenticationError"
