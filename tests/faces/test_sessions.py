"""Sessions from their creation to their end: one setup, one prompt, one teardown, whatever happens between."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from served import Served, wait_until

from .conftest import Serve
from .probes import Odd, Other, Probe, Slow
from .wire import Episode, Notes, client_of, events_of, exchange, failure_of, result_of


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve(Probe, Other, Slow, Odd)


@pytest.fixture
def client(served: Served) -> httpx.Client:
    return client_of(served)


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


# An id


def test_an_id_as_json_as_the_text_says(client: httpx.Client) -> None:
    answer = client.post("/create_session")
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["sid"]
    assert re.fullmatch("[0-9a-f]{32}", answer.json()["sid"])


def test_an_id_as_events_as_the_clients_need(client: httpx.Client) -> None:
    answer = client.post("/create_session", headers={"Accept": "text/event-stream"})
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    sid = events_of(answer.content)[0].data
    assert answer.content == b"event: task_id\r\ndata: %s\r\n\r\nevent: end\r\ndata: \r\n\r\n" % sid.encode()
    episode = Episode(client, sid=sid).opened()
    assert episode.delete().json() == {"sid": sid}


def test_a_body_of_create_session_is_ignored(client: httpx.Client) -> None:
    assert client.post("/create_session", content=b"{nonsense", headers={"Content-Type": "text/x"}).status_code == 200


def test_ids_are_unique_and_say_nothing(client: httpx.Client) -> None:
    ids = {client.post("/create_session").json()["sid"] for _ in range(50)}
    assert len(ids) == 50
    # no two share a beginning that a counter, a clock or a machine would give them
    assert len({sid[:6] for sid in ids}) == 50


@pytest.mark.parametrize("sid", ["trace-123", "a/b?c", "x" * 512, "3f2504e0-4f89-11d3-9a0c-0305e82c3301"])
def test_any_id_of_the_clients_own_will_do(client: httpx.Client, sid: str) -> None:
    episode = Episode(client, sid=sid).opened()
    assert episode.prompt().status_code == 200
    assert episode.delete().json() == {"sid": sid}


def test_blanks_around_an_id_do_not_count(served: Served, client: httpx.Client) -> None:
    episode = Episode(client).opened()
    request = f"GET /prompt HTTP/1.1\r\nHost: x\r\nX-Session-ID: \t {episode.sid}  \r\n\r\n"
    assert exchange(served.url, request.encode()).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", path) for path in ("/create", "/call", "/ping", "/cancel", "/delete", "/delete_session", "/probe/call")]
    + [("GET", path) for path in ("/prompt", "/task_tools", "/probe/prompt")],
)
def test_a_missing_id(client: httpx.Client, method: str, path: str) -> None:
    for headers in ({}, {"X-Session-ID": ""}):
        answer = client.request(method, path, headers=headers)
        assert failure_of(answer) == (400, "missing_session_id")
        assert answer.json()["detail"] == "X-Session-ID header is required"
    assert failure_of(client.request(method, path, headers={"X-Session-ID": "x" * 513})) == (400, "invalid_header")


# Opening


def test_the_environment_defaults_to_the_first_and_its_case_does_not_matter(client: httpx.Client) -> None:
    assert Episode(client, {}).opened().task_tools().json()["terminal_tool"]["name"] == "answer"
    episode = Episode(client, {}, env="OTHER").opened()
    assert episode.prompt().status_code == 200
    assert failure_of(Episode(client, {}, env_name="nobody").create()) == (404, "unknown_environment")


def test_an_empty_task_is_a_task(client: httpx.Client) -> None:
    assert Episode(client, {}).opened().prompt().json()[0]["text"] == "Do something."


def test_the_task_of_a_split_reaches_the_environment(client: httpx.Client, notes: Notes) -> None:
    assert Episode(client, split="hard", index=1).opened().prompt().status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"env_name": "probe"},
        {"split": "train"},
        {"index": 0},
        {"task_spec": {}, "split": "train", "index": 0},
        {"task_spec": {}, "split": "train"},
        {"task_spec": {}, "index": 0},
        {"task_spec": None, "split": "train"},
        {"split": None, "index": None},
        {"task_spec": []},
        {"task_spec": "text"},
        {"split": "train", "index": "0"},
        {"split": "train", "index": 0, "seed": 1},
        {"task_spec": {}, "secrets": {"key": 1}},
        {"task_spec": {}, "secrets": ["key"]},
        {"task_spec": {}, "env_name": 3},
        [],
    ],
)
def test_exactly_one_task(client: httpx.Client, body: Any) -> None:
    answer = client.post("/create", json=body, headers={"X-Session-ID": "never"})
    assert failure_of(answer) == (422, "invalid_request")
    assert failure_of(client.get("/prompt", headers={"X-Session-ID": "never"})) == (404, "unknown_session")


def test_what_is_wrong_with_a_task_is_said(client: httpx.Client) -> None:
    def words(body: Any) -> str:
        return str(client.post("/create", json=body, headers={"X-Session-ID": "never"}).json()["detail"])

    assert "Provide either task_spec or both split and index, not neither" in words({})
    assert "not both" in words({"task_spec": {}, "split": "train", "index": 0})
    assert "index is missing" in words({"split": "train"})


def test_a_toolset_is_refused_with_the_word_that_harnesses_look_for(client: httpx.Client) -> None:
    answer = Episode(client, {}, toolset_name="cli").create()
    assert failure_of(answer) == (400, "toolset_not_supported")
    assert "toolset" in answer.json()["detail"]


def test_a_second_create_is_refused_as_clients_know_it(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec()).opened()
    again = episode.create()
    assert failure_of(again) == (400, "session_exists")
    assert again.json()["detail"] == "Session already exists"
    assert episode.prompt().status_code == 200
    assert notes.count("made") == 1


def test_a_repeated_create_is_the_first_again(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec()).opened(**{"Idempotency-Key": "k1"})
    assert episode.opened(**{"Idempotency-Key": "k1"}).prompt().status_code == 200
    assert failure_of(episode.create(**{"Idempotency-Key": "k2"})) == (400, "session_exists")
    assert failure_of(episode.create()) == (400, "session_exists")
    episode.body["task_spec"]["other"] = True
    assert failure_of(episode.create(**{"Idempotency-Key": "k1"})) == (400, "session_exists")
    assert notes.count("made") == 1


@pytest.mark.parametrize("key", [None, "the same"])
def test_creates_at_once_make_one_instance(client: httpx.Client, notes: Notes, key: str | None) -> None:
    episode = Episode(client, notes.spec(hold=["setup"]))
    headers = {"Idempotency-Key": key} if key else {}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: episode.create(**headers), range(8)))
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == ([200] * 8 if key else [200] + [400] * 7)
    notes.open("setup")
    assert episode.prompt().status_code == 200
    assert (notes.count("made"), notes.count("setup")) == (1, 1)
    episode.delete()
    assert notes.count("teardown") == 1


def test_the_constructors_thread_is_not_the_clients_wait(client: httpx.Client, notes: Notes) -> None:
    """`/create` answers while setup goes on."""
    episode = Episode(client, notes.spec(hold=["setup"]), env="slow").opened()
    notes.wait_for("setup")
    assert notes.count("ready") == 0
    notes.open("setup")
    assert episode.text("quick") == "quick"


# Secrets


def header_of(secrets: Any) -> str:
    return base64.b64encode(json.dumps(secrets).encode()).decode()


def test_secrets_from_the_body_and_from_the_header(client: httpx.Client) -> None:
    header = header_of(
        {"a": {"value": "header-aa"}, "b": {"value": "header-bb", "allowed_domains": ["x"]}, "c": "plain-cc"}
    )
    episode = Episode(client, {}, secrets={"a": "body-a1", "d": "body-d1"}).opened(**{"X-Secrets": header})
    assert episode.text("tell_secret", name="a") == "7 a1"  # the body's wins
    assert episode.text("tell_secret", name="b") == "9 bb"
    assert episode.text("tell_secret", name="c") == "8 cc"
    assert episode.text("tell_secret", name="d") == "7 d1"
    output = result_of(episode.call("tell_secret", {"name": "e"}))["output"]
    assert (output["blocks"][0]["text"], output["metadata"]["names"]) == ("none", ["a", "b", "c", "d"])


@pytest.mark.parametrize("secrets", [None, {}])
def test_no_secrets(client: httpx.Client, secrets: Any) -> None:
    episode = Episode(client, {}, secrets=secrets).opened(**{"X-Secrets": ""})
    assert episode.text("tell_secret", name="a") == "none"


@pytest.mark.parametrize(
    "header",
    [
        "hunter2-hunter2",
        base64.b64encode(b"hunter2").decode(),
        base64.b64encode(b'["hunter2"]').decode(),
        base64.b64encode(b'{"key": 7}').decode(),
        base64.b64encode(b'{"key": {"value": ["hunter2"]}}').decode(),
        base64.b64encode(b'{"key": "hunter2", "key": "hunter2"}').decode(),
        base64.b64encode(b'"\xff\xfe"').decode(),
    ],
)
def test_a_malformed_header_is_refused_without_repeating_it(client: httpx.Client, header: str) -> None:
    answer = Episode(client, {}, sid="never").create(**{"X-Secrets": header})
    assert failure_of(answer) == (400, "invalid_header")
    assert "hunter2" not in answer.text and header not in answer.text


# The prompt


def test_a_prompt_is_blocks(client: httpx.Client) -> None:
    blocks = Episode(client, {"prompt": "Hello,\n  you."}).opened().prompt().json()
    assert blocks == [{"text": "Hello,\n  you.", "detail": None, "type": "text"}]
    assert list(blocks[0]) == ["text", "detail", "type"]
    episode = Episode(client, {"prompt": ["One.", {"text": "Two.", "detail": {"lang": "en"}, "type": "text"}]}).opened()
    assert [block["text"] for block in episode.prompt().json()] == ["One.", "Two."]


@pytest.mark.parametrize("prompt", [[], ""])
def test_a_prompt_is_never_empty(client: httpx.Client, prompt: Any) -> None:
    answer = Episode(client, {"prompt": prompt}).opened().prompt()
    assert answer.json() == [{"text": "", "detail": None, "type": "text"}]


def test_the_prompt_is_computed_once(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec(hold=["setup"])).opened()
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(episode.prompt) for _ in range(4)]
        notes.open("setup")
        answers = {answer.result().content for answer in waiting}
    answers |= {episode.prompt().content, client.get("/probe/prompt", headers=episode.headers).content}
    assert len(answers) == 1
    assert notes.count("prompt") == 1


def test_a_prompt_that_fails(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec(fail="prompt")).opened()
    for _ in range(2):
        answer = episode.prompt()
        assert failure_of(answer) == (500, "prompt_failed")
        assert answer.json()["detail"] == "ValueError: prompt fails"
    assert episode.text("echo", text="still here") == "still here"


@pytest.mark.parametrize("prompt", [7, {"no": "block"}, [["x"], 3]])
def test_a_prompt_that_is_none(client: httpx.Client, prompt: Any) -> None:
    answer = Episode(client, {"prompt": prompt}).opened().prompt()
    assert failure_of(answer) == (500, "prompt_failed")
    assert answer.json()["detail"].startswith("Probe.get_prompt returned no prompt")


# Setup


def test_later_requests_wait_for_setup(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec(hold=["setup"])).opened()
    notes.wait_for("setup")
    with ThreadPoolExecutor(4) as pool:
        waiting = [
            pool.submit(episode.prompt),
            pool.submit(episode.task_tools),
            pool.submit(episode.call, "echo", {"text": "x"}),
        ]
        assert episode.ping().json() == {"status": "ok"}  # this one does not wait
        assert not any(answer.done() for answer in waiting)
        notes.open("setup")
        assert [answer.result().status_code for answer in waiting] == [200] * 3
    assert notes.words.index("ready") < notes.words.index("prompt")


def test_a_stream_begins_while_setup_goes_on(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec(hold=["setup"])).opened()
    with episode.begin("echo", {"text": "x"}) as stream:
        pieces = stream.iter_bytes()
        first = next(pieces)
        assert first.startswith(b"event: task_id\r\ndata: ") and first.endswith(b"\r\n\r\n")
        assert notes.count("ready") == 0
        notes.open("setup")
        assert b'"text":"x"' in b"".join(pieces)


@pytest.mark.parametrize(("where", "words"), [("make", "make fails"), ("setup", "setup fails")])
def test_a_setup_that_fails(client: httpx.Client, notes: Notes, where: str, words: str) -> None:
    episode = Episode(client, notes.spec(fail=where)).opened()
    texts = set()
    for _ in range(3):
        for answer in (episode.prompt(), episode.task_tools(), episode.call("echo", {"text": "x"}), episode.ping()):
            assert failure_of(answer) == (500, "setup_failed")
            texts.add(answer.text)
    # the words do not grow with each request
    assert len(texts) == 1 and f"ValueError: {words}" in texts.pop()
    # what was made is torn down without waiting for anybody
    if where == "setup":
        notes.wait_for("gone")
    assert episode.delete().status_code == 200
    assert notes.count("teardown") == (1 if where == "setup" else 0)
    assert failure_of(episode.prompt()) == (410, "session_ended")


def test_a_call_that_waits_for_a_setup_that_fails(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec(hold=["setup"], fail="setup")).opened()
    with episode.begin("echo", {"text": "x"}) as stream:
        pieces = stream.iter_bytes()
        next(pieces)
        notes.open("setup")
        events = events_of(b"event: x\r\n\r\n" + b"".join(pieces))
    assert (events[-1].name, events[-1].data) == ("error", "ValueError: setup fails")
    assert notes.count("ran echo") == 0


@pytest.mark.parametrize("env", ["probe", "slow"])
def test_a_setup_over_its_time_is_cut_and_torn_down(serve: Serve, notes: Notes, env: str) -> None:
    client = client_of(serve(Probe, Other, Slow, Odd, setup_timeout=0.2, cut_grace=5))
    episode = Episode(client, notes.spec(hold=["setup"]), env=env).opened()
    answer = episode.prompt()
    assert failure_of(answer) == (500, "setup_timeout")
    assert "longer than its limit of 0.2 s" in answer.json()["detail"]
    notes.open("setup")
    notes.wait_for("gone")
    assert episode.delete().status_code == 200
    assert notes.count("teardown") == 1


def test_openrewards_client_is_told_that_setup_takes_long(
    client: httpx.Client, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a silence of 30 s for a lost connection; every other client is answered when there is an answer."""
    monkeypatch.setattr("ors.faces.ors.face._SLOW_SETUP_S", 0.05)
    episode = Episode(client, notes.spec(hold=["setup"])).opened()
    answer = episode.prompt(**{"User-Agent": "openreward-sdk/0.1.167"})
    assert failure_of(answer) == (503, "starting")
    assert answer.headers["X-Backend-State"] == "starting"
    assert answer.headers["Retry-After"] == "2"
    assert answer.json()["retryable"] is True
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(episode.prompt)
        wait_until(lambda: client.get("/ready").json()["calls"] >= 1)
        notes.open("setup")
        assert waiting.result().status_code == 200
    assert episode.prompt(**{"User-Agent": "openreward-sdk/0.1.167"}).status_code == 200


