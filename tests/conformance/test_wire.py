"""The speaker and the reader of events, byte by byte."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ors.conformance.events import read_stream
from ors.conformance.judging import Call, Failed
from ors.conformance.wire import Address, Answer, BadJSON, Sent, Speaker, strict_json

from .bad_servers import serving, whole

STREAM = (
    b"event: task_id\r\ndata: 1\r\n\r\n: ping\r\n\r\n"
    b'event: chunk\r\ndata: {"ok":\r\n\r\nevent: end\r\ndata:  false}\r\n\r\n'
)


def answer_of(*pieces: bytes, kind: str = "text/event-stream") -> Answer:
    timed = [(float(number), piece) for number, piece in enumerate(pieces)]
    return Answer(Sent("POST", "/call"), 200, [("content-type", kind)], timed)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("ends", [b"\r\n", b"\n", b"\r"])
def test_a_stream_is_the_same_however_it_is_cut(size: int, ends: bytes) -> None:
    body = STREAM.replace(b"\r\n", ends)
    stream = read_stream(answer_of(*(body[at : at + size] for at in range(0, len(body), size))))
    assert [(event.name, event.data) for event in stream.events] == [
        ("task_id", ("1",)),
        ("chunk", ('{"ok":',)),
        # one blank after the colon is no part of a value, a second one is
        ("end", (" false}",)),
    ]
    assert [comment for _, comment in stream.comments] == ["ping"]
    assert (stream.odd_lines, stream.not_utf8, stream.unfinished) == ([], False, False)


def test_events_have_the_time_at_which_their_end_came() -> None:
    stream = read_stream(answer_of(b"event: a\r\n", b"data: x\r\n", b"\r\nevent: b\r\ndata: y", b"\r\n\r\n"))
    assert [(event.name, event.at_s) for event in stream.events] == [("a", 2.0), ("b", 3.0)]


def test_what_readers_trip_over_is_seen() -> None:
    stream = read_stream(
        answer_of(b"\xef\xbb\xbfevent: a\r\ndata: \xff\r\nretry\r\nother: x\r\n\r\nevent: end\r\ndata: 1\r\n")
    )
    assert stream.not_utf8
    assert stream.odd_lines == ["retry", "other: x"]
    assert stream.unfinished
    assert [event.name for event in stream.events] == ["a"]
    assert stream.longest_line == len("event: end")


def test_a_call_is_read_as_far_as_it_can_be() -> None:
    call = Call(answer_of(STREAM), "a_tool")
    assert (call.id, call.result(), call.succeeded) == ("1", {"ok": False}, False)
    call.must_not_succeed("it was asked wrongly")
    good = Call(answer_of(b'event: end\r\ndata: {"ok":true,"output":{}}\r\n\r\n'), "a_tool")
    assert good.succeeded
    for bad in (good, Call(answer_of(b"event: end\r\ndata: {\r\n\r\n"), "a_tool"), Call(answer_of(b""), "a_tool")):
        with pytest.raises(Failed):
            bad.must_not_succeed("it was asked wrongly")
    Call(answer_of(b"event: error\r\ndata: no\r\n\r\n"), "a_tool").must_not_succeed("it was asked wrongly")
    with pytest.raises(Failed, match="not text/event-stream"):
        Call(answer_of(b"{}", kind="application/json"), "a_tool").result()


@pytest.mark.parametrize(
    "text", [b"", b"NaN", b"[Infinity]", b'{"a":1,"a":2}', b"\xff", b"[" * 100_000, b"1" * 5000, b"{'a':1}"]
)
def test_json_that_no_two_programs_read_alike(text: bytes) -> None:
    with pytest.raises(BadJSON):
        strict_json(text)


def test_json() -> None:
    assert strict_json('{"a": [1, null, "\\u00e4", 1e3]}') == {"a": [1, None, "ä", 1000.0]}


@pytest.mark.parametrize(
    ("url", "authority", "prefix", "port"),
    [
        ("http://127.0.0.1:8080", "127.0.0.1:8080", "", 8080),
        ("http://example.org/a/b/", "example.org", "/a/b", 80),
        ("https://example.org", "example.org", "", 443),
        ("http://[::1]:9", "[::1]:9", "", 9),
    ],
)
def test_addresses(url: str, authority: str, prefix: str, port: int) -> None:
    address = Address(url)
    assert (address.authority, address.prefix, address.port) == (authority, prefix, port)


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080", "ftp://example.org", "http://", "http://:80", "http://a:b"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ValueError):
        Address(url)


def test_a_request_as_it_is_sent_and_an_answer_as_it_comes() -> None:
    seen: list[bytes] = []

    async def handler(line: str, reader: Any, writer: Any) -> None:
        seen.append(line.encode())
        writer.write(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
            if "chunked" in line
            else b"HTTP/1.1 200 OK\r\n\r\nuntil the end"
            if "close" in line
            else b"HTTP/1.1 103 Early Hints\r\n\r\n" + whole(b"{}")
        )
        await writer.drain()

    async def main() -> None:
        async with serving(handler) as (url, asked):
            speaker = Speaker(Address(f"{url}/below"), headers={"X-API-Key": "k"})
            chunked = await speaker.ask("POST", "/a b/chunked", body={"a": 1})
            assert (chunked.status, chunked.body, chunked.header("X-A"), chunked.problem) == (200, b"abcde", "1", None)
            assert asked == ["POST /below/a%20b/chunked HTTP/1.1"]
            # the key of the user is sent, and is no part of what can be shown
            assert "X-API-Key" not in chunked.request.headers
            assert (await speaker.ask("GET", "/close")).body == b"until the end"
            hinted = await speaker.ask("GET", "/hinted")
            assert (hinted.status, hinted.json(), hinted.problem) == (200, {}, None)
            cut = await speaker.ask("GET", "/chunked", until=lambda answer: answer.body.startswith(b"abc"))
            assert cut.cut

    asyncio.run(main())
