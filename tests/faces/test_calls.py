"""Calls: exactly once, in order, fetched again, cancelled, cut; and what is written for them, byte for byte."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from ors.faces.ors import sse
from served import Served, wait_until

from .conftest import Serve
from .probes import Odd, Probe, Slow
from .wire import Episode, Notes, client_of, error_of, events_of, failure_of, result_of


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve(Probe, Odd, Slow)


@pytest.fixture
def client(served: Served) -> httpx.Client:
    return client_of(served)


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


@pytest.fixture
def episode(client: httpx.Client, notes: Notes) -> Episode:
    return Episode(client, notes.spec()).opened()


# What is written


def test_a_call_that_ends_at_once_is_one_write(episode: Episode) -> None:
    answer = episode.call("echo", {"text": "x"})
    call_id = events_of(answer.content)[0].data
    output = b'{"blocks":[{"text":"x","detail":null,"type":"text"}],"metadata":null,"reward":null,"finished":false}'
    assert answer.content == (
        b"event: task_id\r\ndata: %s\r\n\r\n" % call_id.encode()
        + b'event: end\r\ndata: {"ok":true,"output":%s}\r\n\r\n' % output
    )
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert len(call_id) == 32


def test_a_call_that_takes_its_time_begins_at_once(episode: Episode, notes: Notes) -> None:
    with episode.begin("wait", {"gate": "g"}) as stream:
        pieces = stream.iter_bytes()
        assert next(pieces).startswith(b"event: task_id\r\n")
        assert notes.count("passed g") == 0
        notes.open("g")
        assert [event.name for event in events_of(b"".join(pieces))] == ["end"]


def test_pings_keep_a_stream_alive(episode: Episode, notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sse.PING_S == 10
    monkeypatch.setattr(sse, "PING_S", 1.02)
    with episode.begin("wait", {"gate": "g"}) as stream:
        pieces = stream.iter_bytes()
        next(pieces)
        assert [next(pieces) for _ in range(3)] == [b": ping\r\n\r\n"] * 3
        notes.open("g")
        assert events_of(b"".join(pieces))[-1].name == "end"


@pytest.mark.parametrize("env", ["probe", "slow"])
def test_whatever_the_input_misses_is_said_without_repeating_it(client: httpx.Client, env: str) -> None:
    episode = Episode(client, {}, env=env).opened()
    words, reason = episode.refused("block", door="hunter2")
    assert reason == "input_validation"
    assert words.startswith("Tool input validation error: ")
    assert "gate" in words
    assert "hunter2" not in words and "pydantic" not in words and "input_value" not in words


def test_a_tool_without_input_takes_none(episode: Episode) -> None:
    assert episode.refused("count", x=1)[1] == "input_validation"
    assert episode.text("count") == "1"


@pytest.mark.parametrize(
    "body", [{"name": "count"}, {"name": "count", "input": None}, {"input": {}}, {"name": 1, "input": {}}]
)
def test_a_body_that_is_no_call(episode: Episode, body: Any) -> None:
    answer = episode.client.post("/call", json=body, headers=episode.headers)
    assert failure_of(answer) == (422, "invalid_request")


def test_one_model_as_the_only_parameter(episode: Episode) -> None:
    assert episode.text("modelled", message="hello") == "hello"
    assert episode.refused("modelled", message=1)[1] == "input_validation"


def test_a_tool_that_fails_on_purpose(episode: Episode) -> None:
    assert episode.refused("refuse", why="not today") == ("Tool 'refuse' failed: not today", "tool_error")


def test_an_exception_is_an_error_event(episode: Episode) -> None:
    words, about = error_of(episode.call("fail", {"message": "first\r\nsecond\nthird"}))
    assert words == "ValueError: first\nsecond\nthird"
    assert about == {"kind": "tool_failed", "retryable": False, "ran": "yes"}


@pytest.mark.parametrize(("errors", "words"), [("none", "Tool 'fail' failed"), ("stacktrace", "ValueError: hunter2")])
def test_how_much_of_an_exception_is_told(serve: Serve, errors: str, words: str) -> None:
    episode = Episode(client_of(serve(Probe, Odd, Slow, return_errors=errors)), {}).opened()
    said, _ = error_of(episode.call("fail", {"message": "hunter2"}))
    assert said.endswith(words)
    assert said.startswith("Traceback") is (errors == "stacktrace")
    # what is meant for the agent is told all the same
    assert episode.refused("refuse", why="not today")[0] == "Tool 'refuse' failed: not today"


NAMES = [
    *("CancelledError", "SystemExit", "KeyboardInterrupt", "GeneratorExit", "StopIteration", "StopAsyncIteration"),
    *("RecursionError", "MemoryError", "TimeoutError", "AssertionError", "ExceptionGroup"),
]


@pytest.mark.parametrize("tool", ["raise_async", "raise_sync"])
@pytest.mark.parametrize("name", NAMES)
def test_whatever_is_raised_hurts_its_own_call(client: httpx.Client, tool: str, name: str) -> None:
    episode = Episode(client, {}, env="odd").opened()
    words, about = error_of(episode.call(tool, {"name": name}))
    assert words, "an empty text says nothing"
    if name not in ("StopIteration", "StopAsyncIteration"):  # Python itself makes RuntimeErrors of these in coroutines
        assert words.startswith(name)
    assert about["kind"] == "tool_failed"
    assert episode.text("borrowed") == "for Odd"
    assert client.get("/health").status_code == 200


def test_a_real_recursion(client: httpx.Client) -> None:
    episode = Episode(client, {}, env="odd").opened()
    assert error_of(episode.call("recurse"))[0].startswith("RecursionError")
    assert episode.text("borrowed") == "for Odd"


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("text", "'give' returned str; expected ToolOutput"),
        ("nothing", "'give' returned NoneType; expected ToolOutput"),
        ("a dict", "'give' returned dict; expected ToolOutput"),
        ("nan reward", "'give' returned the reward nan; a reward is a finite number or None"),
        ("infinite reward", "'give' returned the reward -inf; a reward is a finite number or None"),
        ("text reward", "'give' returned the reward '1'; a reward is a finite number or None"),
        ("nan metadata", "'give' returned metadata that is no JSON: the value at metadata.deep[1] is NaN or infinite"),
        ("an object in metadata", "'give' returned metadata that is no JSON"),
        ("a lone surrogate", "'give' returned a lone surrogate at blocks[0].text"),
    ],
)
def test_garbage_is_named_and_never_a_null(client: httpx.Client, what: str, words: str) -> None:
    said, about = error_of(Episode(client, {}, env="odd").opened().call("give", {"what": what}))
    assert said.startswith(words)
    assert about["kind"] == "bad_output"


def test_blocks_are_never_empty(client: httpx.Client) -> None:
    output = result_of(Episode(client, {}, env="odd").opened().call("no_blocks"))["output"]
    assert list(output) == ["blocks", "metadata", "reward", "finished"]
    assert output["blocks"] == [{"text": "", "detail": None, "type": "text"}]
    assert output["reward"] == 0.25


def test_integers_come_back_digit_for_digit(client: httpx.Client) -> None:
    episode = Episode(client, {}, env="odd").opened()
    for digits in (20, 400, 4300):
        body = b'{"name":"integers","input":{"value":%s}}' % (b"7" * digits)
        answer = client.post("/odd/call", content=body, headers=episode.headers)
        assert b'"metadata":{"value":%s}' % (b"7" * digits) in answer.content


# Pieces


def pieces_of(answer: httpx.Response) -> list[str]:
    """The pieces as clients see them that strip all white space at the start of each `data:` value."""
    lines = answer.content.split(b"\r\n")
    assert max(map(len, lines)) < 64 * 1024
    return [line.decode().removeprefix("data:").lstrip() for line in lines if line.startswith(b"data:")][1:]


BLANKS = ["     ", "\u00a0", "\u2003\u3000", " \u2028\u2029 ", "\u0085", "\u1680 \u205f", "\t\n\r \x0b\x0c\x1c"]


@pytest.mark.parametrize("blanks", BLANKS, ids=ascii)
@pytest.mark.parametrize("count", [1, 100, 3000])
def test_no_piece_starts_with_white_space(client: httpx.Client, blanks: str, count: int) -> None:
    episode = Episode(client, {}, env="odd").opened()
    blanks *= count
    for shift in (0, 1, 2, 3):
        # the blanks lie across the first border, wherever exactly that is
        input = {"before": 60_000 - 40 - len(blanks.encode()) // 2 + shift, "blanks": blanks, "after": 70_000}
        answer = episode.call("blanks", {**input, "before": max(input["before"], 0)})  # type: ignore[call-overload]
        joined = json.loads("".join(pieces_of(answer)))
        assert joined["output"]["blocks"][0]["text"] == "a" * max(input["before"], 0) + blanks + "b" * 70_000
        assert joined == result_of(answer)


def test_a_text_of_blanks_alone(client: httpx.Client) -> None:
    episode = Episode(client, {}, env="odd").opened()
    answer = episode.call("blanks", {"before": 0, "blanks": " " * 300_000, "after": 0})
    assert json.loads("".join(pieces_of(answer)))["output"]["blocks"][0]["text"] == " " * 300_000


def test_a_result_just_as_long_as_a_piece(client: httpx.Client) -> None:
    episode = Episode(client, {}, env="odd").opened()
    around = len(
        json.dumps(result_of(episode.call("blanks", {"before": 0, "blanks": "", "after": 0})), separators=(",", ":"))
    )
    for more, expected in ((0, ["task_id", "end"]), (1, ["task_id", "chunk", "end"])):
        answer = episode.call("blanks", {"before": 60_000 - around + more, "blanks": "", "after": 0})
        assert [event.name for event in events_of(answer.content)] == expected


def test_a_large_image_comes_whole(client: httpx.Client) -> None:
    output = result_of(Episode(client, {}, env="odd").opened().call("image", {"size": 20_000_000}))["output"]
    assert output["blocks"][0]["data"] == "A" * 20_000_000


@pytest.mark.parametrize("char", ["x", "ß", "🦊", " "])
def test_a_long_error_is_shortened(client: httpx.Client, char: str) -> None:
    answer = Episode(client, {}, env="odd").opened().call("big_error", {"size": 200_000, "char": char})
    words, _ = error_of(answer)
    assert max(map(len, answer.content.split(b"\r\n"))) < 64 * 1024
    assert words.startswith("ValueError: ")
    assert "left out" in words or "shortened" in words


# Exactly once


def test_a_clients_id_starts_a_call_once(episode: Episode, notes: Notes) -> None:
    first = episode.call("count", task_id="trace-123")
    assert events_of(first.content)[0].data == "trace-123"
    again = episode.call("count", task_id="trace-123")
    assert again.content == first.content
    assert notes.count("ran count") == 1
    assert episode.text("count") == "2"


@pytest.mark.parametrize("task_id", ["x" * 256, "späte 🦊 Spur", "0"])
def test_ids_of_the_clients_own(episode: Episode, task_id: str) -> None:
    assert events_of(episode.call("count", task_id=task_id).content)[0].data == task_id


@pytest.mark.parametrize("task_id", ["", "x" * 257, "a\nevent: end", "a\r\nb", " a", "\u2003a", "a\x00b"])
def test_ids_that_no_event_can_carry(episode: Episode, notes: Notes, task_id: str) -> None:
    assert failure_of(episode.call("count", task_id=task_id)) == (422, "invalid_request")
    assert notes.count("ran count") == 0


def test_repeats_on_many_connections_attach(episode: Episode, notes: Notes) -> None:
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(episode.call, "wait", {"gate": "g"}, "one") for _ in range(8)]
        notes.wait_for("waits g")
        notes.open("g")
        answers = {call.result().content for call in calls}
    assert len(answers) == 1
    assert notes.count("waits g") == 1


def test_the_order_of_keys_does_not_make_another_call(client: httpx.Client) -> None:
    episode = Episode(client, {}, env="odd").opened()
    first = episode.call("blanks", {"before": 1, "blanks": " ", "after": 1}, "one")
    again = episode.call("blanks", {"after": 1, "blanks": " ", "before": 1}, "one")
    assert again.content == first.content


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize(("name", "input"), [("echo", {"text": "y"}), ("count", {}), ("wait", {"gate": "other"})])
def test_an_id_means_one_call_only(episode: Episode, notes: Notes, name: str, input: Any, ended: bool) -> None:
    with ThreadPoolExecutor(1) as pool:
        if ended:
            notes.open("g")
        first = pool.submit(episode.call, "wait", {"gate": "g"}, "one")
        notes.wait_for("passed g" if ended else "waits g")
        words, about = error_of(episode.call(name, input, "one"))
        assert "used for another tool or input" in words
        assert about == {"kind": "call_conflict", "retryable": False, "ran": "no"}
        notes.open("g")
        assert result_of(first.result())["ok"] is True
    assert not [word for word in notes.words if word.startswith("ran")]


def test_a_lost_connection_loses_no_call(episode: Episode, notes: Notes) -> None:
    with episode.begin("wait", {"gate": "g"}) as stream:
        call_id = events_of(next(stream.iter_bytes()))[0].data
        notes.wait_for("waits g")
    # the client is gone; the call is not
    assert notes.count("cut g") == 0
    with ThreadPoolExecutor(1) as pool:
        again = pool.submit(episode.call, "wait", {"gate": "g"}, call_id)
        notes.open("g")
        answer = again.result()
    assert events_of(answer.content)[0].data == call_id
    assert result_of(answer)["output"]["blocks"][0]["text"] == "g"
    assert episode.call("wait", {"gate": "g"}, call_id).content.endswith(answer.content[-100:])
    assert notes.count("waits g") == 1


def test_a_reconnection_by_an_issued_id_need_not_repeat_the_input(episode: Episode) -> None:
    """As with the existing servers, where name and input of a reconnection are ignored."""
    first = episode.call("count")
    call_id = events_of(first.content)[0].data
    assert episode.call("echo", {"text": "?"}, call_id).content == first.content


def test_an_issued_id_that_is_unknown_here_never_runs_a_tool(
    client: httpx.Client, episode: Episode, notes: Notes
) -> None:
    other = Episode(client, {}).opened()
    call_id = events_of(other.call("count").content)[0].data
    answer = episode.call("count", task_id=call_id)
    assert answer.content.endswith(b"event: error\r\ndata: unknown task_id\r\n\r\n")
    assert [event.name for event in events_of(answer.content)] == ["error"]
    assert notes.count("ran count") == 0


def test_ids_belong_to_their_session(client: httpx.Client, episode: Episode, notes: Notes) -> None:
    other = Episode(client, notes.spec()).opened()
    episode.call("count", task_id="one")
    other.call("count", task_id="one")
    assert notes.count("ran count") == 2


def test_failures_are_replayed_too(episode: Episode, notes: Notes) -> None:
    answers = {episode.call("fail", {"message": "no"}, "one").content for _ in range(2)}
    assert len(answers) == 1
    assert notes.count("ran fail") == 1


def test_a_large_result_is_replayed_whole(client: httpx.Client) -> None:
    episode = Episode(client, {}, env="odd").opened()
    answers = {episode.call("image", {"size": 1_000_000}, "one").content for _ in range(3)}
    assert len(answers) == 1 and len(answers.pop()) > 1_000_000


def test_abandoned_requests_during_setup_run_nothing_twice(client: httpx.Client, notes: Notes) -> None:
    episode = Episode(client, notes.spec(hold=["setup"])).opened()
    for _ in range(3):
        with episode.begin("count", task_id="one") as stream:
            next(stream.iter_bytes())
    notes.open("setup")
    assert result_of(episode.call("count", task_id="one"))["output"]["blocks"][0]["text"] == "1"
    assert notes.count("ran count") == 1


# Order


def run_together(episode: Episode, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    pool = ThreadPoolExecutor(len(calls))
    futures = [pool.submit(episode.call, name, input) for name, input in calls]
    pool.shutdown(wait=False)
    return futures


def test_calls_of_one_tool_run_one_after_another(episode: Episode, notes: Notes) -> None:
    (first,) = run_together(episode, ("wait", {"gate": "a"}))
    notes.wait_for("waits a")
    (second,) = run_together(episode, ("wait", {"gate": "b"}))
    wait_until(lambda: episode.client.get("/ready").json()["calls"] >= 2)
    notes.open("b")
    assert notes.count("waits b") == 0
    notes.open("a")
    for call in (first, second):
        assert result_of(call.result())["ok"] is True
    assert notes.words[-4:] == ["waits a", "passed a", "waits b", "passed b"]


def test_different_asynchronous_tools_overlap(episode: Episode, notes: Notes) -> None:
    (first,) = run_together(episode, ("wait", {"gate": "a"}))
    notes.wait_for("waits a")
    assert episode.text("echo", text="meanwhile") == "meanwhile"
    notes.open("a")
    assert result_of(first.result())["ok"] is True


def test_synchronous_tools_of_one_session_never_overlap(episode: Episode, client: httpx.Client, notes: Notes) -> None:
    (first,) = run_together(episode, ("block", {"gate": "a"}))
    notes.wait_for("waits a")
    (second,) = run_together(episode, ("count", {}))
    wait_until(lambda: client.get("/ready").json()["calls"] >= 2)
    other = Episode(client, notes.spec()).opened()
    assert other.text("count") == "1"  # another session's may
    assert notes.count("ran count") == 1
    notes.open("a")
    assert result_of(second.result())["ok"] is True and result_of(first.result())["ok"] is True
    assert notes.words.index("passed a") < len(notes.words) - 1


def test_concurrent_tools_overlap_with_themselves(episode: Episode, notes: Notes) -> None:
    calls = run_together(episode, *[("overlap", {"gate": "a"})] * 3)
    notes.wait_for("waits a", times=3)
    notes.open("a")
    assert all(result_of(call.result())["ok"] for call in calls)


def test_an_exclusive_tool_waits_for_all_and_holds_all(episode: Episode, notes: Notes) -> None:
    (first,) = run_together(episode, ("overlap", {"gate": "a"}))
    notes.wait_for("waits a")
    (alone,) = run_together(episode, ("alone", {}))
    wait_until(lambda: episode.client.get("/ready").json()["calls"] >= 2)
    (held,) = run_together(episode, ("echo", {"text": "held"}))
    wait_until(lambda: episode.client.get("/ready").json()["calls"] >= 3)
    assert notes.count("alone") == notes.count("ran echo") == 0
    notes.open("a")
    for call in (first, alone, held):
        assert result_of(call.result())["ok"] is True
    assert notes.words.index("passed a") < notes.words.index("alone") < notes.words.index("ran echo")


# The end of an episode


def test_after_the_end_nothing_runs_and_nothing_is_paid(episode: Episode, notes: Notes) -> None:
    output = result_of(episode.call("finish"))["output"]
    assert (output["reward"], output["finished"]) == (1.0, True)
    for name in ("finish", "count", "nonsense"):
        result = result_of(episode.call(name))
        assert list(result) == ["ok", "error", "reason"]
        assert result["reason"] == "episode_finished"
    assert notes.count("ran finish") == 1 and notes.count("ran count") == 0


def test_the_end_can_be_fetched_again(episode: Episode) -> None:
    first = episode.call("finish", task_id="last")
    assert episode.call("finish", task_id="last").content == first.content


def test_one_of_many_ends_is_paid(client: httpx.Client, notes: Notes) -> None:
    for _ in range(5):
        episode = Episode(client, notes.spec()).opened()
        results = [result_of(call.result()) for call in run_together(episode, *[("finish", {})] * 6)]
        assert sum(result["ok"] for result in results) == 1
        assert {result["reason"] for result in results if not result["ok"]} == {"episode_finished"}
    assert notes.count("ran finish") == 5


def test_what_overlapped_with_the_end_is_not_paid(episode: Episode, notes: Notes) -> None:
    (late,) = run_together(episode, ("overlap", {"gate": "a"}))
    notes.wait_for("waits a")
    episode.call("finish")
    notes.open("a")
    assert result_of(late.result())["reason"] == "episode_finished"


# Cancelling and time limits


def test_cancelling_a_running_call(episode: Episode, notes: Notes) -> None:
    with episode.begin("wait", {"gate": "g"}, "one") as stream:
        pieces = stream.iter_bytes()
        next(pieces)
        notes.wait_for("waits g")
        assert episode.cancel("one").json() == {"cancelled": True}
        assert events_of(b"".join(pieces))[-1].data == "the call of 'wait' was cancelled"
    notes.wait_for("cut g")
    assert episode.text("echo", text="on") == "on"
    assert episode.cancel("one").json() == {"cancelled": False}
    words, about = error_of(episode.call("wait", {"gate": "g"}, "one"))
    assert (words, about["kind"]) == ("the call of 'wait' was cancelled", "call_cancelled")


def test_cancelling_a_thread(episode: Episode, notes: Notes) -> None:
    with episode.begin("block", {"gate": "g"}) as stream:
        pieces = stream.iter_bytes()
        call_id = events_of(next(pieces))[0].data
        notes.wait_for("waits g")
        assert episode.cancel(call_id).json() == {"cancelled": True}
        assert events_of(b"".join(pieces))[-1].data == "the call of 'block' was cancelled"
    notes.wait_for("cut g")
    assert episode.text("count") == "1"


def test_cancelling_a_call_that_waits_for_its_turn(episode: Episode, notes: Notes) -> None:
    (first,) = run_together(episode, ("wait", {"gate": "a"}))
    notes.wait_for("waits a")
    with episode.begin("wait", {"gate": "b"}, "two") as stream:
        pieces = stream.iter_bytes()
        next(pieces)
        assert episode.cancel("two").json() == {"cancelled": True}
        assert events_of(b"".join(pieces))[-1].name == "error"
    notes.open("a")
    assert result_of(first.result())["ok"] is True
    assert notes.count("waits b") == 0
    assert episode.text("echo", text="on") == "on"


def test_cancelling_what_there_is_not(episode: Episode, client: httpx.Client) -> None:
    assert failure_of(episode.cancel("nothing")) == (404, "unknown_call")
    answer = client.post("/cancel", headers=episode.headers)
    assert failure_of(answer) == (400, "invalid_header")
    other = Episode(client, {}).opened()
    call_id = events_of(other.call("count").content)[0].data
    assert failure_of(episode.cancel(call_id)) == (404, "unknown_call")


def test_cancelling_a_call_whose_name_is_not_ascii(episode: Episode, notes: Notes) -> None:
    with episode.begin("wait", {"gate": "g"}, "späte Spur") as stream:
        next(stream.iter_bytes())
        headers = [("X-Session-ID", episode.sid.encode()), ("X-Call-ID", "späte Spur".encode())]
        assert episode.client.post("/cancel", headers=headers).json() == {"cancelled": True}  # type: ignore[arg-type]


def test_a_tool_has_the_time_that_it_says(episode: Episode) -> None:
    words, about = error_of(episode.call("brief", {"gate": "never"}))
    assert words == "'brief' took longer than its limit of 0.2 s"
    assert about == {"kind": "tool_timeout", "retryable": False, "ran": "yes"}
    assert episode.text("echo", text="on") == "on"


@pytest.mark.parametrize("tool", ["wait", "block"])
def test_the_server_says_how_long_all_others_have(serve: Serve, notes: Notes, tool: str) -> None:
    client = client_of(serve(Probe, Odd, Slow, call_timeout=0.2))
    episode = Episode(client, notes.spec()).opened()
    words, about = error_of(episode.call(tool, {"gate": "never"}))
    assert (words, about["kind"]) == (f"'{tool}' took longer than its limit of 0.2 s", "tool_timeout")
    notes.wait_for("cut never")
    assert episode.text("echo", text="on") == "on"


# Limits


def test_as_many_calls_as_the_server_allows(serve: Serve, notes: Notes) -> None:
    client = client_of(serve(Probe, max_calls=2, retry_after=7))
    episode = Episode(client, notes.spec()).opened()
    calls = run_together(episode, *[("overlap", {"gate": "a"})] * 2)
    notes.wait_for("waits a", times=2)
    refused = episode.call("count")
    assert failure_of(refused) == (429, "too_many_calls")
    assert refused.headers["Retry-After"] == "7"
    assert refused.json()["retryable"] is True
    notes.open("a")
    assert all(result_of(call.result())["ok"] for call in calls)
    assert episode.text("count") == "1"


def test_as_many_streams_as_the_server_allows(serve: Serve, notes: Notes) -> None:
    client = client_of(serve(Probe, max_streams=1))
    episode = Episode(client, notes.spec()).opened()
    (call,) = run_together(episode, ("wait", {"gate": "a"}))
    notes.wait_for("waits a")
    refused = episode.call("count")
    assert failure_of(refused) == (503, "too_many_streams")
    assert refused.headers["Retry-After"] == "2"
    notes.open("a")
    assert result_of(call.result())["ok"] is True
    assert episode.text("count") == "1"


@pytest.mark.parametrize(("setting", "size"), [("result_memory", 100), ("result_disk", 1_000_000)])
def test_as_many_results_as_the_server_keeps(serve: Serve, setting: str, size: int) -> None:
    client = client_of(serve(Odd, fresh=True, **{setting: 10_000}))
    episode = Episode(client, {}).opened()
    refused = wait_until(
        lambda: next((a for a in [episode.call("image", {"size": size})] if a.status_code != 200), None)
    )
    assert failure_of(refused) == (429, "results_full")
    assert refused.headers["Retry-After"] == "2"
    # what is kept can still be fetched, and a session that ends makes room
    episode.delete()
    assert Episode(client, {}).opened().text("borrowed") == "for Odd"


def test_as_many_sessions_as_the_server_allows(serve: Serve) -> None:
    client = client_of(serve(Probe, fresh=True, max_sessions=2, retry_after=3))
    first, second, third = (Episode(client, {}) for _ in range(3))
    first.opened()
    second.opened()
    refused = third.create()
    assert failure_of(refused) == (503, "too_many_sessions")
    assert refused.headers["Retry-After"] == "3"
    first.delete()
    assert third.opened().text("count") == "1"


# Connections


def test_a_client_that_vanishes_in_the_middle_of_its_body(
    served: Served, client: httpx.Client, episode: Episode
) -> None:
    address = httpx.URL(served.url)
    for body in (b'{"name": "count", "in', b""):
        with socket.create_connection((address.host, address.port)) as connection:
            connection.sendall(
                b"POST /call HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
                b"X-Session-ID: %s\r\n\r\n%s" % (episode.sid.encode(), body)
            )
    assert episode.text("count") == "1"


def test_many_clients_that_leave_at_once(client: httpx.Client, notes: Notes, served: Served) -> None:
    episodes = [Episode(client, notes.spec()).opened() for _ in range(10)]
    leave: Callable[[Episode], None] = lambda episode: _begin_and_leave(episode)  # noqa: E731
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(leave, episodes))
    notes.open("g")
    notes.wait_for("passed g", times=10)
    wait_until(lambda: served.status()["running"] == 0)
    assert {episode.text("echo", text="on") for episode in episodes} == {"on"}


def _begin_and_leave(episode: Episode) -> None:
    with episode.begin("wait", {"gate": "g"}) as stream:
        next(stream.iter_bytes())
