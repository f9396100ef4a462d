"""Connections of the client: made few at a time, however many sessions there are, and read in moderate pieces."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from yarl import URL

from ors.client.transport import Transport

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n"


class Waiting:
    """A server that answers its requests when there are as many as it waits for."""

    def __init__(self, wanted: int, body: bytes) -> None:
        self.wanted, self.body = wanted, body
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.writers.append(writer)
        if len(self.writers) == self.wanted:
            for each in self.writers:
                each.write(HEAD % len(self.body) + self.body)


async def fetched(count: int, body: bytes) -> tuple[list[bytes], Transport]:
    waiting = Waiting(count, body)
    server = await asyncio.start_server(waiting.serve, "127.0.0.1", 0, backlog=1000)
    url = URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    transport = Transport({})
    try:
        answers = await asyncio.gather(*(transport.fetch("GET", url, None, None) for _ in range(count)))
        return [answer.body for answer in answers], transport
    finally:
        await transport.close()
        server.close()
        for writer in waiting.writers:
            writer.close()


def test_a_thousand_at_once_each_have_a_connection_and_few_are_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    making, most = 0, 0
    make = aiohttp.TCPConnector._create_connection

    async def counted(self: Any, *args: Any) -> Any:
        nonlocal making, most
        making += 1
        most = max(most, making)
        try:
            return await make(self, *args)
        finally:
            making -= 1

    monkeypatch.setattr(aiohttp.TCPConnector, "_create_connection", counted)
    # none is answered before all have been sent: a limit on connections would wait for ever
    bodies, _ = asyncio.run(fetched(1000, b"here"))
    assert bodies == [b"here"] * 1000
    assert 1 < most <= 256


def test_a_large_answer_comes_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: set[int] = set()
    received = aiohttp.client_proto.ResponseHandler.data_received

    def seen(self: Any, data: bytes) -> None:
        sizes.add(len(data))
        received(self, data)

    monkeypatch.setattr(aiohttp.client_proto.ResponseHandler, "data_received", seen)
    body = bytes(range(256)) * 40_000
    bodies, _ = asyncio.run(fetched(1, body))
    assert bodies == [body]
    assert max(sizes) <= 65536
