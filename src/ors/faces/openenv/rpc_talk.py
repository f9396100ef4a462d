"""The socket `/mcp`: JSON-RPC over a session of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from ors.faces.http import Request
from ors.faces.openenv.answers import encode
from ors.faces.openenv.jsonrpc import JSONRPC, failed_response
from ors.faces.openenv.sessions import Sessions
from ors.faces.sockets import Line

__all__ = ["RPCTalk"]

_AHEAD = 16


class RPCTalk:
    """One client's socket; its session ends with it."""

    __slots__ = (
        "_asking",
        "_env",
        "_later",
        "_line",
        "_opened",
        "_over",
        "_principal",
        "_rpc",
        "_sessions",
        "_sid",
        "headers",
    )

    def __init__(self, sessions: Sessions, rpc: JSONRPC, request: Request, line: Line) -> None:
        self._sessions = sessions
        self._rpc = rpc
        self._line = line
        self._env: str = request.env or ""
        self._principal = request.principal
        self._sid = sessions.new_id()
        self._opened = self._over = False
        self._asking: asyncio.Future[None] | None = None
        self._later: deque[str | bytes] = deque()
        self.headers = [(b"x-session-id", self._sid.encode())]

    async def begin(self) -> None:
        failed = await self._sessions.open(self._env, self._principal, self._sid, lazy=True)
        if failed is not None:
            self._over = True
            self._line.send(encode(failed_response(failed)))
            self._line.close()
            return
        self._opened = True
        if self._over:
            self._sessions.end(self._sid, self._principal, "client gone")
            return
        self._sessions.attach(self._sid, self._env, self._principal, self)
        self._next()

    def heard(self, message: str | bytes) -> None:
        self._later.append(message)
        if len(self._later) == _AHEAD:
            self._line.hold(True)
        if self._opened and self._asking is None:
            self._next()

    def _next(self) -> None:
        if self._later and not self._over:
            if len(self._later) == _AHEAD:
                self._line.hold(False)
            self._asking = asyncio.ensure_future(self._answer(self._later.popleft()))

    async def _answer(self, text: str | bytes) -> None:
        response = await self._rpc.respond_text(text, self._env, self._principal, own=self._sid)
        self._asking = None
        if not self._over:
            self._line.send(encode(response))
            self._next()

    @property
    def silent_since(self) -> float | None:
        return self._line.silent_since

    def give_up(self) -> asyncio.Future[Any]:
        self._over = True
        self._sessions.detach(self._sid)
        self._line.abort()
        return self._sessions.end(self._sid, self._principal, "given up for another")

    def alive(self) -> None:
        if self._opened and not self._over:
            touched = asyncio.ensure_future(self._sessions.host.touch(self._sid, self._principal))
            touched.add_done_callback(lambda _: None)

    def gone(self) -> None:
        self._end("client gone")

    def _end(self, why: str) -> None:
        if not self._over:
            self._over = True
            if self._opened:
                self._sessions.detach(self._sid)
                self._sessions.end(self._sid, self._principal, why)
