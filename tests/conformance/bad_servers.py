"""Servers that are no good: they hang, close, lie, stream for ever and send garbage. Raw sockets."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable

Handler = Callable[[str, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[tuple[str, list[str]]]:
    """Serve connections with a handler, which gets the first line; yields the address and what was asked."""
    asked: list[str] = []
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        tasks.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            line = head.split(b"\r\n")[0].decode()
            asked.append(line)
            length = [int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.lower().startswith(b"content-length:")]
            await reader.readexactly(length[0] if length else 0)
            await handler(line, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}", asked
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def whole(body: bytes, status: str = "200 OK", kind: str = "application/json") -> bytes:
    """An answer."""
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def hangs(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def closes(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    return


async def garbage(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(bytes(range(256)) * 50)
    await writer.drain()


async def breaks_off(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n[")
    await writer.drain()


async def body_without_end(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
        await writer.drain()


async def headers_without_end(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    for number in itertools.count():
        writer.write(b"X-%d: %s\r\n" % (number, b"y" * 1000))
        await writer.drain()


async def continues_without_end(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
        await writer.drain()


async def deep(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(b"[" * 200_000 + b"]" * 200_000))
    await writer.drain()


async def redirects(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/" + b"x" * 5000 + b"\r\nContent-Length: 0\r\n\r\n"
    )
    await writer.drain()


async def web_site(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(b"<!doctype html><title>Hello</title>", kind="text/html"))
    await writer.drain()


def says(value: object) -> Handler:
    """The same JSON to everything."""

    async def handler(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(whole(json.dumps(value).encode()))
        await writer.drain()

    return handler


async def calls_without_end(line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that looks right until a tool is called: its streams send comments for ever."""
    method, path, _ = line.split()
    answers = {
        "list_environments": ["endless"],
        "splits": [{"name": "train", "type": "train"}],
        "tools": {"tools": [{"name": "go", "description": "", "input_schema": None}]},
        "tasks": {"tasks": [{"a": 1}], "env_name": "endless"},
        "num_tasks": {"num_tasks": 1},
        "task": {"task": {"a": 1}, "env_name": "endless"},
        "create_session": {"sid": "one"},
        "create": {"sid": "one"},
        "delete": {"sid": "one"},
        "prompt": [{"type": "text", "text": "go"}],
    }
    route = path.rpartition("/")[2]
    if route == "call":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in itertools.count():
            writer.write(b"8\r\n: ping\n\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)
    writer.write(whole(json.dumps(answers.get(route, {})).encode()))
    await writer.drain()


BAD = {
    "hangs": hangs,
    "closes": closes,
    "sends garbage": garbage,
    "breaks off": breaks_off,
    "sends a body without end": body_without_end,
    "sends headers without end": headers_without_end,
    "says continue without end": continues_without_end,
    "sends what is nested deeply": deep,
    "redirects elsewhere": redirects,
    "is a web site": web_site,
    "streams calls without end": calls_without_end,
    "says null": says(None),
    "says an empty object": says({}),
    "says an empty array": says([]),
    "says an array of objects": says([{"name": "a", "type": "train"}]),
    "says arrays in arrays": says([[[]]]),
    "says what cannot be written": says(["\ud800", "a\nb", "..", "%2e/", "\x1b[2J", "x" * 3000]),
    "says objects that cannot be written": says(
        {"tools": [{"name": "\ud800", "description": "\udfff", "input_schema": None}]}
    ),
    "says everything at once": says(
        {
            "tools": [{"name": [], "input_schema": {"$ref": "#"}}],
            "tasks": {},
            "num_tasks": 3,
            "task": [],
            "sid": {},
            "ok": [],
        }
    ),
}
