"""What every WebSocket face shares: a line to a client, what talks over it, an entry of the table of such routes.

A talk is told what is heard and never waits: what it has to say it hands to its line. So a message costs no task, and a
client that leaves is noticed at once, also while it waits for an answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ors.faces.http import Request

__all__ = ["Line", "SocketLimits", "SocketRoute", "Talk", "carry"]

logger = logging.getLogger("ors.server")


@dataclass(frozen=True, slots=True)
class SocketLimits:
    """max_message: the size of the largest message, in bytes. ping_s: seconds between pings. idle_s: seconds after
    which a client that says and answers nothing is gone.
    """

    max_message: int = 100 << 20
    ping_s: float = 20.0
    idle_s: float = 900.0


class Talk(Protocol):
    """What talks to one client."""

    headers: list[tuple[bytes, bytes]]
    """What is said when the line is opened."""

    async def begin(self) -> None:
        """The line is open. What is heard from now on comes to `heard`, also before this is over."""
        ...

    def heard(self, message: str | bytes) -> None:
        """A message: text, or bytes if it was binary."""
        ...

    def alive(self) -> None:
        """The client is there: said now and then while it says nothing else."""
        ...

    def gone(self) -> None:
        """The line is closed, by whichever side. Said once."""
        ...


class Line(Protocol):
    """The way to one client."""

    @property
    def silent_since(self) -> float | None:
        """Since when, by the loop's clock, the client owes the answer to a ping; None where it owes none."""
        ...

    def send(self, text: bytes) -> None:
        """Send a text, as UTF-8."""
        ...

    def hold(self, held: bool) -> None:
        """Read no further, or go on."""
        ...

    def close(self, code: int = 1000) -> None:
        """Close the line, after what was sent."""
        ...

    def abort(self) -> None:
        """Close the line at once, without a word."""
        ...

    async def carry(self, talk: Talk) -> None:
        """Bring what is heard to a talk until the line is closed."""
        ...


@dataclass(frozen=True, slots=True)
class SocketRoute:
    """An entry of the table. path, scope: as of an HTTP route. open: makes what talks to a client."""

    path: str
    open: Callable[[Request, Line], Talk]
    summary: str
    scope: Literal["root", "env"] = "env"


async def carry(request: Request, open: Callable[[Request, Line], Talk], limits: SocketLimits) -> None:
    """Talk to the client of an ASGI WebSocket until it is gone.

    Where the server offers its own line, and no middleware stands between, that is used.
    """
    if (await request.receive())["type"] != "websocket.connect":
        return
    offered = (request.scope.get("extensions") or {}).get("ors.line")
    if offered is not None:
        offered.limit(limits)
    bare = offered is not None and offered.receive == request.receive and offered.send_message == request.send
    line: Any = offered if bare else _ASGILine(request, limits.ping_s)
    talk = open(request, line)
    await request.send({"type": "websocket.accept", "subprotocol": None, "headers": talk.headers})
    await line.carry(talk)


class _ASGILine:
    """A line through `receive` and `send`, whoever stands behind them.

    Pings are the server's affair. A client that does not answer them is cut off by it; one that is not is there.
    """

    silent_since: float | None = None

    def __init__(self, request: Request, alive_s: float) -> None:
        self._alive_s = alive_s
        self._receive = request.receive
        self._send = request.send
        self._out: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._reads = asyncio.Event()
        self._reads.set()

    def send(self, text: bytes) -> None:
        self._out.put_nowait({"type": "websocket.send", "text": text.decode()})

    def hold(self, held: bool) -> None:
        if held:
            self._reads.clear()
        else:
            self._reads.set()

    def close(self, code: int = 1000) -> None:
        self._out.put_nowait({"type": "websocket.close", "code": code, "reason": ""})
        self._out.put_nowait(None)

    def abort(self) -> None:
        self.close(1001)

    async def carry(self, talk: Talk) -> None:
        reading = asyncio.ensure_future(self._read(talk))
        writing = asyncio.ensure_future(self._write())
        beginning = asyncio.ensure_future(talk.begin())
        try:
            over: set[asyncio.Future[None]] = set()
            while not over:
                over, _ = await asyncio.wait(
                    {reading, writing}, timeout=self._alive_s, return_when=asyncio.FIRST_COMPLETED
                )
                if not over:
                    talk.alive()
            if reading.done() and not reading.cancelled() and (exc := reading.exception()) is not None:
                raise exc
            await beginning
        finally:
            for task in (reading, writing):
                task.cancel()
            await asyncio.wait({reading, writing, beginning})
            talk.gone()

    async def _read(self, talk: Talk) -> None:
        while (message := await self._receive())["type"] == "websocket.receive":
            text = message.get("text")
            talk.heard(text if text is not None else message.get("bytes") or b"")
            await self._reads.wait()

    async def _write(self) -> None:
        while (message := await self._out.get()) is not None:
            try:
                await self._send(message)
            except Exception:  # whatever a server raises where the client has left
                logger.debug("a message could not be sent", exc_info=True)
                return