# Names of environments in paths


@pytest.mark.parametrize("route", ["prompt", "task_tools", "call"])
def test_another_environments_path_is_refused(client: httpx.Client, notes: Notes, route: str) -> None:
    Episode(client, notes.spec(), env="other", sid=f"misdirected {route} {notes.folder.name}").opened()
    wrong = Episode(client, env="probe", sid=f"misdirected {route} {notes.folder.name}")
    ask: Callable[[], httpx.Response] = {
        "prompt": wrong.prompt,
        "task_tools": wrong.task_tools,
        "call": lambda: wrong.call("echo", {"text": "x"}),
    }[route]
    answer = ask()
    assert failure_of(answer) == (400, "wrong_environment")
    assert "'other'" in answer.json()["detail"]
    assert notes.count("prompt") == notes.count("ran echo") == 0


def test_a_bare_path_fits_every_session(client: httpx.Client) -> None:
    bare = Episode(client, {}, env_name="other").opened()
    assert bare.prompt().status_code == 200
    assert "extra" in [spec["name"] for spec in bare.task_tools().json()["tools"]]
    assert bare.text("extra") == "extra"
    odd = Episode(client, {}, env_name="odd").opened()
    assert odd.task_tools().json()["terminal_tool"] is None


# Tools of a task


def test_the_tools_of_a_task(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec(tools=["hidden"])).opened()
    shared = client.get("/tools").json()
    own = episode.task_tools().json()
    assert set(own) == set(shared)
    assert own["tools"] == [*shared["tools"], {"name": "hidden", "description": "", "input_schema": None}]
    assert episode.text("hidden") == "found"


