"""A bare HTTP/1.1 client: just enough to drive an ORS server with little cost to the measuring side."""

from __future__ import annotations

import asyncio
import json
from typing import Any

KEY = "bench-key-0123456789abcdef"
"""The API key that our server asks for; it is sent to every server, so that all get the same bytes."""


class Answer:
    """A response: its status, its body, and how many bytes it took on the wire, headers included."""

    __slots__ = ("body", "size", "status")

    def __init__(self, status: int, body: bytes, size: int) -> None:
        self.status = status
        self.body = body
        self.size = size

    def json(self) -> Any:
        return json.loads(self.body)


class Connection:
    """One kept-alive connection. Requests on it go one after another."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._writer is not None
        self._writer.close()
        await self._writer.wait_closed()

    async def request(self, method: str, path: str, body: Any = None, sid: str | None = None) -> Answer:
        """Send one request and read its answer whole."""
        assert self._reader is not None
        assert self._writer is not None
        payload = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", f"X-API-Key: {KEY}"]
        if sid is not None:
            lines.append(f"X-Session-ID: {sid}")
        if path.endswith("/call"):
            lines.append("Accept: text/event-stream")
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(payload)}"]
        self._writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + payload)
        return await _read_answer(self._reader)


async def _read_answer(reader: asyncio.StreamReader) -> Answer:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head[9:12])
    fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:] if b": " in line)
    if b"content-length" in fields:
        body = await reader.readexactly(int(fields[b"content-length"]))
        return Answer(status, body, len(head) + len(body))
    if fields.get(b"transfer-encoding") != b"chunked":
        raise RuntimeError(f"an answer without a length: {head!r}")
    pieces, size = [], len(head)
    while True:
        line = await reader.readuntil(b"\r\n")
        length = int(line, 16)
        piece = await reader.readexactly(length + 2)
        size += len(line) + len(piece)
        if not length:
            return Answer(status, b"".join(pieces), size)
        pieces.append(piece[:-2])


async def open_session(connection: Connection, sid: str, index: int) -> None:
    """Create a session under an id of the client's making, which every server accepts."""
    answer = await connection.request("POST", "/create", {"split": "test", "index": index}, sid)
    if answer.status != 200:
        raise RuntimeError(f"/create answered {answer.status}: {answer.body[:300]!r}")


async def call_tool(connection: Connection, sid: str, tool: str, value: dict[str, Any]) -> Answer:
    """Call a tool, and make sure that it ran: every failure of a tool is a 200 too."""
    answer = await connection.request("POST", "/mathenv/call", {"name": tool, "input": value}, sid)
    if answer.status != 200 or b'"ok":true' not in answer.body:
        raise RuntimeError(f"/call answered {answer.status}: {answer.body[:300]!r}")
    return answer
