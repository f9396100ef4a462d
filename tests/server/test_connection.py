"""Connections: whatever is sent, in whatever pieces, what comes back is what uvicorn's own protocol answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from ors.server.connection import AT_A_STRETCH, Connection

pytestmark = pytest.mark.anyio

BIG = b"x" * 200_000


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers in every way that an application can, as the path says."""
    assert scope["type"] == "http"
    body = b""
    if scope["path"] != "/unread":
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            if not message["more_body"]:
                break
    said = repr(
        [
            *(scope[key] for key in ("method", "path", "raw_path", "query_string", "http_version", "root_path")),
            scope["headers"],
            len(body),
            body[:100],
        ]
    ).encode()
    length = (b"content-length", b"%d" % len(said))
    kind = (b"Content-Type", b"text/plain")
    start: dict[str, Any] = {"type": "http.response.start", "status": 200, "headers": [kind, length]}
    end: dict[str, Any] = {"type": "http.response.body", "body": said}
    match scope["path"]:
        case "/pieces":
            start["headers"] = [kind]
            await send(start)
            for piece in (said, b"", BIG):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            end = {"type": "http.response.body"}
        case "/big":
            start["headers"] = [(b"content-length", b"%d" % len(BIG))]
            await send(start)
            end["body"] = BIG
        case "/halves":
            await send(start)
            await send({"type": "http.response.body", "body": said[:10], "more_body": True})
            end["body"] = said[10:]
        case "/empty":
            await send({"type": "http.response.start", "status": 204, "headers": []})
            end["body"] = b""
        case "/close":
            start["headers"] = [length, (b"connection", b"keep-alive, Close")]
            await send(start)
        case "/fails":
            raise ValueError("on purpose")
        case "/fails-late":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"99")]})
            raise ValueError("on purpose")
        case "/short":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"99999")]})
        case "/long":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
        case "/split-header":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"a\r\ny: b")]})
        case "/bad-name":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"a b", b"c")]})
        case "/nothing":
            return
        case "/no-end":
            await send(start)
            return
        case "/end-first":
            await send(end)
        case "/twice":
            await send(start)
            await send(end)
        case "/chunked":
            start["headers"] = [(b"transfer-encoding", b"chunked")]
            await send(start)
        case _:
            await send(start)
    await send(end)


@asynccontextmanager
async def serving(protocol: Any, application: Any = app, **options: Any) -> AsyncIterator[tuple[int, ServerState]]:
    config = uvicorn.Config(application, lifespan="off", log_config=None, ws="none", access_log=False, **options)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: protocol(config=config, server_state=state, app_state={}, _loop=loop), "127.0.0.1", 0
    )
    try:
        yield server.sockets[0].getsockname()[1], state
    finally:
        server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        await server.wait_closed()


