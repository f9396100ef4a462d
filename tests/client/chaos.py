"""A gateway between client and server that loses, delays and refuses a share of the requests."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from .played import _Looped

__all__ = ["Gateway"]

WAYS = (
    "cut before",
    "cut in the request",
    "cut in the answer",
    "answer lost",
    "delayed",
    "502",
    "502 after it was done",
    "503",
    "503 with a time",
    "429",
)


class Gateway(_Looped):
    """Passes HTTP requests on, and does something else to `share` of them. `did` counts what."""

    def __init__(self, port: int, share: float, seed: int) -> None:
        super().__init__()
        self._behind = port
        self._share = share
        self._random = random.Random(seed)
        self.did: Counter[str] = Counter()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            while True:
                request = await _message(reader)
                way = self._random.choice(WAYS) if self._random.random() < self._share else "passed"
                self.did[way] += 1
                if way == "cut before":
                    return
                if way in ("502", "503", "503 with a time", "429"):
                    # a proxy that is down, or that limits; nothing came through
                    writer.write(_refusal(int(way[:3]), "0" if "time" in way else None))
                    continue
                if way == "delayed":
                    await asyncio.sleep(self._random.uniform(0.01, 0.2))
                if behind is None:
                    behind = await asyncio.open_connection("127.0.0.1", self._behind)
                if way == "cut in the request":
                    behind[1].write(request[: self._random.randrange(1, len(request))])
                    await behind[1].drain()
                    return
                behind[1].write(request)
                answer = await _message(behind[0])
                if way == "502 after it was done":
                    writer.write(_refusal(502, None))
                elif way == "cut in the answer":
                    writer.write(answer[: self._random.randrange(1, len(answer))])
                    await writer.drain()
                    return
                elif way == "answer lost":
                    return
                else:
                    writer.write(answer)
                await writer.drain()
        finally:
            if behind is not None:
                behind[1].close()


async def _message(reader: asyncio.StreamReader) -> bytes:
    """A whole request or answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    if fields.get(b"transfer-encoding") == b"chunked":
        pieces = [head]
        while True:
            line = await reader.readuntil(b"\r\n")
            piece = await reader.readexactly(int(line, 16) + 2)
            pieces += [line, piece]
            if len(piece) == 2:
                return b"".join(pieces)
    return head + await reader.readexactly(int(fields.get(b"content-length", b"0")))


def _refusal(status: int, wait: str | None) -> bytes:
    body = b"<html>a gateway's page</html>"
    after = f"Retry-After: {wait}\r\n" if wait is not None else ""
    return f"HTTP/1.1 {status} No\r\nContent-Length: {len(body)}\r\n{after}\r\n".encode() + body
