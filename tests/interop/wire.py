"""A raw HTTP/1.1 connection and a reader of events that forgives nothing: bytes are judged, not a parser's view."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

ANSWER_LIMIT_S = 60


@dataclass
class Answer:
    """A response as it came: `pieces` are the parts of a chunked body, or the one body of a known length."""

    status: int
    headers: dict[str, str]
    pieces: list[bytes] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    """Seconds from the request to the head, then to each piece."""

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def events(self) -> list[Event]:
        """The events without the comments."""
        return [event for event in parse_events(self.body) if event.name]


@dataclass(frozen=True)
class Event:
    """One event. A comment is an event without a name, whose data is the comment."""

    name: str | None
    data: list[str]


def parse_events(body: bytes) -> list[Event]:
    """Split a stream into its events. Raises AssertionError for whatever an existing client may trip over."""
    assert body.endswith(b"\r\n\r\n"), f"the stream ends in {body[-20:]!r}"
    rest = body.replace(b"\r\n", b"")
    assert not {*b"\r\n"} & {*rest}, "a line ends in something else than CRLF"
    events = []
    for block in body.removesuffix(b"\r\n\r\n").split(b"\r\n\r\n"):
        lines = block.split(b"\r\n")
        for line in lines:
            assert line, "an empty line that ends no event"
            assert len(line) < 64 * 1024, f"a line of {len(line)} bytes"
        comments = list(itertools.takewhile(lambda line: line.startswith(b":"), lines))
        events += [Event(None, [comment.decode()]) for comment in comments]
        lines = lines[len(comments) :]
        if not lines:
            continue
        assert lines[0].startswith(b"event: "), lines[0][:80]
        assert all(line.startswith(b"data: ") for line in lines[1:]), "an event is its name and its data"
        # each line must decode by itself: the clients decode line by line and drop what is broken
        data = [line.removeprefix(b"data: ").decode() for line in lines[1:]]
        events.append(Event(lines[0].removeprefix(b"event: ").decode(), data))
    return events


class Connection:
    """One kept-alive connection to a server on this machine; a context manager."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def __aenter__(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**20)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Cut the connection, whatever is under way."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            pass

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> float:
        """Send a request; header names are written with underscores."""
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", f"Content-Length: {len(content)}"]
        lines += ["Content-Type: application/json"] if content else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
        await self._writer.drain()
        return time.monotonic()

    async def head(self, sent: float) -> Answer:
        """Read the status line and the headers."""
        raw = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status, *lines = raw.removesuffix("\r\n\r\n").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return Answer(int(status.split()[1]), headers, times=[time.monotonic() - sent])

    async def piece(self) -> bytes:
        """Read one part of a chunked body; empty at the end of it."""
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        data = await self._reader.readexactly(size + 2)
        return data[:-2]

    async def request(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request and read the whole answer."""
        async with asyncio.timeout(ANSWER_LIMIT_S):
            sent = await self.send(method, path, body, **headers)
            answer = await self.head(sent)
            if "content-length" in answer.headers:
                answer.pieces.append(await self._reader.readexactly(int(answer.headers["content-length"])))
                answer.times.append(time.monotonic() - sent)
                return answer
            while data := await self.piece():
                answer.pieces.append(data)
                answer.times.append(time.monotonic() - sent)
            return answer

    async def session(self, task: dict[str, Any] | None = None, **body: Any) -> str:
        """Open a session of the first environment and return its id."""
        events = (await self.request("POST", "/create_session", Accept="text/event-stream")).events
        (sid,) = next(event.data for event in events if event.name == "task_id")
        created = await self.request("POST", "/create", {"task_spec": task or {}, **body}, X_Session_ID=sid)
        assert created.status == 200, created.body
        return sid

    async def call(self, sid: str, name: str, given: dict[str, Any] | None = None, **body: Any) -> Answer:
        """Call a tool and read the whole stream."""
        call = {"name": name, "input": given or {}, **body}
        return await self.request("POST", "/probe/call", call, X_Session_ID=sid, Accept="text/event-stream")


def result_of(answer: Answer) -> Any:
    """The result in a stream: one task_id, pieces, one end, none of which starts with white space."""
    events = answer.events
    names = [event.name for event in events]
    assert names == ["task_id", *["chunk"] * (len(names) - 2), "end"], names
    assert all(len(event.data) == 1 for event in events), "a result has no lines"
    pieces = [event.data[0] for event in events[1:]]
    assert all(piece and not piece[0].isspace() for piece in pieces), "a piece starts with white space or is empty"
    return json.loads("".join(pieces))
