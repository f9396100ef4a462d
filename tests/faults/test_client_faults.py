"""Every fault of the existing clients, by its number in docs/faults.md: what this client does instead.

Most play on a scripted server, which says nothing of what it can do, as the existing servers do.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from client.played import Scripted, answer
from ors import ToolSpec
from ors.client import (
    ORS,
    AsyncORS,
    Environment,
    MaxRetriesError,
    RequestLost,
    RequestRefused,
    Retry,
    SessionLost,
    ToolFailed,
)
from ors.client.formats import convert_tools
from served import Served, wait_until

from .environments import Steady

QUICK = Retry(attempts=3, first=0.005, most=0.01)
RIGHT = {
    "ok": True,
    "output": {"blocks": [{"text": "right", "detail": None, "type": "text"}], "reward": 1.0, "finished": False},
}
NOTHING = b""
"""The answer of a server that closes the connection instead."""


def events(*said: tuple[str, str]) -> bytes:
    """An answer of events, whose connection then closes."""
    body = "".join(f"event: {name}\r\ndata: {data}\r\n\r\n" for name, data in said).encode()
    return answer(200, body, "connection: close").replace(b"application/json", b"text/event-stream")


def done(value: Any = RIGHT, call_id: str = "theirs") -> bytes:
    """A call that ended."""
    return events(("task_id", call_id), ("end", json.dumps(value)))


class Site:
    """A server that answers as the existing ones do, but for what a test says otherwise by `method path`."""

    def __init__(self, **_: Any) -> None:
        self.says: dict[str, Callable[[int], bytes]] = {}
        self.asked: dict[str, int] = {}
        self.server = Scripted(self._answer)

    def _answer(self, method: str, path: str, number: int) -> bytes:
        name = f"{method} {path}"
        self.asked[name] = self.asked.get(name, 0) + 1
        if name in self.says:
            return self.says[name](self.asked[name])
        if path == "/version":
            return answer(404, b'{"detail":"Not Found"}')
        if path == "/env/prompt":
            return answer(200, b'[{"text":"go","detail":null,"type":"text"}]')
        if path == "/env/call":
            return done()
        return answer(200, b'{"sid":"x","status":"ok"}')

    def sent(self, name: str) -> list[tuple[dict[str, str], bytes]]:
        """Headers and body of each request of a name."""
        return [(headers, body) for method, path, headers, body in self.server.requests if f"{method} {path}" == name]


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    with made.server:
        yield made


@contextmanager
def playing(site: Site, **options: Any) -> Iterator[Any]:
    """An open session on it."""
    with ORS(site.server.url, **{"retry": QUICK, **options}) as client:
        with client.environment("env").session(split="train", index=0) as session:
            yield session


# 7.1 Wrong data or wrong execution


def test_7_1_1_blanks_at_the_border_of_a_piece(site: Site) -> None:
    text = "a" * 50 + " " * 300 + "\u3000\tb\n c"
    result = {"ok": True, "output": {"blocks": [{"text": text}], "reward": None}}
    whole = json.dumps(result, ensure_ascii=False)
    for cut in range(1, len(whole)):
        pieces = [("task_id", "x"), ("chunk", whole[:cut]), ("end", whole[cut:])]
        site.says["POST /env/call"] = lambda number, pieces=pieces: events(*pieces)
        if cut % 7 and not 80 < cut < 100:
            continue
        with playing(site) as session:
            assert session.call_tool("look").blocks[0].text == text


def test_7_1_2_a_call_whose_connection_is_lost_is_not_sent_again(site: Site) -> None:
    site.says["POST /env/call"] = lambda number: NOTHING
    with playing(site) as session, pytest.raises(RequestLost, match="may have run or not") as lost:
        session.call_tool("look")
    assert (lost.value.kind, lost.value.sid) == ("connection_lost", session.sid)
    assert lost.value.__cause__ is not None
    assert site.asked["POST /env/call"] == 1


def test_7_1_2_once_the_server_has_named_the_call_its_result_is_fetched_by_that_name(site: Site) -> None:
    site.says["POST /env/call"] = lambda number: events(("task_id", "t-1")) if number < 3 else done(call_id="t-1")
    with playing(site) as session:
        assert session.call_tool("look").reward == 1.0
    bodies = [json.loads(body) for _, body in site.sent("POST /env/call")]
    assert [body.get("task_id") for body in bodies] == [None, "t-1", "t-1"]


def test_7_1_2_a_stream_that_never_ends_as_it_should_is_given_up(site: Site) -> None:
    site.says["POST /env/call"] = lambda number: events(("task_id", "t-1"))
    with playing(site) as session, pytest.raises(MaxRetriesError, match="ended before the result"):
        session.call_tool("look")
    bodies = [json.loads(body) for _, body in site.sent("POST /env/call")]
    assert [body.get("task_id") for body in bodies] == [None, "t-1", "t-1", "t-1"]


def test_7_1_2_a_server_that_is_silent_during_setup_is_waited_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ors.client.calls.SILENCE_S", 0.05)
    silent = threading.Event()

    def slowly(number: int) -> bytes:
        silent.wait(0.5)  # ten times as long as what counts as lost once a call has a name
        return done()

    site.says["POST /env/call"] = slowly
    with playing(site) as session:
        assert session.call_tool("look").reward == 1.0
    assert site.asked["POST /env/call"] == 1


def test_7_1_4_the_name_of_the_environment_is_always_sent(site: Site) -> None:
    with playing(site) as session:
        session.call_tool("look")
    (_, body), *_ = site.sent("POST /create")
    assert json.loads(body) == {"env_name": "env", "split": "train", "index": 0}
    assert {path for _, path, _, _ in site.server.requests} == {"/version", "/create", "/env/call", "/delete"}


@pytest.mark.parametrize("place", ["body", "header", "header, as the version says"])
def test_7_1_5_secrets_arrive_where_the_server_reads_them(site: Site, place: str) -> None:
    got = {}

    def create(number: int) -> bytes:
        headers, body = site.sent("POST /create")[-1]
        if place != "body" and "secrets" in json.loads(body):
            fault = {"type": "extra_forbidden", "loc": ["body", "secrets"], "msg": "Extra inputs are not permitted"}
            return answer(422, json.dumps({"detail": [{**fault, "input": json.loads(body)["secrets"]}]}).encode())
        got["body"] = json.loads(body).get("secrets")
        got["header"] = headers.get("x-secrets")
        return answer(200, b'{"sid":"x"}')

    site.says["POST /create"] = create
    if place.endswith("says"):
        site.says["GET /version"] = lambda number: answer(200, b'{"version":"0.1.167","build_sha":null}')
    with ORS(site.server.url) as client:
        with client.environment("env").session(split="train", index=0, secrets={"key": "s3cret-ä"}):
            pass
    if place == "body":
        assert got == {"body": {"key": "s3cret-ä"}, "header": None}
    else:
        assert json.loads(base64.b64decode(got["header"])) == {"key": {"value": "s3cret-ä"}}
        assert site.asked["POST /create"] == (2 if place == "header" else 1)


def test_7_1_10_schemas_keep_their_types_and_their_place() -> None:
    schema = {
        "type": "object",
        "properties": {
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "description": "How many."},
            "what": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        },
    }
    tools = [ToolSpec(name="look", description="Look.", input_schema=schema)]
    (google,) = convert_tools(tools, "google")
    limit = google["parameters"]["properties"]["limit"]
    assert (limit["type"].upper(), limit["nullable"], limit["description"]) == ("INTEGER", True, "How many.")
    (openai,) = convert_tools(tools, "openai")
    kinds = {option["type"] for option in openai["parameters"]["properties"]["what"]["anyOf"]}
    assert kinds == {"integer", "string"}
    assert openai["parameters"]["properties"]["limit"]["description"] == "How many."
    (router,) = convert_tools(tools, "openrouter")
    assert set(router["function"]["parameters"]["properties"]) == {"limit", "what"}


def test_7_1_13_a_prompt_is_asked_for_once(site: Site) -> None:
    with playing(site) as session:
        assert session.get_prompt() == session.get_prompt()
    assert site.asked["GET /env/prompt"] == 1
    site.says["GET /env/prompt"] = lambda number: NOTHING
    with playing(site) as session, pytest.raises(RequestLost):
        session.get_prompt()
    assert site.asked["GET /env/prompt"] == 2


def test_7_1_16_the_prompt_is_the_sessions() -> None:
    assert not hasattr(Environment, "get_prompt")
    with ORS("http://127.0.0.1:1") as client:
        assert hasattr(client.environment("env").session(split="train", index=0), "get_prompt")


def test_7_1_17_the_server_is_asked_for_any_toolset(site: Site) -> None:
    with ORS(site.server.url) as client:
        for name in ("cli", "web", "one of tomorrow"):
            with client.environment("env").session(split="train", index=0, toolset=name):
                pass
    assert [json.loads(body)["toolset_name"] for _, body in site.sent("POST /create")] == [
        "cli",
        "web",
        "one of tomorrow",
    ]


# 7.2 Hangs, time and availability


def test_7_2_6_a_synchronous_session_is_kept_alive_while_its_caller_thinks(site: Site) -> None:
    with playing(site, ping_interval=0.02) as session:
        wait_until(lambda: site.asked.get("POST /ping", 0) >= 3)
        assert session.call_tool("look").reward == 1.0
    assert {headers["x-session-id"] for headers, _ in site.sent("POST /ping")} == {session.sid}


def test_7_2_6_also_one_of_an_event_loop_that_is_blocked(site: Site) -> None:
    async def main() -> None:
        async with AsyncORS(site.server.url, ping_interval=0.02) as client:
            async with client.environment("env").session(split="train", index=0):
                wait_until(lambda: site.asked.get("POST /ping", 0) >= 3)

    asyncio.run(main())


def test_7_2_6_the_synchronous_client_works_in_a_running_loop(site: Site) -> None:
    async def cell() -> float:
        with playing(site) as session:
            return float(session.call_tool("look").reward)

    assert asyncio.run(cell()) == 1.0


def test_7_2_7_a_ping_that_fails_ends_nothing(site: Site) -> None:
    failing = [NOTHING, answer(503), answer(500), answer(404, b'{"detail":"Not Found"}'), answer(429)]
    site.says["POST /ping"] = lambda number: failing[number % len(failing)]
    with playing(site, ping_interval=0.02) as session:
        wait_until(lambda: site.asked.get("POST /ping", 0) >= 2 * len(failing))
        assert session.call_tool("look").reward == 1.0


@pytest.mark.parametrize(
    "gone", [answer(404, b'{"detail":"Active environment not found"}'), answer(410, b'{"detail":"Session deleted"}')]
)
def test_7_2_7_a_session_that_is_gone_is_lost_at_once(site: Site, gone: bytes) -> None:
    never = threading.Event()
    site.says["POST /ping"] = lambda number: gone
    began = time.monotonic()
    calls_wait = threading.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # pings and everything else are answered; a call never is
        while head := await reader.readuntil(b"\r\n\r\n"):
            first = head.split(b"\r\n", 1)[0].decode()
            length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0)
            await reader.readexactly(length)
            method, path, _ = first.split(" ")
            if path == "/env/call":
                calls_wait.set()
                await asyncio.Event().wait()
            writer.write(site._answer(method, path, 0))

    site.server._handle = hang  # type: ignore[method-assign]
    with playing(site, ping_interval=0.05) as session:
        with pytest.raises(SessionLost) as lost:
            session.call_tool("look")
        assert calls_wait.is_set()
        assert lost.value.sid == session.sid
        with pytest.raises(SessionLost):
            session.get_prompt()
    assert time.monotonic() - began < 20
    assert "GET /env/prompt" not in site.asked
    assert not never.is_set()


def test_7_2_8_a_forked_process_pings_as_well(site: Site) -> None:
    program = (
        "import os, sys\n"
        "from ors.client import ORS\n"
        "client = ORS(sys.argv[1], ping_interval=0.02)\n"
        "env = client.environment('env')\n"
        "with env.session(split='train', index=0) as mine:\n"
        "    mine.call_tool('look')\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        with env.session(split='train', index=1) as session:\n"
        "            print(session.sid, flush=True)\n"
        "            sys.stdin.readline()\n"
        "        os._exit(0)\n"
        "    sys.exit(os.waitpid(child, 0)[1])\n"
    )
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", program, site.server.url], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    sid = process.stdout.readline().strip()
    try:
        pinged = lambda: [h for h, _ in site.sent("POST /ping") if h["x-session-id"] == sid]  # noqa: E731
        wait_until(lambda: len(pinged()) >= 3, within_s=20)
    finally:
        _, errors = process.communicate("go on\n", timeout=30)
    assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize("status", [400, 403, 404, 409, 410, 413, 422, 500, 501])
def test_7_2_9_what_cannot_pass_is_told_at_once(site: Site, status: int) -> None:
    site.says["POST /env/tasks"] = lambda number: answer(status, b'{"detail":"Invalid split"}')
    with ORS(site.server.url) as client, pytest.raises(RequestRefused, match="Invalid split") as refused:
        client.environment("env").list_tasks("nope")
    assert refused.value.status == status
    assert site.asked["POST /env/tasks"] == 1


def test_7_2_10_an_older_server_is_asked_for_the_tools_that_every_task_has(site: Site) -> None:
    tools = {"tools": [{"name": "look", "description": "Look.", "input_schema": None, "title": "more"}]}
    site.says["GET /env/task_tools"] = lambda number: answer(404, b'{"detail":"Not Found"}')
    site.says["GET /env/tools"] = lambda number: answer(200, json.dumps(tools).encode())
    with playing(site) as session:
        assert session.list_tools() == [ToolSpec(name="look", description="Look.", input_schema=None)]
    site.says["GET /env/task_tools"] = lambda number: answer(500, b'{"detail":"broken"}')
    with playing(site) as session, pytest.raises(RequestRefused) as refused:
        session.list_tools()
    assert (refused.value.status, site.asked["GET /env/tools"]) == (500, 1)


def test_7_2_13_a_line_of_any_length_is_read(site: Site) -> None:
    words = "x" * 3_000_000
    site.says["POST /env/call"] = lambda number: events(("task_id", "t"), ("error", words))
    with playing(site) as session, pytest.raises(ToolFailed) as failed:
        session.call_tool("look")
    assert failed.value.detail == words


# 7.3 Cost and leaks


def test_7_3_8_a_session_that_could_not_be_opened_is_deleted(site: Site) -> None:
    site.says["POST /create"] = lambda number: answer(500, b'{"detail":"ValueError: no"}')
    with ORS(site.server.url) as client, pytest.raises(RequestRefused):
        client.environment("env").session(split="train", index=0).__enter__()
    (made, _), (deleted, _) = site.sent("POST /create")[0], site.sent("POST /delete")[0]
    assert made["x-session-id"] == deleted["x-session-id"]


def test_7_3_8_one_whose_answer_was_lost_is_opened_anew_and_deleted_too(site: Site) -> None:
    # whether the first arrived cannot be known, and two under one id would be two instances on some servers
    site.says["POST /create"] = lambda number: NOTHING if number == 1 else answer(200, b'{"sid":"x"}')
    with playing(site) as session:
        assert session.call_tool("look").reward == 1.0
    made = [headers["x-session-id"] for headers, _ in site.sent("POST /create")]
    deleted = {headers["x-session-id"] for headers, _ in site.sent("POST /delete")}
    assert len(made) == len(set(made)) == 2
    assert set(made) == deleted
    assert made[1] == session.sid


def test_7_3_9_one_request_for_one_question(site: Site) -> None:
    site.says["POST /env/num_tasks"] = lambda number: answer(200, b'{"num_tasks":7}')
    site.says["POST /env/task"] = lambda number: answer(200, b'{"task":{"n":1}}')
    with ORS(site.server.url) as client:
        env = client.environment("env")
        assert env.num_tasks("train") == 7
        assert env.get_task("train", 1).task_spec == {"n": 1}
    assert len(site.server.requests) == 2
    with playing(site) as session:
        session.get_prompt()
        session.call_tool("look")
    paths = [path for _, path, _, _ in site.server.requests[2:]]
    assert paths == ["/version", "/create", "/env/prompt", "/env/call", "/delete"]


def test_7_3_11_connections_close_without_being_told_to() -> None:
    served = Served([Steady])
    program = (
        "import asyncio, sys\n"
        "from ors.client import AsyncORS\n"
        "async def main():\n"
        "    env = AsyncORS(sys.argv[1]).environment('steady')\n"
        "    async with env.session(split='train', index=0) as session:\n"
        "        print((await session.call_tool('go')).blocks[0].text)\n"
        "asyncio.run(main())\n"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", program, served.url],
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        served.stop()
    assert (done.stdout, done.stderr, done.returncode) == ("gone\n", "", 0)


# 7.4 Security


def test_7_4_7_no_environment_gets_the_clients_own_key(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORS_API_KEY", "the-key-of-the-client")
    with ORS(site.server.url) as client:
        with client.environment("env").session(split="train", index=0, secrets={"mine": "given"}) as session:
            session.call_tool("look")
            shown = repr((client, client.environments, client.environment("env"), session, session._inner.__dict__))
    for method, path, headers, body in site.server.requests:
        assert headers["x-api-key"] == "the-key-of-the-client"
        rest = json.dumps([method, path, {k: v for k, v in headers.items() if k != "x-api-key"}, body.decode()])
        assert "the-key-of-the-client" not in rest
    (_, body), *_ = site.sent("POST /create")
    assert json.loads(body)["secrets"] == {"mine": "given"}
    assert "given" not in shown and "the-key-of-the-client" not in shown
    gc.collect()
    assert os.environ["ORS_API_KEY"] == "the-key-of-the-client"