def test_a_tool_that_no_task_lists_cannot_be_called(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec()).opened()
    for name in ("hidden", "not_a_tool", "trap", "setup", "teardown", "_call_tool", "__init__", "note", "", "echo "):
        assert episode.refused(name) == (f"'{name}' is not a valid tool", "not_found")
    assert not [word for word in notes.words if word.startswith("ran")]


def test_the_terminal_tool_can_be_called(client: httpx.Client) -> None:
    episode = Episode(client, {}).opened()
    assert episode.text("answer", message="42") == "heard 42"
    assert episode.refused("echo", text="x")[1] == "episode_finished"


# The end


def test_deleting_always_succeeds(client: httpx.Client) -> None:
    for route in ("/delete", "/delete_session"):
        for sid in ("never seen", "gone"):
            answer = client.post(route, headers={"X-Session-ID": sid})
            assert (answer.status_code, answer.json()) == (200, {"sid": sid})


@pytest.mark.parametrize("route", ["/delete", "/delete_session"])
@pytest.mark.parametrize("env", ["probe", "slow"])
def test_deleting_tears_down_before_it_answers(client: httpx.Client, notes: Notes, route: str, env: str) -> None:
    episode = Episode(client, notes.spec(), env=env).opened()
    episode.prompt()
    assert client.post(route, headers=episode.headers).json() == {"sid": episode.sid}
    assert notes.words[-2:] == ["teardown", "gone"]
    assert client.post(route, headers=episode.headers).json() == {"sid": episode.sid}
    assert notes.count("teardown") == 1


