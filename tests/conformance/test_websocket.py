"""Sockets as the check speaks them: whatever a server does is a finding, and nothing waits for ever."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ors.conformance.judging import Failed
from ors.conformance.websocket import Socket
from ors.conformance.wire import Address, Speaker

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    key = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
    token = base64.b64encode(hashlib.sha1(key.partition(b":")[2].strip() + GUID).digest())
    lines = [b"HTTP/1.1 101 Switching Protocols", b"Upgrade: websocket", b"Connection: Upgrade"]
    writer.write(b"\r\n".join([*lines, b"Sec-WebSocket-Accept: " + token, b"", b""]))


def frame(payload: bytes, opcode: int = 1, last: bool = True) -> bytes:
    assert len(payload) < 126
    return bytes([(0x80 if last else 0) | opcode, len(payload)]) + payload


async def talk(serve: Serve, work: Callable[[Socket], Awaitable[Any]]) -> Any:
    serving: list[asyncio.StreamWriter] = []

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(writer)
        await serve(reader, writer)

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    socket = Socket(Speaker(Address(url), timeout_s=0.5), "/ws")
    try:
        await socket.open()
        return await work(socket)
    finally:
        socket.leave()
        server.close()
        for writer in serving:
            writer.close()


def sending(*frames: bytes, close: bool = False) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accept(reader, writer)
        for piece in frames:
            writer.write(piece)
        if close:
            writer.close()

    return serve


async def hear(socket: Socket) -> Any:
    return await socket.hear()


def test_a_message_in_pieces_and_around_a_ping() -> None:
    frames = (frame(b'{"a":', last=False), frame(b"", opcode=9), frame(b" 1}", opcode=0))
    assert asyncio.run(talk(sending(*frames), hear)) == {"a": 1}


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ((frame(b"nonsense"),), "not JSON"),
        ((frame(b'{"a": NaN}'),), "not JSON"),
        ((frame(b"[1]"),), "no JSON object"),
        ((frame(b"{}", opcode=2),), "bytes"),
        ((frame(b"\x03\xe8", opcode=8),), "closed the socket \\(code 1000\\)"),
        ((b"\xff\xff\xff\xff",), "code 1002"),
        ((), "no message came within 0.5 s"),
    ],
    ids=["text", "nan", "array", "bytes", "closed", "noise", "silence"],
)
def test_what_is_no_message_is_a_finding(frames: tuple[bytes, ...], words: str) -> None:
    with pytest.raises(Failed, match=words) as failed:
        asyncio.run(talk(sending(*frames), hear))
    assert failed.value.answer is not None
    assert failed.value.answer.request.path == "/ws"


def test_a_connection_that_ends_is_a_finding() -> None:
    with pytest.raises(Failed, match="code 1006"):
        asyncio.run(talk(sending(close=True), hear))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", "refused with status 403"),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n", "no WebSocket"),
        (b"nonsense\r\n\r\n", "no WebSocket"),
        (b"", "not opened within 0.5 s"),
    ],
    ids=["refused", "no token", "noise", "silence"],
)
def test_a_socket_that_does_not_open_is_a_finding(answer: bytes, words: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    with pytest.raises(Failed, match=words):
        asyncio.run(talk(serve, hear))


def test_what_is_said_arrives_and_is_shown() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accept(reader, writer)
        head = await reader.readexactly(2)
        mask = await reader.readexactly(4)
        body = await reader.readexactly(head[1] & 0x7F)
        writer.write(frame(bytes(byte ^ mask[at % 4] for at, byte in enumerate(body))))
        writer.write(frame(b"\x03\xe8", opcode=8))

    async def work(socket: Socket) -> Any:
        came = await socket.ask({"type": "state"})
        assert await socket.ended() == 1000
        talk = socket.talk()
        assert talk.request.body == b'{"type": "state"}'
        assert talk.body == b'{"type": "state"}\n(closed: 1000)'
        with pytest.raises(Failed, match="has closed"):
            await socket.say("more")
        return came

    assert asyncio.run(talk(serve, work)) == {"type": "state"}
