"""Episodes over plain HTTP: `/reset`, `/step` and `/state`, and which session a request means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from served import Served, wait_until

from .games import LIVES, Adder, Alone, gate
from .talking import Socket


def begin(served: Served, **body: Any) -> tuple[str, Any]:
    answer = served.client.post("/reset", json=body)
    assert answer.status_code == 200, answer.text
    return answer.headers["X-Session-ID"], answer.json()


def step(served: Served, sid: str | None = None, /, more: Any = None, **action: Any) -> httpx.Response:
    headers = {"X-Session-ID": sid} if sid else {}
    return served.client.post("/step", json={"action": action, **(more or {})}, headers=headers)


def test_one_episode_under_the_id_that_reset_answers_with(served: Served) -> None:
    sid, begun = begin(served, seed=3)
    assert begun == {
        "observation": {"metadata": {}, "total": 0, "filling": None},
        "reward": None,
        "done": False,
        "metadata": None,
    }
    assert "set-cookie" not in served.client.post("/reset").headers
    assert step(served, sid, number=2).json()["observation"]["total"] == 2
    assert step(served, sid, number=3).json()["observation"]["total"] == 5
    state = served.client.get("/state", headers={"X-Session-ID": sid}).json()
    assert state == {"episode_id": None, "step_count": 2, "total": 5, "seed": 3, "split": None}
    ended = step(served, sid, do="end").json()
    assert ended["done"] is True and ended["reward"] == 1.0
    again = served.client.post("/reset", json={"seed": 4}, headers={"X-Session-ID": sid})
    assert again.headers["X-Session-ID"] == sid
    assert served.client.get("/state", headers={"X-Session-ID": sid}).json()["seed"] == 4


def test_a_client_may_choose_the_id(served: Served) -> None:
    headers = {"X-Session-ID": "my own, chosen by me"}
    assert served.client.post("/reset", headers=headers).headers["X-Session-ID"] == headers["X-Session-ID"]
    assert served.client.post("/step", json={"action": {"number": 4}}, headers=headers).status_code == 200
    assert served.client.get("/state", headers=headers).json()["total"] == 4


def test_an_episode_id_names_the_episode_too(served: Served) -> None:
    sid, _ = begin(served, episode_id="ep-1")
    assert step(served, None, number=2, more={"episode_id": "ep-1"}).json()["observation"]["total"] == 2
    assert served.client.get("/state", params={"episode_id": "ep-1"}).json()["total"] == 2
    assert step(served, sid, number=2).json()["observation"]["total"] == 4
    # the same name again is the same session, reset
    assert begin(served, episode_id="ep-1")[0] == sid
    assert served.client.get("/state", params={"episode_id": "ep-1"}).json()["total"] == 0


def test_without_a_name_each_request_is_alone_and_is_told_so(served: Served) -> None:
    made, closed = LIVES["made"], LIVES["closed"]
    answer = step(served, None, number=2)
    assert answer.json()["observation"]["total"] == 2
    assert "X-Session-ID" in answer.headers["X-ORS-Notice"] and "of its own" in answer.headers["X-ORS-Notice"]
    assert "X-Session-ID" not in answer.headers
    assert served.client.get("/state").json()["step_count"] == 0
    wait_until(lambda: (LIVES["made"], LIVES["closed"]) == (made + 2, closed + 2))


def test_an_unknown_session_is_told_how_to_get_one(served: Served) -> None:
    answer = step(served, "nobody", number=2)
    assert answer.status_code == 404
    assert "/reset" in answer.json()["detail"] and answer.json()["kind"] == "unknown_session"


def test_rewards_are_floats_and_there_are_always_four_keys(served: Served) -> None:
    sid, _ = begin(served)
    for given, told in ((True, 1.0), (3, 3.0), (None, None), (-0.5, -0.5)):
        answer = step(served, sid, do="reward", value=given).json()
        assert list(answer) == ["observation", "reward", "done", "metadata"]
        assert answer["reward"] == told and isinstance(answer["reward"], float | None)
    large = step(served, sid, do="reward", value=10**400)
    assert large.status_code == 500 and large.json()["kind"] == "bad_output"
    assert step(served, sid, do="told").json()["metadata"] == {"note": "seen"}


def test_what_a_step_is_told_beside_the_action(served: Served) -> None:
    sid, _ = begin(served)
    more = {"timeout_s": 4, "hint": "left", "nothing": 1, "request_id": "r"}
    told = step(served, sid, do="told", more=more).json()
    assert told["observation"]["filling"] == {"timeout_s": 4.0, "hint": "left"}


def test_a_step_has_its_time_over_http(served: Served) -> None:
    entered, go = gate("http")
    sid, _ = begin(served)
    answer = step(served, sid, do="wait", value="http", more={"timeout_s": 0.1})
    assert entered.is_set()
    go.set()
    assert answer.json()["kind"] == "tool_timeout"


def test_keys_that_mean_nothing_are_named_in_a_header(served: Served) -> None:
    answer = served.client.post("/reset", json={"splti": "train", "seed": 1})
    assert answer.status_code == 200
    assert answer.headers["X-ORS-Notice"] == "left out: splti; reset() takes episode_id, seed, split"
    assert answer.json()["metadata"] is None


def test_a_seed_that_an_environment_ignores_is_named(served: Served) -> None:
    answer = served.client.post("/bare/reset", json={"seed": 1})
    assert "left out: seed" in answer.headers["X-ORS-Notice"]
    assert answer.json()["observation"] == {"metadata": {"hello": "there"}}


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/reset", b'{"seed": -1}', ["body", "seed"]),
        ("/reset", b'{"seed": "x"}', ["body", "seed"]),
        ("/reset", b'{"episode_id": "' + b"e" * 256 + b'"}', ["body", "episode_id"]),
        ("/reset", b"[1]", ["body"]),
        ("/reset", b"{", ["body", 1]),
        ("/step", b"", ["body"]),
        ("/step", b"{}", ["body", "action"]),
        ("/step", b'{"action": 3}', ["body", "action"]),
        ("/step", b'{"action": {}, "timeout_s": 0}', ["body", "timeout_s"]),
        ("/step", b'{"action": {}, "request_id": 3}', ["body", "request_id"]),
        ("/step", b'{"action": {"number": "many"}}', ["number"]),
        ("/step", b'{"action": {"nothing": 1}}', ["nothing"]),
    ],
)
def test_a_body_that_does_not_fit_is_told_where(served: Served, path: str, body: bytes, where: list[Any]) -> None:
    answer = served.client.post(path, content=body)
    assert answer.status_code == 422
    [fault] = answer.json()["detail"]
    assert fault["loc"] == where and fault["msg"] and fault["type"]
    assert "input" not in fault


def test_a_body_may_be_missing_and_numbers_may_be_texts(served: Served) -> None:
    assert served.client.post("/reset").status_code == 200
    assert served.client.post("/reset", content=b"null").status_code == 200
    sid, _ = begin(served, seed="7")
    assert served.client.get("/state", headers={"X-Session-ID": sid}).json()["seed"] == 7


def test_what_fails_is_told_as_json(served: Served) -> None:
    sid, _ = begin(served)
    answer = step(served, sid, do="fail")
    assert answer.status_code == 500 and "it fell over" in answer.json()["detail"]
    answer = step(served, sid, do="nan")
    assert answer.status_code == 500 and answer.json()["kind"] == "bad_output"
    assert served.client.get("/state", headers={"X-Session-ID": sid}).json()["step_count"] == 2


def test_other_methods_are_told_what_is_allowed(served: Served) -> None:
    for path in ("/reset", "/step", "/mcp"):
        answer = served.client.get(path)
        assert answer.status_code == 405 and answer.headers["Allow"] == "POST"


def test_a_session_is_of_one_environment(served: Served) -> None:
    sid, _ = begin(served)
    wrong = served.client.post("/bare/step", json={"action": {}}, headers={"X-Session-ID": sid})
    assert wrong.status_code == 400 and "adder" in wrong.json()["detail"].lower()
    right = served.client.post("/Adder/step", json={"action": {"number": 1}}, headers={"X-Session-ID": sid})
    assert right.status_code == 200


def test_threads_keep_to_a_session_over_http(served: Served) -> None:
    sid, _ = begin(served)
    served.client.get("/state", headers={"X-Session-ID": sid})
    assert step(served, sid, do="threads").json()["observation"]["total"] == 1


def test_an_episode_id_never_joins_the_session_of_a_socket(served: Served) -> None:
    with Socket(served.url) as socket:
        socket.reset(episode_id="mine")
        answer = step(served, None, number=1, more={"episode_id": "mine"})
        assert "X-ORS-Notice" in answer.headers
        begin(served, episode_id="mine")
        assert socket.state()["step_count"] == 0


def test_an_episode_id_is_joined_under_the_same_key_only() -> None:
    running = Served([Adder], api_keys=("one", "two"))
    one, two = ({"Authorization": f"Bearer {key}"} for key in ("one", "two"))
    try:
        client = running.client
        sid = client.post("/reset", json={"episode_id": "e"}, headers=one).headers["X-Session-ID"]
        other = client.post("/step", json={"action": {"number": 1}, "episode_id": "e"}, headers=two)
        assert "X-ORS-Notice" in other.headers
        assert client.post("/step", json={"action": {}}, headers={**two, "X-Session-ID": sid}).status_code == 403
        assert client.post("/reset", json={"episode_id": "e"}, headers=two).headers["X-Session-ID"] != sid
        mine = client.post("/step", json={"action": {"number": 1}, "episode_id": "e"}, headers=one)
        assert mine.json()["observation"]["total"] == 1 and mine.headers["X-Session-ID"] == sid
        assert client.post("/reset").status_code == 401
    finally:
        running.stop()


@pytest.fixture
def quick() -> Iterator[Served]:
    """Sessions of `/reset` wait for a first step no longer than half a second; there is one place."""
    running = Served([Alone], http_keep=0.5, session_cookie=True)
    yield running
    running.stop()


def test_a_cookie_where_it_is_wanted(quick: Served) -> None:
    with httpx.Client(base_url=quick.url) as browser:
        set_cookie = browser.post("/reset").headers["set-cookie"]
        assert "HttpOnly" in set_cookie and "SameSite=Strict" in set_cookie
        assert browser.post("/step", json={"action": {"number": 1}}).json()["observation"]["total"] == 1
        assert browser.post("/step", json={"action": {"number": 1}}).json()["observation"]["total"] == 2
        assert browser.get("/state").json()["total"] == 2


def test_a_reset_that_nobody_follows_gives_way_to_others(quick: Served) -> None:
    sids = [quick.client.post("/reset", headers={"Cookie": ""}).headers["X-Session-ID"] for _ in range(5)]
    assert len(set(sids)) == 5
    assert quick.client.post("/step", json={"action": {}}, headers={"X-Session-ID": sids[0]}).status_code == 410
    wait_until(lambda: quick.status()["sessions"] == 0)


def test_requests_without_a_session_are_counted(quick: Served) -> None:
    entered, go = gate("counted")
    with Socket(quick.url) as socket:
        socket.reset()
        refused = quick.client.post("/step", json={"action": {}})
        assert refused.status_code == 503 and refused.headers["Retry-After"] == "2"
        assert "1/1" in refused.json()["detail"]
        go.set()
        assert not entered.is_set()
