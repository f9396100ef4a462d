"""The bytes of our streams of events, read from a raw socket."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable

import pytest

from .processes import ServedEnvironments
from .test_fidelity import ALL_BLANK, LETTERS, MOSTLY_BLANK, PLANES
from .texts import text_of
from .wire import Answer, Connection, Event, parse_events, result_of

On = Callable[[Callable[[Connection], Awaitable[None]]], None]


@pytest.fixture
def on(server: ServedEnvironments) -> On:
    """Run a test's body with a connection to the common server."""

    def run(body: Callable[[Connection], Awaitable[None]]) -> None:
        async def main() -> None:
            async with Connection(server.port) as connection:
                await body(connection)

        asyncio.run(main())

    return run


def test_the_reader_forgives_nothing() -> None:
    commented = b": why\r\nevent: error\r\ndata: a\r\ndata: \r\n\r\n"
    assert parse_events(commented) == [Event(None, [": why"]), Event("error", ["a", ""])]
    good = b"event: task_id\r\ndata: 1\r\n\r\n: ping\r\n\r\nevent: end\r\ndata: {}\r\n\r\n"
    assert parse_events(good) == [Event("task_id", ["1"]), Event(None, [": ping"]), Event("end", ["{}"])]
    for bad in (
        good.replace(b"\r\n", b"\n"),
        good[:-2],
        good.replace(b"{}", b"x" * 65_530),
        good.replace(b"data: {}", b"data:{}"),
        good.replace(b"event: end\r\n", b""),
        good.replace(b"event: end\r\n", b"event: end\r\n: ping\r\n"),
    ):
        with pytest.raises(AssertionError):
            parse_events(bad)
    assert result_of(Answer(200, {}, [good])) == {}
    for bad in (good.replace(b"{}", b" {}"), good.replace(b"{}", "\u2028{}".encode()), good + good, good[25:]):
        with pytest.raises(AssertionError):
            result_of(Answer(200, {}, [bad]))


def test_create_session_as_a_stream(on: On) -> None:
    async def body(connection: Connection) -> None:
        answer = await connection.request("POST", "/create_session", Accept="text/event-stream")
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        task_id, end = answer.events
        assert (task_id.name, end.name) == ("task_id", "end")
        # the existing clients take the session's id from here, or from JSON at the end
        assert re.fullmatch(r"[\x21-\x7e]+", task_id.data[0])
        assert end.data[0] == "" or json.loads(end.data[0]) == {"sid": task_id.data[0]}

    on(body)


@pytest.mark.parametrize("accept", ["application/json", "*/*", None])
def test_create_session_as_the_text_has_it(on: On, accept: str | None) -> None:
    async def body(connection: Connection) -> None:
        headers = {"Accept": accept} if accept else {}
        answer = await connection.request("POST", "/create_session", **headers)
        assert answer.headers["content-type"].startswith("application/json")
        (sid,) = json.loads(answer.body).values()
        created = await connection.request("POST", "/create", {"split": "test", "index": 1}, X_Session_ID=sid)
        assert json.loads(created.body) == {"sid": sid}

    on(body)


def test_a_small_result_to_the_byte(on: On) -> None:
    async def body(connection: Connection) -> None:
        answer = await connection.call(await connection.session(), "hint")
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        stream = re.fullmatch(
            rb"event: task_id\r\ndata: ([\x21-\x7e]+)\r\n\r\nevent: end\r\ndata: (.*)\r\n\r\n", answer.body
        )
        assert stream is not None
        assert stream[2] == (
            b'{"ok":true,"output":{"blocks":[{"text":"Add the two numbers.","detail":null,"type":"text"}],'
            b'"metadata":null,"reward":null,"finished":false}}'
        )

    on(body)


def test_a_call_that_ends_at_once_is_one_write(on: On) -> None:
    async def body(connection: Connection) -> None:
        sid = await connection.session()
        await connection.call(sid, "hint")
        # A body of many writes is sent as as many parts. A busy machine may make a call last longer than "at once".
        answers = [await connection.call(sid, tool) for tool in ("hint", "mixed", "secrets") for _ in range(5)]
        assert sum(len(answer.pieces) == 1 for answer in answers) >= 8, [len(answer.pieces) for answer in answers]

    on(body)


