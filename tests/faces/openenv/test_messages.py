"""The messages of `/ws`: what each is answered, with which code, in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from served import Served, wait_until

from .games import LIVES, Broken, gate
from .talking import Socket


def test_an_episode_and_another_on_the_same_socket(served: Served) -> None:
    with Socket(served.url) as socket:
        assert socket.ask({"type": "reset"}) == {
            "type": "observation",
            "data": {"observation": {"metadata": {}, "total": 0, "filling": None}, "reward": None, "done": False},
        }
        assert socket.step(number=3)["observation"]["total"] == 3
        assert socket.step(number=4)["observation"]["total"] == 7
        assert socket.state() == {"episode_id": None, "step_count": 2, "total": 7, "seed": None, "split": None}
        ended = socket.step("end")
        assert ended["done"] is True and ended["reward"] == 1.0
        socket.reset(seed=5, episode_id="again")
        assert socket.state() == {"episode_id": "again", "step_count": 0, "total": 0, "seed": 5, "split": None}


def test_the_order_of_keys_is_openenvs(served: Served) -> None:
    """The metadata comes first in an observation; beside it, it is there only where there is any."""
    with Socket(served.url) as socket:
        assert list(socket.reset()) == ["observation", "reward", "done"]
        told = socket.reset(split="told")
        assert list(told) == ["observation", "reward", "done", "metadata"]
        assert list(told["observation"]) == ["metadata", "total", "filling"]
        assert told["metadata"] == told["observation"]["metadata"] == {"begun": True}


@pytest.mark.parametrize("reward", [True, False, 3, 0.5, -2.0, None])
def test_rewards_keep_their_type_over_a_socket(served: Served, reward: Any) -> None:
    with Socket(served.url) as socket:
        socket.reset()
        answer = socket.step("reward", value=reward)["reward"]
        assert answer == reward and type(answer) is type(reward)


def test_nan_is_null_in_an_observation_and_an_error_as_a_reward(served: Served) -> None:
    with Socket(served.url) as socket:
        socket.reset()
        assert socket.step("holes")["observation"]["filling"] == [None, None, [1]]
        failed = socket.error({"type": "step", "data": {"do": "nan"}})
        assert failed["code"] == "EXECUTION_ERROR" and "nan" in failed["message"].lower()
        assert socket.state()["step_count"] == 2


def test_what_is_no_json_leaves_the_step_done_and_the_session_alive(served: Served) -> None:
    with Socket(served.url) as socket:
        socket.reset()
        assert socket.error({"type": "step", "data": {"do": "object"}})["code"] == "EXECUTION_ERROR"
        assert socket.state()["step_count"] == 1


def test_what_fails_says_so_and_the_session_goes_on(served: Served) -> None:
    with Socket(served.url) as socket:
        socket.reset()
        failed = socket.error({"type": "step", "data": {"do": "fail"}})
        assert failed["code"] == "EXECUTION_ERROR" and "it fell over" in failed["message"]
        assert socket.step(number=1)["observation"]["total"] == 1


@pytest.mark.parametrize("text", ["", "{", '{"type": "state"', "nonsense", "[1, 2]", "7", '"state"', "null", b"\x00"])
def test_what_is_no_object_is_invalid_json(served: Served, text: str | bytes) -> None:
    with Socket(served.url) as socket:
        socket.reset()
        said = socket.error(text)
        assert said["code"] == "INVALID_JSON" and said["message"].startswith("Invalid JSON")
        assert socket.state()["step_count"] == 0


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ({"type": "what"}, "what"),
        ({}, ""),
        ({"data": {}}, ""),
        ({"type": None}, "None"),
        ({"type": ["reset"]}, "reset"),
    ],
)
def test_a_type_that_there_is_not(served: Served, message: Any, named: str) -> None:
    with Socket(served.url) as socket:
        said = socket.error(message)
        assert said["code"] == "UNKNOWN_TYPE" and named in said["message"]
        assert socket.reset()["done"] is False


@pytest.mark.parametrize(
    ("message", "where"),
    [
        ({"type": "step"}, ["data"]),
        ({"type": "step", "data": None}, ["data"]),
        ({"type": "step", "data": [1]}, ["data"]),
        ({"type": "reset", "data": None}, ["data"]),
        ({"type": "reset", "data": 3}, ["data"]),
        ({"type": "reset", "extra": 1}, ["extra"]),
        ({"type": "state", "data": {}}, ["data"]),
        ({"type": "close", "data": {}}, ["data"]),
        ({"type": "mcp"}, ["data"]),
        ({"type": "state", "timeout_s": 0}, ["timeout_s"]),
        ({"type": "state", "timeout_s": "soon"}, ["timeout_s"]),
        ({"type": "state", "request_id": "a"}, ["request_id"]),
    ],
)
def test_a_message_that_does_not_fit_is_told_where(served: Served, message: Any, where: list[str]) -> None:
    with Socket(served.url) as socket:
        said = socket.error(message)
        assert (said["code"], said["message"]) == ("VALIDATION_ERROR", "Invalid message")
        assert said["errors"][0]["loc"] == where
        assert "input" not in said["errors"][0]
        assert socket.reset()["done"] is False


@pytest.mark.parametrize("data", [{"nothing": 1}, {"number": "many"}, {"number": [1]}])
def test_an_action_that_does_not_fit(served: Served, data: Any) -> None:
    with Socket(served.url) as socket:
        socket.reset()
        said = socket.error({"type": "step", "data": data})
        assert (said["code"], said["message"]) == ("VALIDATION_ERROR", "Invalid message")
        assert said["errors"][0]["loc"] == [next(iter(data))]
        assert socket.state()["step_count"] == 0


def test_json_as_python_reads_it(served: Served) -> None:
    with Socket(served.url) as socket:
        assert socket.ask('{"type": "reset", "data": {}, "data": {"split": "two"}}')["type"] == "observation"
        assert socket.state()["split"] == "two"
        answer = socket.ask('{"type": "step", "data": {"do": "reward", "value": NaN}}')
        assert answer["data"]["code"] == "EXECUTION_ERROR"
        assert socket.ask(json.dumps({"type": "step", "data": {"value": "\ud800"}}))["type"] == "observation"


def test_close_is_answered_by_closing(served: Served) -> None:
    closed = LIVES["closed"]
    with Socket(served.url) as socket:
        socket.reset()
        socket.say({"type": "close"})
        assert socket.closed() == 1000
    wait_until(lambda: LIVES["closed"] == closed + 1)


def test_answers_come_in_the_order_of_what_was_asked(served: Served) -> None:
    with Socket(served.url) as socket:
        for number in range(100):  # more than a client may send ahead
            socket.say({"type": "reset"} if not number else {"type": "step", "data": {"number": 1}})
        assert socket.hear()["data"]["observation"]["total"] == 0
        assert [socket.hear()["data"]["observation"]["total"] for _ in range(99)] == list(range(1, 100))


def test_messages_wait_for_the_step_before(served: Served) -> None:
    entered, go = gate("order")
    with Socket(served.url) as socket:
        socket.reset()
        socket.say({"type": "step", "data": {"do": "wait", "number": 1, "value": "order"}})
        socket.say({"type": "state"})
        socket.say("{")
        assert entered.wait(10)
        assert served.client.get("/health").status_code == 200
        go.set()
        assert [socket.hear()["type"] for _ in range(3)] == ["observation", "state", "error"]


def test_a_step_has_its_time_and_its_answer_its_id(served: Served) -> None:
    entered, go = gate("late")
    with Socket(served.url) as socket:
        assert "timeout_s, id" in socket.line.response.headers["X-ORS-Capabilities"]  # type: ignore[union-attr]
        assert socket.ask({"type": "reset", "id": "a"})["id"] == "a"
        late = {"type": "step", "data": {"do": "wait", "value": "late"}, "timeout_s": 0.1, "id": 7}
        answer = socket.ask(late)
        assert entered.is_set()
        go.set()
        assert answer["id"] == 7 and answer["data"]["code"] == "EXECUTION_ERROR"
        assert "0.1" in answer["data"]["message"]
        # what it is told itself it may look to itself
        told = socket.ask({"type": "step", "data": {"do": "told"}, "timeout_s": 3})
        assert told["data"]["observation"]["filling"] == {"timeout_s": 3.0, "hint": None}
        assert "id" not in socket.ask({"type": "state"})


def test_keys_that_mean_nothing_to_reset_are_named_beside_the_observation(served: Served) -> None:
    with Socket(served.url) as socket:
        data = socket.reset(splti="train", seed=1)
        assert data["metadata"] == {
            "ors": {"dropped": ["splti"], "accepted": ["episode_id", "seed", "split"]},
        }
        assert data["observation"]["metadata"] == {}


def test_strict_reset_refuses_them() -> None:
    from .games import Adder

    running = Served([Adder], strict_reset=True)
    try:
        with Socket(running.url) as socket:
            said = socket.error({"type": "reset", "data": {"splti": "train"}})
            assert said["code"] == "VALIDATION_ERROR"
            assert "'splti'" in said["errors"][0]["msg"] and "split" in said["errors"][0]["msg"]
            assert socket.reset(split="train")["done"] is False
    finally:
        running.stop()


def test_environments_are_told_apart_by_the_path(served: Served) -> None:
    with Socket(served.url, "/Bare/ws") as bare, Socket(served.url, "/adder/ws") as adder:
        assert bare.reset()["metadata"] == {"hello": "there"}
        assert "metadata" not in adder.reset()
        assert [bare.ask({"type": "step", "data": {}})["data"]["done"] for _ in range(3)] == [False, False, True]


def test_steps_before_a_reset_are_the_environments_affair(served: Served) -> None:
    with Socket(served.url) as socket:
        assert socket.step(number=2)["observation"]["total"] == 2


def test_one_thread_has_all_of_a_session(served: Served) -> None:
    with Socket(served.url) as socket:
        socket.reset()
        socket.state()
        assert socket.step("threads")["observation"]["total"] == 1


def test_an_environment_that_cannot_be_made() -> None:
    running = Served([Broken])
    try:
        with Socket(running.url) as socket:
            said = socket.error({"type": "reset"})
            assert (said["code"], said["factory_name"]) == ("FACTORY_ERROR", "Broken")
            assert "no disk" in said["message"]
            assert socket.closed() == 1000
        wait_until(lambda: running.status()["sessions"] == 0)
    finally:
        running.stop()
