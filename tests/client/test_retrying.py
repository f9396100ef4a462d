"""When a request is sent again, and when not: what a scripted server sees, and what the caller is told."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest

from ors.client import ORS, AsyncORS, DeadlineExceeded, MaxRetriesError, RequestRefused, Retry
from ors.client.answers import retry_after
from ors.client.retrying import Attempts
from ors.errors import AuthenticationError, ClientError, ProtocolError

from .played import Scripted, answer

QUICK = Retry(attempts=3, first=0.001, most=0.002)
NAMES = answer(200, b'["one"]')


def asked(*answers: bytes, retry: Retry = QUICK, timeout: float = 30.0) -> tuple[Any, Scripted]:
    """What `environments.list()` comes to when the server answers like this, the last answer for ever."""
    with Scripted(lambda method, path, number: answers[min(number, len(answers)) - 1]) as server:
        with ORS(server.url, retry=retry, timeout=timeout) as client:
            try:
                return client.environments.list(), server
            except ClientError as exc:
                return exc, server


@pytest.mark.parametrize("status", [408, 425, 429, 502, 503, 504])
def test_what_passes_is_asked_again(status: int) -> None:
    result, server = asked(answer(status), answer(status), NAMES)
    assert result == ["one"]
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 403, 404, 405, 409, 410, 422, 500, 501])
def test_what_does_not_pass_is_told_at_once(status: int) -> None:
    result, server = asked(answer(status, b'{"detail": "no", "kind": "some_kind"}'))
    assert isinstance(result, RequestRefused)
    assert (result.status, result.kind, len(server.requests)) == (status, "some_kind", 1)
    assert "no" in str(result)


def test_a_key_that_is_not_known_is_told_at_once() -> None:
    result, server = asked(answer(401, b'{"detail": "an API key is required"}'))
    assert isinstance(result, AuthenticationError)
    assert len(server.requests) == 1


def test_the_servers_own_word_counts() -> None:
    result, server = asked(answer(503, b'{"detail": "x", "retryable": false}'), NAMES)
    assert isinstance(result, RequestRefused)
    assert len(server.requests) == 1


def test_the_number_of_attempts_is_bounded_and_the_causes_are_kept() -> None:
    result, server = asked(answer(502, b'{"detail": "first"}'), answer(503, b'{"detail": "second"}'))
    assert isinstance(result, MaxRetriesError)
    assert len(server.requests) == 4
    assert "failed 4 times in a row" in str(result)
    assert isinstance(result.__cause__, RequestRefused)
    assert "second" in str(result.__cause__)
    assert any("first" in note for note in result.__notes__)


def test_one_deadline_is_over_all_attempts() -> None:
    began = time.monotonic()
    result, _ = asked(answer(503), retry=Retry(attempts=1_000, first=0.05, most=0.05), timeout=0.4)
    assert isinstance(result, DeadlineExceeded)
    assert isinstance(result, TimeoutError)
    assert time.monotonic() - began < 5
    assert result.__cause__ is not None


def test_the_time_that_a_server_names_is_waited_for() -> None:
    began = time.monotonic()
    result, server = asked(answer(429, b"{}", "retry-after: 1"), NAMES, retry=Retry(attempts=0))
    assert result == ["one"]
    assert time.monotonic() - began >= 1
    assert len(server.requests) == 2


def test_a_time_beyond_the_deadline_is_not_waited_for() -> None:
    began = time.monotonic()
    result, server = asked(answer(429, b"{}", "retry-after: 3600"), timeout=5)
    assert isinstance(result, DeadlineExceeded)
    assert time.monotonic() - began < 4
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3", 3.0), ("0.5", 0.5), ("", None), ("soon", None), ("-1", None), ("inf", None), ("nan", None)],
)
def test_retry_after_is_a_number(text: str, seconds: float | None) -> None:
    assert retry_after({"Retry-After": text}) == seconds


def test_or_a_date() -> None:
    assert retry_after({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    later = retry_after({"Retry-After": "Wed, 21 Oct 2065 07:28:00 GMT"})
    assert later is not None
    assert later > 1e9


def test_waits_grow_and_differ_from_client_to_client(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    here, asleep = threading.get_ident(), asyncio.sleep

    async def sleep(seconds: float) -> None:
        if threading.get_ident() != here:  # the keeper of another test's sessions
            await asleep(seconds)
            return
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)

    async def fail() -> None:
        attempts = Attempts(Retry(attempts=6, first=1.0, most=8.0), "it", None)
        for _ in range(6):
            await attempts.again(RequestRefused("x", status=503), None)
        with pytest.raises(MaxRetriesError):
            await attempts.again(RequestRefused("x", status=503), None)

    for _ in range(30):
        asyncio.run(fail())
    rounds = [waited[at : at + 6] for at in range(0, len(waited), 6)]
    for number, most in enumerate([1, 2, 4, 8, 8, 8]):
        times = [each[number] for each in rounds]
        assert all(most / 2 <= wait <= most for wait in times)
        assert len(set(times)) > 25


@pytest.mark.parametrize("body", [b"", b"nothing", b"{}", b'{"a": 1', b"[1]", b"null"])
def test_what_is_no_answer_is_an_error_that_shows_it(body: bytes) -> None:
    result, server = asked(answer(200, body))
    assert isinstance(result, ProtocolError)
    assert len(server.requests) == 1


def test_nobody_there_is_tried_again_and_told() -> None:
    with ORS("http://127.0.0.1:9", retry=QUICK) as client, pytest.raises(MaxRetriesError) as told:
        client.environments.list()
    assert "127.0.0.1:9" in str(told.value) or "refused" in str(told.value).lower()


def test_a_redirection_is_told_and_not_followed() -> None:
    result, server = asked(answer(308, b"", "location: /elsewhere"))
    assert isinstance(result, RequestRefused)
    assert "/elsewhere" in str(result)
    assert len(server.requests) == 1


def test_a_create_is_repeated_under_its_key_and_a_call_under_its_id() -> None:
    """Whatever is lost on the way, the server can tell that it is the same."""
    able = {"version": "1", "capabilities": ["client_call_ids", "idempotent_create"]}
    version = answer(200, json.dumps(able).encode())
    output = {"blocks": [{"text": "x"}], "reward": 1.0, "finished": False}
    result = json.dumps({"ok": True, "output": output}).encode()
    failures = {"/create": 2, "/e/call": 2}

    def script(method: str, path: str, number: int) -> bytes:
        if path == "/version":
            return version
        if failures.get(path, 0):
            failures[path] -= 1
            return b"" if failures[path] else answer(502)
        if path == "/e/call":
            return answer(200, result)
        return answer(200, b'{"sid": "s"}')

    async def play(url: str) -> None:
        async with AsyncORS(url, retry=QUICK) as client, client.environment("e").session({"a": 1}) as session:
            assert (await session.call_tool("t", {"x": 1})).reward == 1.0

    with Scripted(script) as server:
        asyncio.run(play(server.url))
    by_path: dict[str, list[tuple[dict[str, str], bytes]]] = {}
    for _, path, headers, body in server.requests:
        by_path.setdefault(path, []).append((headers, body))
    assert len(by_path["/create"]) == 3
    assert len({headers["idempotency-key"] for headers, _ in by_path["/create"]}) == 1
    assert len({headers["x-session-id"] for headers, _ in by_path["/create"]}) == 1
    assert len({body for _, body in by_path["/create"]}) == 1
    assert json.loads(by_path["/create"][0][1])["env_name"] == "e"
    assert len(by_path["/e/call"]) == 3
    assert len({json.loads(body)["task_id"] for _, body in by_path["/e/call"]}) == 1
    assert [path for _, path, _, _ in server.requests].count("/version") == 1
    assert [path for _, path, _, _ in server.requests][-1] == "/delete"