@pytest.mark.parametrize(
    "specs",
    [ALL_BLANK, MOSTLY_BLANK, LETTERS, PLANES],
    ids=["nothing but blanks", "mostly blanks", "from nothing to 3 MB", "every plane"],
)
def test_pieces(on: On, specs: list[tuple[str, int, int]]) -> None:
    async def body(connection: Connection) -> None:
        sid = await connection.session()
        for kind, size, seed in specs:
            answer = await connection.call(sid, "text", {"kind": kind, "size": size, "seed": seed})
            (block,) = result_of(answer)["output"]["blocks"]
            assert block["text"] == text_of(kind, size, seed), (kind, size, seed)

    on(body)


def test_a_large_image_in_lines_under_64_kib(on: On) -> None:
    async def body(connection: Connection) -> None:
        answer = await connection.call(await connection.session(), "image", {"kind": "", "size": 6_000_000})
        (block,) = result_of(answer)["output"]["blocks"]
        assert len(block["data"]) == 8_000_000

    on(body)


def test_answers_that_are_no_success(on: On) -> None:
    async def body(connection: Connection) -> None:
        sid = await connection.session()
        refused = result_of(await connection.call(sid, "nope"))
        assert refused.keys() == {"ok", "error", "reason"}
        assert (refused["ok"], refused["reason"]) == (False, "not_found")

        message = "first line\n  indented\r\nafter a break\n\nand \u2028 äöü"
        task_id, error = (await connection.call(sid, "explode", {"message": message})).events
        assert (task_id.name, error.name) == ("task_id", "error")
        # one line of data for each line of the text
        assert "\n".join(error.data).endswith(message.replace("\r\n", "\n"))

        task_id, error = (await connection.call(sid, "explode", {"message": "long " * 100_000})).events
        assert error.name == "error"
        assert 1_000 < sum(len(line.encode()) for line in error.data) < 64 * 1024

    on(body)


def test_an_id_of_the_clients_own_making(on: On) -> None:
    async def body(connection: Connection) -> None:
        sid = await connection.session()
        answers = [await connection.call(sid, "wait", {"seconds": 0}, task_id="trace-123") for _ in range(2)]
        assert answers[0].events[0] == answers[1].events[0] == Event("task_id", ["trace-123"])
        assert [result_of(answer)["output"]["blocks"][0]["text"] for answer in answers] == ["1", "1"]

    on(body)


def test_an_id_that_another_session_got(on: On) -> None:
    async def body(connection: Connection) -> None:
        theirs, ours = await connection.session(), await connection.session()
        task_id, _ = (await connection.call(theirs, "secrets")).events
        # the clients take an id up again with name and input: this must neither run the tool nor show the result
        refused = await connection.call(ours, "wait", {"seconds": 0}, task_id=task_id.data[0])
        assert refused.events == [Event("error", ["unknown task_id"])]
        assert result_of(await connection.call(ours, "waited"))["output"]["blocks"][0]["text"] == "0"

    on(body)


def test_a_cut_stream_is_taken_up_again(on: On, server: ServedEnvironments) -> None:
    async def body(connection: Connection) -> None:
        sid = await connection.session()
        call = {"name": "wait", "input": {"seconds": 1}}
        async with Connection(server.port) as cut:
            sent = await cut.send("POST", "/probe/call", call, X_Session_ID=sid, Accept="text/event-stream")
            await cut.head(sent)
            (first,) = parse_events(await cut.piece())
        assert first.name == "task_id"

        answers = [await connection.call(sid, "wait", {"seconds": 1}, task_id=first.data[0]) for _ in range(2)]
        assert answers[0].events[0] == answers[1].events[0] == first
        assert [result_of(answer)["output"]["blocks"][0]["text"] for answer in answers] == ["1", "1"]
        count = result_of(await connection.call(sid, "waited"))
        assert count["output"]["blocks"][0]["text"] == "1"

    on(body)
