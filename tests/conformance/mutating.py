"""A layer in front of an ASGI application that makes one fault, chosen by a header of the request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

JSON = [(b"content-type", b"application/json")]


class Exchange:
    """A request and its answer, both to be changed."""

    def __init__(self, scope: Any, body: bytes, state: dict[str, Any]) -> None:
        self.scope = dict(scope)
        self.body = body
        self.state = state
        """What the fault remembers of this visit."""
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.out = b""
        self.hang = False

    # The request

    @property
    def path(self) -> str:
        return self.scope["path"]

    @path.setter
    def path(self, path: str) -> None:
        self.scope |= {"path": path, "raw_path": path.encode()}

    @property
    def route(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def env(self) -> str:
        return self.path.split("/")[1] if self.path.count("/") > 1 else ""

    @property
    def sent(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return {}

    @sent.setter
    def sent(self, value: Any) -> None:
        self.body = json.dumps(value).encode()
        length = (b"content-length", str(len(self.body)).encode())
        self.scope["headers"] = [*(h for h in self.scope["headers"] if h[0] != b"content-length"), length]

    @property
    def sid(self) -> str:
        return dict(self.scope["headers"]).get(b"x-session-id", b"").decode()

    @sid.setter
    def sid(self, sid: str) -> None:
        self.drop_header(b"x-session-id")
        self.scope["headers"].append((b"x-session-id", sid.encode()))

    def drop_header(self, name: bytes) -> None:
        self.scope["headers"] = [h for h in self.scope["headers"] if h[0] != name]

    # The answer

    @property
    def told(self) -> Any:
        return json.loads(self.out)

    @told.setter
    def told(self, value: Any) -> None:
        self.out = json.dumps(value).encode()

    def answer(self, status: int, value: Any = None) -> None:
        """Answer in place of the server."""
        self.status, self.headers, self.told = status, list(JSON), value

    def media_type(self, text: str) -> None:
        self.headers = [*(h for h in self.headers if h[0] != b"content-type"), (b"content-type", text.encode())]

    @property
    def streams(self) -> bool:
        return any(key == b"content-type" and b"event-stream" in value for key, value in self.headers)

    @property
    def events(self) -> list[tuple[str, str]]:
        """The events of a stream, without comments."""
        found = []
        for block in self.out.decode().split("\r\n\r\n"):
            lines = [line for line in block.split("\r\n") if line and not line.startswith(":")]
            if lines:
                name = lines[0].removeprefix("event: ")
                found.append((name, "\n".join(line.removeprefix("data: ") for line in lines[1:])))
        return found

    @events.setter
    def events(self, events: list[tuple[str, str]]) -> None:
        self.out = b"".join(
            f"event: {name}\r\n".encode()
            + b"".join(f"data: {line}\r\n".encode() for line in data.split("\n"))
            + b"\r\n"
            for name, data in events
        )

    @property
    def result(self) -> Any:
        """The result of a call; None where there is none."""
        text = "".join(data for name, data in self.events if name in ("chunk", "end")) if self.streams else ""
        return json.loads(text) if text else None

    @result.setter
    def result(self, value: Any) -> None:
        first = [event for event in self.events if event[0] == "task_id"]
        self.events = [*first, ("end", json.dumps(value))]


Run = Callable[[Exchange], Awaitable[None]]
Around = Callable[[Exchange, Run], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """One thing that a server does wrong, and the row that must find it."""

    name: str
    row: str
    around: Around
    options: dict[str, Any] = field(default_factory=dict)


FAULTS: dict[str, Fault] = {}


def fault(row: str, name: str, **options: Any) -> Callable[[Around], Around]:
    """Declare a fault as a function around the server's own work."""

    def declare(around: Around) -> Around:
        full = f"ORS-{row}: {name}"
        assert full not in FAULTS
        FAULTS[full] = Fault(full, f"ORS-{row}", around, options)
        return around

    return declare


def before(row: str, route: str, name: str, change: Callable[[Exchange], Any], **options: Any) -> None:
    """A fault that changes what is asked on a route, as a server does that reads it wrongly."""

    async def around(x: Exchange, run: Run) -> None:
        if x.route == route:
            change(x)
        if not x.status:
            await run(x)

    fault(row, name, **options)(around)


def after(row: str, route: str, name: str, change: Callable[[Exchange], Any], **options: Any) -> None:
    """A fault that changes what is answered on a route."""

    async def around(x: Exchange, run: Run) -> None:
        await run(x)
        if x.route == route:
            change(x)

    fault(row, name, **options)(around)


class Mutator:
    """The layer: without the header it changes nothing."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._states: dict[str, dict[str, Any]] = {}
        self.faulty_for_all = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        named = dict(scope.get("headers", [])).get(b"x-fault", b"").decode() if scope["type"] == "http" else ""
        if scope["type"] == "http":
            named = named or self.faulty_for_all
        if not named:
            await self._app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        x = Exchange(scope, body, self._states.setdefault(named, {}))

        async def run(x: Exchange) -> None:
            await self._inner(x, receive)

        await FAULTS[named.partition("#")[0]].around(x, run)
        headers = [header for header in x.headers if header[0] != b"content-length"]
        await send({"type": "http.response.start", "status": x.status, "headers": headers})
        await send({"type": "http.response.body", "body": x.out, "more_body": x.hang})
        while x.hang:
            x.hang = (await receive())["type"] != "http.disconnect"

    async def _inner(self, x: Exchange, receive: Any) -> None:
        pending = [{"type": "http.request", "body": x.body, "more_body": False}]
        x.out = b""

        async def next_message() -> Any:
            return pending.pop() if pending else await asyncio.shield(asyncio.ensure_future(receive()))

        async def collect(message: Any) -> None:
            if message["type"] == "http.response.start":
                x.status, x.headers = message["status"], list(message["headers"])
            else:
                x.out += message.get("body", b"")

        await self._app(x.scope, next_message, collect)