def test_after_its_end_a_session_says_how_it_ended(client: httpx.Client) -> None:
    episode = Episode(client, {}).opened()
    episode.delete()
    for answer in (episode.prompt(), episode.task_tools(), episode.call("count"), episode.ping(), episode.cancel("x")):
        assert failure_of(answer) == (410, "session_ended")
        assert answer.json()["detail"] == "Session deleted"
    again = episode.create()
    assert failure_of(again) == (410, "session_ended")


def test_a_session_never_seen(client: httpx.Client) -> None:
    episode = Episode(client)
    for answer in (episode.prompt(), episode.task_tools(), episode.call("count"), episode.ping(), episode.cancel("x")):
        assert failure_of(answer) == (404, "unknown_session")
        assert answer.json()["detail"].startswith("Active environment not found")


def test_deleting_cancels_what_runs_first(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec()).opened()
    with episode.begin("wait", {"gate": "never"}) as stream:
        pieces = stream.iter_bytes()
        next(pieces)
        notes.wait_for("waits never")
        assert episode.delete().status_code == 200
        events = events_of(b"event: x\r\n\r\n" + b"".join(pieces))
    assert (events[-1].name, events[-1].data) == ("error", "Session deleted")
    assert notes.words[-4:] == ["waits never", "cut never", "teardown", "gone"]


