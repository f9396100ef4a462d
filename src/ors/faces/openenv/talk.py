"""The protocol of `/ws`: one request, one answer, in order, for as long as a client likes."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any
from urllib.parse import parse_qs

from ors.core.failures import Failure, failure
from ors.core.ports import Document, Op, StepOutcome
from ors.faces.http import Request
from ors.faces.openenv.answers import ENDS, encode, error_frame, failure_frame, observed
from ors.faces.openenv.jsonrpc import JSONRPC
from ors.faces.openenv.messages import Message, read
from ors.faces.openenv.sessions import Held, Sessions
from ors.faces.openenv.starts import start_of
from ors.faces.sockets import Line

__all__ = ["CAPABILITIES", "SessionTalk"]

logger = logging.getLogger("ors.session")

_AHEAD = 16
"""Messages that a client may send ahead; it is read no further then."""

CAPABILITIES = b"timeout_s, id, keep"
"""What the header `X-ORS-Capabilities` says that a client may send beyond the protocol."""


class SessionTalk:
    """One client's socket.

    Its session ends with it, unless the client asked at the start that it be kept (`?keep=1`), or named one that there
    was before (`?session_id=…`). Of a kept session the answer to the last message that had an id is kept too: who asks
    again under that id gets it, and nothing runs twice.
    """

    __slots__ = (
        "_asked",
        "_beginning",
        "_busy",
        "_env",
        "_heir",
        "_id",
        "_keep",
        "_last",
        "_later",
        "_line",
        "_named",
        "_notes",
        "_over",
        "_principal",
        "_rpc",
        "_running",
        "_sessions",
        "_sid",
        "headers",
    )

    def __init__(self, sessions: Sessions, rpc: JSONRPC, request: Request, line: Line) -> None:
        query = parse_qs(request.scope.get("query_string", b"").decode("latin-1"))
        self._sessions = sessions
        self._rpc = rpc
        self._line = line
        self._env: str = request.env or ""
        self._principal = request.principal
        self._asked: str | None = None
        self._named = query.get("session_id", [""])[0]
        self._keep = query.get("keep", ["0"])[0] not in ("0", "")
        self._sid = self._named or sessions.new_id()
        self._beginning = True
        self._over = False
        self._busy = False
        self._later: deque[str | bytes] = deque()
        self._id: Any = None
        self._notes: dict[str, Any] | None = None
        self._last: tuple[Any, bytes] | None = None
        self._running: asyncio.Future[Any] | None = None
        self._heir: SessionTalk | None = None
        self.headers: list[tuple[bytes, bytes]] = [(b"x-ors-capabilities", CAPABILITIES)]
        if not self._named:
            self.headers.append((b"x-session-id", self._sid.encode()))

    # Coming and going

    async def begin(self) -> None:
        refused = await (self._attach() if self._named else self._open())
        self._beginning = False
        if refused is not None:
            self._say_and_close(refused)
        elif not self._over:
            self._next()

    async def _open(self) -> bytes | None:
        failed = await self._sessions.open(self._env, self._principal, self._sid, lazy=True)
        if failed is not None:
            return failure_frame(failed)
        if self._over:  # it left meanwhile
            self._sessions.end(self._sid, self._principal, "client gone")
            return None
        self._sessions.attach(self._sid, self._env, self._principal, self)
        return None

    async def _attach(self) -> bytes | None:
        """Come to a session that there is."""
        sessions, sid = self._sessions, self._named
        self._asked = self._env
        failed = await sessions.host.touch(sid, self._principal)
        if failed is not None:
            words = f"Unknown session_id: {sid}" if failed.kind == "unknown_session" else failed.detail
            return error_frame(words, "SESSION_ERROR")
        there = sessions.attached.get(sid)
        if isinstance(there, SessionTalk) and there._keep and self._keep:
            there.leave()  # the client is here again: its old line is dead, whatever it looks like
        elif there is not None:
            return error_frame(f"Session {sid} already has an attached WebSocket", "SESSION_ERROR")
        held = sessions.take(sid)
        if held is not None and isinstance(held.state, SessionTalk):
            self._follow(held.state)
        if self._over:
            self._release()
            return None
        sessions.attach(sid, self._env, self._principal, self)
        return None

    def _follow(self, before: SessionTalk) -> None:
        """Go on where another socket of the same client was cut off."""
        self._named, self._last, self._busy, self._id = before._named, before._last, before._busy, before._id
        before._heir = self

    def gone(self) -> None:
        if self._over:
            return
        self._over = True
        if any(isinstance(said := read(text), Message) and said.type == "close" for text in self._later):
            self._keep = False  # it has said that it will not come back, and left before that was read
        if not self._beginning:
            self._leave()

    def leave(self) -> None:
        """Let go of the line, and leave the session to who comes next."""
        self._over = True
        self._line.abort()
        self._leave()

    def _leave(self) -> None:
        sessions = self._sessions
        if sessions.attached.get(self._sid) is not self:
            return
        if sessions.detach(self._sid):
            sessions.end(self._sid, self._principal, "closed")
        else:
            self._release()

    def _release(self) -> None:
        """What becomes of the session when its socket is gone."""
        if self._keep:
            held = Held(self._env, self._principal, state=self)
            self._sessions.hold(self._sid, held, self._sessions.options.socket_keep_s, "client gone")
        elif not self._named:
            self._sessions.end(self._sid, self._principal, "client gone")

    @property
    def silent_since(self) -> float | None:
        return self._line.silent_since

    def give_up(self) -> asyncio.Future[Any]:
        self._over = True
        self._sessions.detach(self._sid)
        self._line.abort()
        return self._sessions.end(self._sid, self._principal, "given up for another")

    def alive(self) -> None:
        if self._over or self._beginning:
            return
        touched: asyncio.Future[Failure | None] = asyncio.ensure_future(
            self._sessions.host.touch(self._sid, self._principal)
        )
        touched.add_done_callback(self._touched)

    def _touched(self, touched: asyncio.Future[Failure | None]) -> None:
        if not touched.cancelled() and not self._over and (failed := touched.result()) is not None:
            self._say_and_close(failure_frame(failed))

    # Talking

    def heard(self, message: str | bytes) -> None:
        if self._busy or self._beginning:
            self._later.append(message)
            if len(self._later) == _AHEAD:
                self._line.hold(True)
        elif not self._over:
            self._take(message)

    def _next(self) -> None:
        while self._later and not self._busy and not self._over:
            if len(self._later) == _AHEAD:
                self._line.hold(False)
            self._take(self._later.popleft())

    def _take(self, text: str | bytes) -> None:
        message = read(text)
        if type(message) is bytes:
            self._line.send(message)
            return
        assert isinstance(message, Message)
        if message.id is not None and self._last is not None and self._last[0] == message.id:
            self._line.send(self._last[1])
            return
        data: Any = message.data
        match message.type:
            case "step":
                op = Op("step", input=data, timeout_s=message.timeout_s, env=self._asked)
            case "state":
                op = Op("state", timeout_s=message.timeout_s, env=self._asked)
            case "reset":
                data = data if isinstance(data, dict) else {}
                begun = start_of(self._sessions.spec(self._env), data, self._sessions.options.strict_reset)
                if isinstance(begun, Failure):
                    self._line.send(failure_frame(begun))
                    return
                start, self._notes = begun
                op = Op("reset", start=start, timeout_s=message.timeout_s, env=self._asked)
            case "close":
                self._close()
                return
            case _:
                self._ask(message.id, self._rpc.respond(data, self._env, self._principal, own=self._sid))
                return
        self._ask(message.id, self._sessions.host.perform(self._sid, self._principal, op))

    def _ask(self, id: Any, asked: Any) -> None:
        self._busy = True
        self._id = id
        self._running = asyncio.ensure_future(asked)
        self._running.add_done_callback(self._answered)

    def _answered(self, asked: asyncio.Future[Any]) -> None:
        if asked.cancelled():
            outcome: Any = failure("call_cancelled", "the server stopped before it had an answer", ran="unknown")
        elif (exc := asked.exception()) is not None:
            logger.error("answering a message failed", exc_info=exc)
            outcome = failure("internal", f"the server failed: {type(exc).__name__}", ran="unknown")
        else:
            outcome = asked.result()
        talk = self._heir or self
        while talk._heir is not None:
            talk = talk._heir
        talk._busy = False
        talk._running = None
        talk._hand_over(outcome, self._id, self._notes, meant=talk is self)

    def _hand_over(self, outcome: Any, id: Any, notes: dict[str, Any] | None, *, meant: bool) -> None:
        """Send an answer, unless it was asked for over another line: then it is kept for who asks for it again."""
        ends = False
        if isinstance(outcome, Failure):
            frame = failure_frame(outcome)
            ends = outcome.kind in ENDS
        else:
            try:
                frame = self._framed(outcome, notes)
            except ValueError as exc:
                frame = failure_frame(failure("bad_output", str(exc), ran="yes"))
        if id is not None:
            frame = b'%s,"id":%s}' % (frame[:-1], encode(id))
            if self._keep:
                self._last = (id, frame)
        if self._over:
            return
        if ends:
            self._say_and_close(frame)
            return
        if meant:
            self._line.send(frame)
        if self._later:
            self._next()

    @staticmethod
    def _framed(outcome: Any, notes: dict[str, Any] | None) -> bytes:
        if isinstance(outcome, StepOutcome):
            return b'{"type":"observation","data":%s}' % encode(observed(outcome, notes))
        if isinstance(outcome, Document):
            return b'{"type":"state","data":%s}' % outcome.body
        assert isinstance(outcome, dict)
        return encode({"type": "mcp", "data": outcome})

    # The end

    def _close(self) -> None:
        """The client has no more to ask: its own session ends, one that there was before goes on."""
        self._over = True
        if self._sessions.detach(self._sid) or not self._named:
            self._sessions.end(self._sid, self._principal, "closed")
        self._line.close()

    def _say_and_close(self, frame: bytes) -> None:
        self._over = True
        if self._sessions.attached.get(self._sid) is self:
            self._sessions.detach(self._sid)
            self._sessions.end(self._sid, self._principal, "lost")
        if frame:
            self._line.send(frame)
        self._line.close()
