"""Every fault of the existing ORS servers, by its number in docs/faults.md: what this server does instead."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import logging
import re
import socket
import threading
import time
import typing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from faces.conftest import Serve
from faces.probes import Odd, Other, Probe, Slow, said
from faces.shelves import ALL as SHELVES
from faces.wire import Episode, Notes, client_of, error_of, events_of, failure_of, result_of
from ors import AuthoringError, Server, ToolOutput, tool
from ors.faces.ors import sse
from served import Served, wait_until

from .environments import Blocking, Cancelling, Child, Counting, Exiting, Parent, Steady

KEYS = ["key", "other"]
ENVIRONMENTS = (Probe, Other, Odd, Slow, Steady, Blocking, Cancelling, Exiting, Parent, Child)


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve(*ENVIRONMENTS)


@pytest.fixture
def client(served: Served) -> httpx.Client:
    return client_of(served)


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


@contextmanager
def quick(client: httpx.Client, seconds: float = 5.0) -> Iterator[None]:
    """The server answers all the while: to probes, and to a session of another environment."""
    started = time.monotonic()
    episode = Episode(client, {}, env="steady").opened()
    assert client.get("/health").json() == {"status": "ok"}
    assert episode.text("go") == "gone"
    assert episode.text("go_on") == "gone on"
    assert time.monotonic() - started < seconds
    yield
    assert client.get("/health").json() == {"status": "ok"}


# 7.1 Wrong data or wrong execution


def test_7_1_1_blanks_at_the_border_of_a_piece(client: httpx.Client) -> None:
    episode = Episode(client, {}, env="odd").opened()
    for before in (59_700, 59_800, 59_900, 60_000):
        answer = episode.call("blanks", {"before": before, "blanks": " " * 300, "after": 5000})
        stripped = [event.data.lstrip() for event in events_of(answer.content)[1:]]  # as clients do
        text = json.loads("".join(stripped))["output"]["blocks"][0]["text"]
        assert text == "a" * before + " " * 300 + "b" * 5000


def test_7_1_2_a_tool_runs_once(served: Served, client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec(hold=["setup"])).opened()
    # a client that waits for setup hears at once that it is heard, and by which id to ask again
    with episode.begin("count") as stream:
        issued = events_of(next(stream.iter_bytes()))[0].data
    for _ in range(3):
        with episode.begin("count", task_id=issued) as stream:
            assert events_of(next(stream.iter_bytes()))[0].data == issued
    # a connection lost before any byte came back: the id is the client's own
    address = httpx.URL(served.url)
    body = b'{"name":"count","input":{},"task_id":"mine"}'
    for _ in range(3):
        with socket.create_connection((address.host, address.port)) as lost:
            head = (
                f"POST /call HTTP/1.1\r\nHost: x\r\nX-Session-ID: {episode.sid}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            lost.sendall(head.encode() + body)
    wait_until(lambda: client.get("/ready").json()["calls"] >= 2)
    notes.open("setup")
    assert result_of(episode.call("count", task_id=issued))["output"]["blocks"][0]["text"] == "1"
    assert result_of(episode.call("count", task_id="mine"))["output"]["blocks"][0]["text"] == "2"
    assert notes.count("ran count") == 2


def test_7_1_3_caches_are_not_inherited(client: httpx.Client) -> None:
    assert client.post("/parent/num_tasks", json={"split": "train"}).json() == {"num_tasks": 1}
    assert client.post("/child/num_tasks", json={"split": "train"}).json() == {"num_tasks": 2}
    assert [split["name"] for split in client.get("/child/splits").json()] == ["train", "more"]
    assert client.post("/child/task", json={"split": "train", "index": 1}).json()["task"] == {"of": "child"}
    assert [split["name"] for split in client.get("/parent/splits").json()] == ["train"]
    assert [len(client.get(f"/{env}/tools").json()["tools"]) for env in ("parent", "child")] == [1, 2]


def test_7_1_5_secrets_arrive_either_way(client: httpx.Client) -> None:
    header = base64.b64encode(json.dumps({"key": {"value": "from-header"}}).encode()).decode()
    assert result_of(Episode(client, {}).opened(**{"X-Secrets": header}).call("tell_secret", {"name": "key"}))["ok"]
    assert Episode(client, {}).opened(**{"X-Secrets": header}).text("tell_secret", name="key") == "11 er"
    assert Episode(client, {}, secrets={"key": "from-body"}).opened().text("tell_secret", name="key") == "9 dy"


def test_7_1_6_two_creates_at_once_are_one(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec(hold=["setup"]), sid=f"twice {notes.folder.name}")
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda key: episode.create(**{"Idempotency-Key": key}), ["a"] * 3 + ["b"] * 3))
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [400] * 3
    notes.open("setup")
    assert episode.prompt().status_code == 200
    # the answer was lost, the request is repeated: it is still the same session
    kept = next(answer.request.headers["Idempotency-Key"] for answer in answers if answer.status_code == 200)
    assert episode.create(**{"Idempotency-Key": kept}).json() == {"sid": episode.sid}
    episode.delete()
    assert [notes.count(word) for word in ("made", "setup", "ready", "teardown")] == [1, 1, 1, 1]


def test_7_1_7_no_reward_after_the_end_and_no_race_before_it(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec()).opened()
    with ThreadPoolExecutor(8) as pool:
        counted = list(pool.map(lambda _: result_of(episode.call("count")), range(24)))
    assert sorted(int(result["output"]["blocks"][0]["text"]) for result in counted) == list(range(1, 25))
    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(lambda _: result_of(episode.call("finish")), range(4)))
    assert sum(end["ok"] for end in ends) == 1
    for _ in range(3):
        assert episode.refused("finish")[1] == "episode_finished"
    assert notes.count("ran finish") == 1


def test_7_1_8_nan_is_an_error_that_says_where(client: httpx.Client, serve: Serve) -> None:
    odd = Episode(client, {}, env="odd").opened()
    assert error_of(odd.call("give", {"what": "nan reward"}))[0].startswith("'give' returned the reward nan")
    assert "metadata.deep[1]" in error_of(odd.call("give", {"what": "nan metadata"}))[0]
    shelves = client_of(serve(*SHELVES))
    tasks = shelves.post("/broken/tasks", json={"split": "train"}).json()["tasks"]
    assert [list(task) for task in tasks] == [["number"], ["error"], ["error"], ["number"]]
    assert failure_of(shelves.post("/broken/task", json={"split": "train", "index": 1})) == (500, "bad_task")


class Model(BaseModel):
    answer: str


def untyped(self: Any, answer) -> ToolOutput:  # type: ignore[no-untyped-def]
    return said(answer)


def returns_text(self: Any, answer: str) -> str:
    return answer


def takes_anything(self: Any, **answers: str) -> ToolOutput:
    return said(str(answers))


def yields(self: Any) -> Iterator[ToolOutput]:
    yield said("no")


@pytest.mark.parametrize("method", [untyped, returns_text, takes_anything, yields])
def test_7_1_12_a_method_that_cannot_be_a_tool_is_refused_at_start(method: Any) -> None:
    broken = type("Broken", (Steady,), {"submit": tool(method)})
    with pytest.raises(AuthoringError, match=r"Broken\.submit") as refused:
        Server([broken])
    # the mend is named too
    assert re.search(r"annotate|use |return a|`return`", str(refused.value)), refused.value


def no_annotation(self: Any):  # type: ignore[no-untyped-def]
    return said("none")


def two_parameters(self: Any, first: int, second: int | None = None) -> ToolOutput:
    return said(f"{first} {second}")


def model_and_more(self: Any, params: Model, tries: int = 1) -> ToolOutput:
    return said(params.answer)


def test_7_1_12_what_was_ignored_without_need_is_a_tool() -> None:
    methods = {method.__name__: tool(method) for method in (no_annotation, two_parameters, model_and_more)}
    listed = Server([type("Whole", (Steady,), methods)]).environments[0].list_tools().tools
    assert set(methods) < {spec.name for spec in listed}


def test_7_1_13_the_prompt_is_asked_for_once(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec(hold=["setup"])).opened()
    for _ in range(3):  # a client that gives up and asks again
        with pytest.raises(httpx.ReadTimeout):
            client.get("/prompt", headers=episode.headers, timeout=0.05)
    notes.open("setup")
    assert {episode.prompt().content for _ in range(3)} == {b'[{"text":"Do something.","detail":null,"type":"text"}]'}
    assert notes.count("prompt") == 1


def test_7_1_14_a_negative_index_is_no_index(client: httpx.Client) -> None:
    assert failure_of(client.post("/task", json={"split": "train", "index": -1})) == (400, "invalid_index")
    assert failure_of(Episode(client, split="train", index=-1).create()) == (400, "invalid_index")


def test_7_1_15_the_environment_in_the_path_is_the_sessions(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec(), env="other").opened()
    answer = client.post("/probe/call", json={"name": "count", "input": {}}, headers=episode.headers)
    assert failure_of(answer) == (400, "wrong_environment")
    assert "'other'" in answer.json()["detail"]
    assert failure_of(client.get("/probe/prompt", headers=episode.headers)) == (400, "wrong_environment")
    assert notes.count("ran count") == notes.count("prompt") == 0
    assert episode.text("extra") == "extra"


@pytest.mark.parametrize("env", ["picked", "pickedlater", "sliced", "slicedlater"])
def test_7_1_19_task_methods_may_be_plain_or_async(serve: Serve, env: str) -> None:
    client = client_of(serve(*SHELVES))
    assert client.post(f"/{env}/num_tasks", json={"split": "train"}).json() == {"num_tasks": 7}
    assert client.post(f"/{env}/task", json={"split": "train", "index": 6}).json()["task"]["number"] == 6
    some = client.post(f"/{env}/task_range", json={"split": "train", "start": -2}).json()["tasks"]
    assert [task["number"] for task in some] == [5, 6]


# 7.2 Hangs, time and availability


@pytest.mark.parametrize("name", ["raises", "cancels_itself", "awaits_what_was_cancelled", "loses_its_group"])
def test_7_2_2_a_cancellation_of_the_authors_own_is_an_error(client: httpx.Client, name: str) -> None:
    episode = Episode(client, {}, env="cancelling").opened()
    words, about = error_of(episode.call(name))
    assert words.startswith("CancelledError")
    assert about["kind"] == "tool_failed"
    assert error_of(episode.call(name))[0] == words  # and nothing is held


@pytest.mark.parametrize("name", ["run", "run_async", "run_in_a_task"])
@pytest.mark.parametrize("code", ["sys.exit(3)", "raise SystemExit", "raise KeyboardInterrupt", "exit()"])
def test_7_2_3_an_exit_in_a_tool_ends_its_call(client: httpx.Client, name: str, code: str) -> None:
    if name == "run_in_a_task" and code == "exit()":
        code = "sys.exit()"
    episode = Episode(client, {}, env="exiting").opened()
    words, _ = error_of(episode.call(name, {"code": code}))
    assert words.startswith(("SystemExit", "KeyboardInterrupt", "CancelledError"))
    assert episode.text("run", code="x = 1") == "ran"
    assert episode.text("run_async", code="x = 1") == "ran"


@pytest.mark.parametrize("where", ["constructor", "setup", "prompt", "tool", "teardown"])
def test_7_2_4_synchronous_code_blocks_its_own_session(client: httpx.Client, notes: Notes, where: str) -> None:
    episode = Episode(client, notes.spec(block=where), env="blocking").opened()
    if where == "teardown":
        episode.prompt()  # only what was made is torn down
    with ThreadPoolExecutor(1) as pool:
        asks = {"tool": lambda: episode.call("wait"), "teardown": episode.delete}.get(where, episode.prompt)
        asked = pool.submit(asks)
        notes.wait_for(f"blocks {where}")
        with quick(client):
            assert not asked.done()
        notes.open("it")
        assert asked.result().status_code == 200


def test_7_2_4_listing_tasks_blocks_nobody(client: httpx.Client) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.post, "/blocking/tasks", json={"split": "train"})
        with quick(client):
            pass
        assert asked.result().json()["tasks"] == [{"number": 0}]


def test_7_2_5_asynchronous_code_that_blocks_hurts_its_own_environment(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec(), env="blocking").opened()
    with episode.begin("compute") as stream:
        notes.wait_for("blocks loop")
        with quick(client):
            pieces = stream.iter_bytes()
            assert next(pieces).startswith(b"event: task_id")  # its own stream is alive too
        notes.open("it")
        assert events_of(b"".join(pieces))[-1].name == "end"


def test_7_2_5_synchronous_tools_have_as_many_threads_as_they_need(client: httpx.Client, notes: Notes) -> None:
    episodes = [Episode(client, notes.spec(), env="blocking").opened() for _ in range(60)]
    with ThreadPoolExecutor(60) as pool:
        calls = [pool.submit(episode.call, "wait") for episode in episodes]
        notes.wait_for("blocks tool", times=60)  # all at once, and there are not as many processors
        with quick(client):
            pass
        notes.open("it")
        assert all(result_of(call.result())["ok"] for call in calls)


def test_7_2_11_a_teardown_that_hangs_stops_nothing(serve: Serve, notes: Notes) -> None:
    client = client_of(serve(Probe, Slow, session_idle=0.4, teardown_timeout=0.5, cut_grace=0.1))
    working = Episode(client, notes.spec()).opened()
    with working.begin("wait", {"gate": "g"}) as stream:
        pieces = stream.iter_bytes()
        next(pieces)
        # expiry goes on past a teardown that hangs, deletion is bounded, and a long call is not idleness
        Episode(client, notes.spec(hold=["teardown"])).opened()
        Episode(client, notes.spec(hold=["teardown"]), env="slow").opened()
        notes.wait_for("teardown", times=2)
        Episode(client, notes.spec()).opened()
        notes.wait_for("gone")
        hanging = Episode(client, notes.spec(hold=["teardown"])).opened()
        assert hanging.delete().status_code == 200
        notes.open("g")
        assert events_of(b"".join(pieces))[-1].name == "end"
    notes.open("teardown")


def test_7_2_12_slow_setup_holds_its_clients_without_silence(
    client: httpx.Client, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ors.faces.ors.face._SLOW_SETUP_S", 0.05)
    monkeypatch.setattr(sse, "PING_S", 1.02)
    episode = Episode(client, notes.spec(hold=["setup"])).opened()
    with ThreadPoolExecutor(1) as pool, episode.begin("echo", {"text": "x"}) as stream:
        pieces = stream.iter_bytes()
        assert next(pieces).startswith(b"event: task_id")
        assert next(pieces) == b": ping\r\n\r\n"
        prompt = pool.submit(episode.prompt)
        starting = episode.prompt(**{"User-Agent": "openreward-sdk/0.1.167"})
        assert failure_of(starting) == (503, "starting")
        assert starting.headers["X-Backend-State"] == "starting"
        assert not prompt.done()
        notes.open("setup")
        assert prompt.result().status_code == 200
        assert events_of(b"".join(pieces))[-1].name == "end"


def test_7_2_13_no_line_is_longer_than_readers_can_take(client: httpx.Client) -> None:
    episode = Episode(client, {}, env="odd").opened()
    answer = episode.call("big_error", {"size": 1_000_000, "char": "x"})
    assert max(map(len, answer.content.split(b"\r\n"))) < 64 * 1024
    words, _ = error_of(answer)
    assert words.startswith("ValueError: xxx") and "left out" in words


def test_7_2_14_one_server_after_another_in_one_process(serve: Serve, notes: Notes) -> None:
    for round in range(2):
        served = serve(Probe, fresh=True)
        episode = Episode(client_of(served), notes.spec()).opened()
        with episode.begin("wait", {"gate": f"g{round}"}) as stream:
            pieces = stream.iter_bytes()
            assert next(pieces).startswith(b"event: task_id")
            notes.open(f"g{round}")
            assert events_of(b"".join(pieces))[-1].name == "end"
        assert client_of(served).post("/create_session", headers={"Accept": "text/event-stream"}).status_code == 200
        served.stop()
    assert notes.count("gone") == 2


def test_7_2_15_bare_paths_answer_without_a_redirect(client: httpx.Client) -> None:
    episode = Episode(client, {}).opened()
    answers = [client.get("/tools"), client.get("/splits"), episode.prompt(), episode.task_tools()]
    answers += [episode.call("count"), client.post("/tasks", json={"split": "train"})]
    assert {answer.status_code for answer in answers} == {200}


@pytest.mark.parametrize("name", ["AssertionError", "TimeoutError", "MemoryError", "KeyboardInterrupt"])
def test_7_2_16_an_exception_without_words_has_a_name(client: httpx.Client, name: str) -> None:
    episode = Episode(client, {}, env="odd").opened()
    assert error_of(episode.call("raise_async", {"name": name}))[0] == name


def test_7_2_16_tracebacks_keep_their_indentation(serve: Serve) -> None:
    episode = Episode(client_of(serve(Probe, return_errors="stacktrace")), {}).opened()
    words, _ = error_of(episode.call("fail", {"message": "no"}))
    assert words.startswith("Traceback (most recent call last):\n  File ")
    assert "\n    raise ValueError(message)\n" in words


# 7.3 Cost and leaks


def test_7_3_1_a_split_is_listed_once(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = tmp_path / "listed"
    monkeypatch.setenv("TASKS_LISTED", str(listed))
    client = client_of(serve(Counting, fresh=True))
    for index in range(20):
        answer = client.post("/task", json={"split": "train", "index": index})
        assert answer.json()["task"] == {"number": index}
    assert len(client.post("/task_range", json={"split": "train"}).json()["tasks"]) == 1000
    assert client.post("/num_tasks", json={"split": "train"}).json() == {"num_tasks": 1000}
    Episode(client, split="train", index=7).opened()
    assert listed.read_text() == "listed\n"


def test_7_3_2_a_whole_split_is_written_in_pieces(serve: Serve) -> None:
    served = serve(*SHELVES)
    with (
        httpx.Client(base_url=served.url, timeout=30) as client,
        client.stream(
            "POST", "/many/tasks", json={"split": "train"}, headers={"accept-encoding": "identity"}
        ) as answer,
    ):
        assert answer.headers["transfer-encoding"] == "chunked"
        pieces = answer.iter_raw()
        first = next(pieces)
        assert len(first) < 1_000_000
        assert client.get("/health").status_code == 200  # on another connection, while the rest is wanted
        whole = first + b"".join(pieces)
    assert len(json.loads(whole)["tasks"]) == 20_000


def test_7_3_3_signatures_are_read_at_start_only(monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served([Probe])
    try:
        read: list[Any] = []

        def reading(*args: Any, **_: Any) -> Any:
            read.append(args)
            raise AssertionError("a signature is read during a call")

        for module, name in ((typing, "get_type_hints"), (inspect, "signature"), (inspect, "getmembers")):
            monkeypatch.setattr(module, name, reading)
        episode = Episode(client_of(served), {}).opened()
        assert episode.text("echo", text="x") == "x"
        assert episode.text("count") == "1"
        assert episode.refused("nothing")[1] == "not_found"
        assert read == []
    finally:
        monkeypatch.undo()
        served.stop()


def test_7_3_4_a_large_result_is_few_events_and_its_keeping_is_bounded(serve: Serve) -> None:
    served = serve(Odd, fresh=True, result_disk=30_000_000)
    client = client_of(served)
    episode = Episode(client, {}).opened()
    answer = episode.call("image", {"size": 10_000_000})
    assert len(events_of(answer.content)) < 10_000_000 / 50_000
    assert int(answer.headers["content-length"]) == len(answer.content)  # one write
    kept = served.status()["result_bytes"]
    assert 10_000_000 < kept < 11_000_000
    for _ in range(3):
        last = episode.call("image", {"size": 10_000_000})
    assert failure_of(last) == (429, "results_full")
    assert served.status()["result_bytes"] < 41_000_000
    episode.delete()
    assert served.status()["result_bytes"] == 0


def test_7_3_5_a_call_that_waits_gathers_nothing(
    served: Served, client: httpx.Client, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "PING_S", 1.005)

    async def tasks() -> int:
        return len(asyncio.all_tasks())

    episode = Episode(client, notes.spec()).opened()
    with episode.begin("wait", {"gate": "g"}) as stream:
        pieces = stream.iter_bytes()
        next(pieces)
        next(pieces)
        before = served.on_loop(tasks)
        for _ in range(50):
            next(pieces)
        assert served.on_loop(tasks) <= before + 2
        notes.open("g")
        assert events_of(b"".join(pieces))[-1].name == "end"


def test_7_3_6_pings_for_nobody_are_forgotten(served: Served, client: httpx.Client) -> None:
    wait_until(lambda: served.status()["running"] == 0)
    before = served.status()
    for number in range(100):
        assert failure_of(Episode(client, sid=f"nobody {number}").ping()) == (404, "unknown_session")
    after = served.status()
    assert after["sessions"] == before["sessions"] and after["opened"] == before["opened"]


def test_7_3_7_a_failed_setup_says_the_same_each_time(serve: Serve) -> None:
    client = client_of(serve(Probe, return_errors="stacktrace"))
    episode = Episode(client, {"fail": "setup"}).opened()
    answers = {episode.prompt().text for _ in range(20)} | {episode.call("count").text for _ in range(20)}
    assert len(answers) == 1
    assert answers.pop().count("setup fails") <= 2  # the line of code and the message


def test_7_3_8_what_was_made_is_torn_down(client: httpx.Client, notes: Notes) -> None:
    failed = Episode(client, notes.spec(fail="setup")).opened()
    notes.wait_for("gone")
    failed.delete()
    cancelled = Episode(client, notes.spec(hold=["setup"])).opened()
    notes.wait_for("setup", times=2)
    cancelled.delete()
    assert notes.count("gone") == 2
    outlived = Episode(client, notes.spec(hold=["setup"]), env="slow").opened()
    notes.wait_for("setup", times=3)
    outlived.delete()
    assert notes.words == ["made", "setup", "teardown", "gone"] * 3


def test_7_3_10_pings_are_not_logged(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        episode = Episode(client, {}).opened()
        for _ in range(50):
            episode.ping()
        episode.delete()
        wait_until(lambda: "episode ended" in caplog.text)
    assert [record.message for record in caplog.records if record.name.startswith("ors")] == ["episode ended"]


# 7.4 Security


def test_7_4_1_keys_guard_tasks_sessions_and_tools(serve: Serve) -> None:
    served = serve(*ENVIRONMENTS, api_keys=KEYS)
    client = client_of(served)
    episode = Episode(client, {})
    for answer in (
        client.post("/tasks", json={"split": "train"}),
        client.post("/task", json={"split": "train", "index": 0}),
        client.get("/tools"),
        client.post("/create_session"),
        episode.create(),
        episode.call("count"),
    ):
        assert failure_of(answer) == (401, "unauthorized")
    client.headers["X-API-Key"] = "key"
    try:
        assert episode.opened().text("count") == "1"
    finally:
        del client.headers["X-API-Key"]


def test_7_4_2_a_result_belongs_to_its_session(client: httpx.Client, notes: Notes) -> None:
    mine, theirs = Episode(client, notes.spec()).opened(), Episode(client, notes.spec()).opened()
    call_id = events_of(mine.call("echo", {"text": "for my eyes"}).content)[0].data
    answer = theirs.call("echo", {"text": "?"}, call_id)
    assert answer.content.endswith(b"event: error\r\ndata: unknown task_id\r\n\r\n")
    assert "for my eyes" not in answer.text
    assert notes.count("ran echo") == 1


def test_7_4_3_errors_that_are_not_to_be_told_are_not_told(serve: Serve, notes: Notes) -> None:
    client = client_of(serve(Probe, Odd, return_errors="none"))
    episode = Episode(client, notes.spec()).opened()
    answers = [episode.call("fail", {"message": "/srv/grader/answers.json"})]
    answers += [Episode(client, {"fail": where}).opened().prompt() for where in ("make", "setup", "prompt")]
    for answer in answers:
        assert "grader" not in answer.text and "fails" not in answer.text and "ValueError" not in answer.text
    assert error_of(answers[0])[0] == "Tool 'fail' failed"


def test_7_4_4_a_malformed_request_is_not_repeated(client: httpx.Client, serve: Serve) -> None:
    for body in (
        {"secrets": {"key": "hunter2"}},
        {"task_spec": {}, "secrets": {"key": ["hunter2"]}},
        {"task_spec": {}, "index": "hunter2", "secrets": "hunter2"},
    ):
        answer = client.post("/create", json=body, headers={"X-Session-ID": "x"})
        assert failure_of(answer) == (422, "invalid_request")
        assert "hunter2" not in answer.text
    guarded = client_of(serve(*ENVIRONMENTS, api_keys=KEYS))
    for path in ("/docs", "/openapi.json"):
        assert failure_of(guarded.get(path)) == (401, "unauthorized")


def test_7_4_5_only_what_is_listed_can_be_called(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec()).opened()
    for name in ("hidden", "trap", "not_a_tool", "teardown", "_call_tool", "__class__", "task_spec"):
        assert episode.refused(name)[1] == "not_found"
    assert not [word for word in notes.words if word.startswith("ran")]
    # the terminal tool is announced in its own place, and is the harness's to call
    assert client.get("/tools").json()["terminal_tool"]["name"] == "answer"
    assert episode.text("answer", message="42") == "heard 42"


def test_7_4_6_an_id_is_no_credential_and_inputs_are_not_logged(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    client = client_of(serve(*ENVIRONMENTS, api_keys=KEYS))
    with caplog.at_level(logging.DEBUG):
        client.headers["X-API-Key"] = "key"
        try:
            episode = Episode(client, {}, sid="easily guessed").opened()
            episode.call("echo", {"text": "hunter2"})
            episode.call("echo", {"wrong": "hunter2"})
            episode.call("hunter2", {})
            client.headers["X-API-Key"] = "other"
            for answer in (episode.prompt(), episode.call("count"), episode.delete()):
                assert failure_of(answer) == (403, "forbidden")
            client.headers["X-API-Key"] = "key"
            episode.delete()
            wait_until(lambda: "episode ended" in caplog.text)
        finally:
            del client.headers["X-API-Key"]
    assert "hunter2" not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("ors"))


def test_7_4_8_everything_is_bounded(serve: Serve, notes: Notes) -> None:
    limits = {"max_body": 10_000, "max_sessions": 3, "max_calls": 2, "max_streams": 2, "result_memory": 5000}
    client = client_of(serve(Probe, fresh=True, **limits))
    episode = Episode(client, notes.spec()).opened()
    assert failure_of(episode.call("echo", {"text": "x" * 10_000})) == (413, "body_too_large")
    for _ in range(2):
        Episode(client, {}).opened()
    refused = Episode(client, {}).create()
    assert failure_of(refused) == (503, "too_many_sessions")
    assert int(refused.headers["Retry-After"]) >= 1
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(episode.call, "overlap", {"gate": "g"}) for _ in range(2)]
        notes.wait_for("waits g", times=2)
        refused = episode.call("count")
        assert failure_of(refused) in ((429, "too_many_calls"), (503, "too_many_streams"))
        assert int(refused.headers["Retry-After"]) >= 1
        notes.open("g")
        assert all(result_of(call.result())["ok"] for call in calls)
    answers = [episode.call("echo", {"text": "x" * 1000}) for _ in range(10)]
    assert failure_of(answers[-1]) == (429, "results_full")
    assert int(answers[-1].headers["Retry-After"]) >= 1
    assert threading.active_count() < 200