async def told(port: int, pieces: list[bytes]) -> bytes:
    """All that comes back, until the server closes or nothing more is asked for."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if pieces[-1].endswith(LAST):
            return await reader.read()
        writer.write_eof()
        return await reader.read()
    except ConnectionError:
        return b"(reset)"
    finally:
        writer.close()


async def answered(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length"))
    return head + await reader.readexactly(int(length.partition(b":")[2]))


async def both(pieces: list[bytes]) -> tuple[bytes, bytes]:
    async with serving(HttpToolsProtocol) as (theirs, _), serving(Connection) as (ours, _):
        return await told(theirs, pieces), await told(ours, pieces)


def request(path: str, body: bytes = b"", *headers: bytes, method: str = "POST", version: str = "1.1") -> bytes:
    length = [b"content-length: %d" % len(body)] if body else []
    lines = [f"{method} {path} HTTP/{version}".encode(), b"Host: here", *headers, *length]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


LAST = request("/last", b"", b"connection: close")
PATHS = [
    *("/", "/a%20b?x=%20&y", "/pieces", "/big", "/halves", "/empty", "/close", "/fails", "/fails-late", "/short"),
    *("/long", "/split-header", "/bad-name", "/nothing", "/no-end", "/end-first", "/twice", "/chunked", "/unread"),
]
BROKEN_OFF = ["/fails-late", "/no-end", "/long"]


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
@pytest.mark.parametrize("path", PATHS)
async def test_answers_are_uvicorns(path: str, method: str) -> None:
    body = b"hello" if method == "POST" else b""
    theirs, ours = await both([request(path, body, method=method), LAST])
    if path in BROKEN_OFF:
        # an application that breaks off in the middle has its connection closed; a head still waits for its body here
        assert theirs.startswith(ours)
    else:
        assert ours == theirs


@pytest.mark.parametrize(
    "sent",
    [
        request("/", b"abc", version="1.0") + LAST,
        request("/", b"abc", b"connection: close") + LAST,
        request("/", b"abc", b"Expect: 100-continue") + LAST,
        request("/unread", b"abc", b"Expect: 100-continue") + LAST,
        request("/", b"", b"transfer-encoding: chunked") + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n" + LAST,
        request("/", b"", b"transfer-encoding: chunked") + b"zz\r\n",
        request("/", b"", b"upgrade: h2c", b"connection: upgrade", method="GET"),
        request("/", BIG) + LAST,
        request("/unread", BIG) + LAST,
        b"".join(request(path, b"abc") for path in ("/a", "/pieces", "/b", "/halves")) + LAST,
        request("/a") + b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nab",
        b"GET http://elsewhere/x?y HTTP/1.1\r\nHost: a\r\n\r\n" + LAST,
        request("/?" + "q" * 3000, method="GET") + LAST,
        request("/", b"", *(b"h%d: v" % number for number in range(90)), b"x: \xff\xfe") + LAST,
    ],
)
async def test_requests_of_every_kind(sent: bytes) -> None:
    theirs, ours = await both([sent])
    assert ours == theirs


@pytest.mark.parametrize(
    "headers",
    [
        (b"upgrade: websocket",),
        (b"upgrade: websocket", b"sec-websocket-version: 13"),
        (b"upgrade: websocket", b"sec-websocket-version: 8", b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA=="),
        (b"upgrade: websocket", b"sec-websocket-version: 13", b"sec-websocket-key: AAAA"),
    ],
)
async def test_what_asks_for_a_websocket_as_nobody_should_is_told_the_version(headers: tuple[bytes, ...]) -> None:
    async with serving(Connection) as (port, state):
        answer = await told(port, [request("/", b"", b"connection: upgrade", *headers, method="GET")])
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"sec-websocket-version: 13\r\n" in answer
        assert not state.connections


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    paths=st.lists(st.sampled_from(["/a", "/b?c", "/pieces", "/halves", "/unread"]), min_size=1, max_size=4),
    size=st.sampled_from([0, 1, 70_000]),
    cuts=st.lists(st.integers(0, 1_000), max_size=8),
)
async def test_pieces_of_any_size_mean_the_same(paths: list[str], size: int, cuts: list[int]) -> None:
    sent = b"".join(request(path, b"y" * size) for path in paths)
    places = sorted({0, *(cut * len(sent) // 1_000 for cut in cuts), len(sent)})
    pieces = [*(sent[a:b] for a, b in zip(places, places[1:], strict=False)), LAST]
    theirs, ours = await both(pieces)
    assert ours == theirs
    assert ours.count(b"HTTP/1.1 200") == len(paths) + 1


async def test_a_quiet_connection_is_closed_and_a_busy_one_is_not() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            started.set()
            await go_on.wait()
        await app(scope, receive, send)

    async with serving(Connection, slow, timeout_keep_alive=1) as (port, state):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("/a", b"abc"))
        assert await answered(reader)
        (connection,) = state.connections
        timer = connection._timer
        assert timer is not None
        writer.write(request("/slow"))
        await started.wait()
        connection.timeout_keep_alive_handler()  # the moment comes while a request is under way
        assert not connection.transport.is_closing()
        go_on.set()
        assert await answered(reader)
        assert connection._timer is not None
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        timer.cancel()


async def test_who_leaves_ends_the_wait_for_more() -> None:
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def listens(scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive())["type"] != "http.disconnect":
            await seen.put(message["type"])
        await seen.put("gone")

    async with serving(Connection, listens) as (port, state):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("/", b"abc"))
        assert await seen.get() == "http.request"
        writer.close()
        assert await seen.get() == "gone"
        await writer.wait_closed()


async def test_a_reader_that_does_not_read_holds_the_writer() -> None:
    written: list[int] = []
    done = asyncio.Event()

    async def pours(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            for _ in range(400):
                await send({"type": "http.response.body", "body": BIG, "more_body": True})
                written.append(len(BIG))
        finally:
            done.set()

    async with serving(Connection, pours) as (port, state):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
        writer.write(request("/"))
        await reader.read(1)
        (connection,) = state.connections
        while not connection.flow.write_paused:
            await asyncio.sleep(0)
        assert sum(written) < 80_000_000
        while not done.is_set():
            await reader.read(1 << 20)
        assert sum(written) == 400 * len(BIG)
        writer.transport.abort()


async def test_a_shutdown_lets_the_answer_under_way_end() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        started.set()
        await go_on.wait()
        await app(scope, receive, send)

    async with serving(Connection, slow) as (port, state):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("/"))
        await started.wait()
        (connection,) = state.connections
        connection.shutdown()
        go_on.set()
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in answer
        assert not state.tasks
        writer.close()


async def test_of_a_crowd_a_few_begin_at_once_and_the_urgent_do_not_wait() -> None:
    order: list[str] = []

    async def notes(scope: Any, receive: Any, send: Any) -> None:
        order.append(scope["path"])
        await app(scope, receive, send)

    async with serving(Connection, notes) as (port, state):
        clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3 * AT_A_STRETCH + 1)]
        while len(state.connections) < len(clients):
            await asyncio.sleep(0)
        # all of them in one pass of the loop, as when the system reports that many sockets at once
        accepted = {connection.transport.get_extra_info("peername"): connection for connection in state.connections}
        for number, (_, writer) in enumerate(clients):
            path = "/health" if number == len(clients) - 1 else f"/{number}"
            accepted[writer.get_extra_info("sockname")].data_received(request(path, method="GET"))
        answers = [await answered(reader) for reader, _ in clients]
        for _, writer in clients:
            writer.close()
    assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)
    assert [path for path in order if path != "/health"] == [f"/{number}" for number in range(3 * AT_A_STRETCH)]
    assert order.index("/health") == AT_A_STRETCH