def test_deleting_while_setup_goes_on(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec(hold=["setup"])).opened()
    notes.wait_for("setup")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(episode.prompt)
        wait_until(lambda: client.get("/ready").json()["calls"] >= 1)
        assert episode.delete().status_code == 200
        assert failure_of(waiting.result()) == (410, "session_ended")
    assert notes.words[-2:] == ["teardown", "gone"]


def test_deleting_while_a_setup_that_cannot_be_cancelled_goes_on(client: httpx.Client, notes: Notes) -> None:
    """Teardown comes after setup has really ended, never between."""
    episode = Episode(client, notes.spec(hold=["setup"]), env="slow").opened()
    notes.wait_for("setup")
    with ThreadPoolExecutor(1) as pool:
        deleting = pool.submit(episode.delete)
        notes.wait_for("teardown")
        assert deleting.result().status_code == 200
    # a thread is asked to stop by an exception, which ends this setup before its gate opened
    assert notes.words == ["made", "setup", "teardown", "gone"]


@pytest.mark.parametrize("env", ["probe"])
def test_a_teardown_that_fails_is_an_end_all_the_same(client: httpx.Client, notes: Notes, env: str) -> None:
    episode = Episode(client, notes.spec(fail="teardown"), env=env).opened()
    assert episode.delete().status_code == 200
    assert failure_of(episode.prompt()) == (410, "session_ended")


@pytest.mark.parametrize("env", ["probe", "slow"])
def test_a_teardown_that_hangs_is_left_behind(serve: Serve, notes: Notes, env: str) -> None:
    client = client_of(serve(Probe, Other, Slow, Odd, teardown_timeout=0.2, cut_grace=0.2))
    episode = Episode(client, notes.spec(hold=["teardown"]), env=env).opened()
    notes.wait_for("made")  # a session that is deleted before has nothing to tear down
    assert episode.delete().status_code == 200
    notes.wait_for("teardown")
    notes.open("teardown")
    assert Episode(client, {}, env=env).opened().prompt().status_code == 200


def test_teardowns_run_side_by_side(client: httpx.Client, notes: Notes) -> None:
    episodes = [Episode(client, notes.spec(hold=["teardown"]), env="slow").opened() for _ in range(10)]
    notes.wait_for("ready", times=10)
    with ThreadPoolExecutor(10) as pool:
        deleting = [pool.submit(episode.delete) for episode in episodes]
        notes.wait_for("teardown", times=10)  # all of them are in it before any has left it
        assert notes.count("gone") == 0
        notes.open("teardown")
        assert {answer.result().status_code for answer in deleting} == {200}


def test_nothing_stays(served: Served, client: httpx.Client) -> None:
    wait_until(lambda: served.status()["running"] == 0)
    before = served.status()
    for _ in range(5):
        episode = Episode(client, {}).opened()
        episode.text("count")
        episode.delete()
        Episode(client, {"fail": "setup"}).opened().delete()
    wait_until(lambda: served.status()["running"] == 0)
    after = served.status()
    for counted in ("sessions", "calls", "zombies"):
        assert after[counted] == before[counted]
    assert after["opened"] == before["opened"] + 10
    assert after["ended"] == before["ended"] + 10
