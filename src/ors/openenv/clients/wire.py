"""One session over a WebSocket: one question, one answer, in order; and what is true once the socket is gone.

A session in which something was done is never replaced in silence. Where the server can keep a session for its client,
a socket that breaks is opened again to the same session, and what was asked is asked again under the same number, so
that it happens once. Where it cannot, what is asked then is a `SessionLost`, and only a reset, or `new_session`, opens
another session. An answer that comes too late is never taken for the next one.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec

from ors.errors import SessionLost
from ors.openenv.clients.addresses import is_local, websocket_url
from ors.openenv.clients.line import CutError, Line, open_line

__all__ = ["ServerError", "Wire"]

_ENDS_SESSION = frozenset(["CAPACITY_REACHED", "FACTORY_ERROR", "SESSION_ERROR"])
_LATER_S = 5.0
"""How much longer than the server the client waits for what the server was given a limit for."""
_AGAIN_S, _AGAIN_MOST_S = 0.05, 1.0
_END_S = 1.0


class ServerError(RuntimeError):
    """The server answered with an error. code: its kind; data: what else the server said of it."""

    def __init__(self, message: str, code: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"Server error: {message} (code: {code})")
        self.message = message
        self.code = code
        self.data = dict(data or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.code, self.data)


class Wire:
    """The session of one client. Its coroutines run on one event loop, one after another."""

    def __init__(
        self,
        base_url: str,
        *,
        connect_timeout_s: float,
        message_timeout_s: float | None,
        max_message_size: int,
        ping_interval_s: float | None,
        headers: Mapping[str, str] | None,
    ) -> None:
        self.url = websocket_url(base_url)
        self._connect_timeout_s = connect_timeout_s
        self._message_timeout_s = message_timeout_s
        self._opening: dict[str, Any] = {
            "local": is_local(base_url),
            "headers": dict(headers or {}),
            "max_message_size": max_message_size,
            "ping_interval_s": ping_interval_s,
        }
        self._line: Line | None = None
        self._turn: asyncio.Lock | None = None
        self._turn_pid = 0
        self._why_gone = ""
        self._able: frozenset[str] = frozenset()
        self._session_id: str | None = None
        self._number = 0
        self.playing = False

    @property
    def connected(self) -> bool:
        """Whether there is a socket."""
        line = self._line
        return line is not None and line.gone is None and line.pid == os.getpid()

    async def connect(self) -> None:
        """Open a session, unless there is one. Raises ConnectionError."""
        async with self._in_turn():
            self._let_go_of_the_parents()
            if not self.connected and not self.playing:
                await self._connect()

    async def ask(self, message: Mapping[str, Any], *, timeout_s: float | None = None, begins: bool = False) -> Any:
        """Send a message and wait for the data of its answer.

        `begins`: the message starts an episode. Raises SessionLost, ServerError, ConnectionError, TimeoutError.
        """
        async with self._in_turn():
            self._let_go_of_the_parents()
            if self._line is not None and self._line.gone is not None:
                self._why_gone = self._line.gone
            if not self.connected and not (self.playing and self._can_come_back()):
                if self.playing and not begins:
                    raise SessionLost(f"{self._gone()}; reset() starts a new episode", kind="connection_lost")
                self._refused()
                await self._anew()
            before, self.playing = self.playing, True
            seconds = timeout_s if timeout_s is not None else self._message_timeout_s
            if timeout_s is not None and "timeout_s" in self._able:
                message = {**message, "timeout_s": timeout_s}
                seconds = timeout_s + _LATER_S
            try:
                async with asyncio.timeout(seconds):
                    answer = await self._answer_to(message, begins=begins)
            except TimeoutError:
                self._abandon(f"there was no answer within {seconds:g} s")
                raise TimeoutError(
                    f"no answer to {message.get('type')!r} from {self.url} within {seconds:g} s"
                ) from None
            except asyncio.CancelledError:
                self._abandon("a request was cancelled")
                raise
            return self._data(answer, before=before)

    async def close(self) -> None:
        """End the session."""
        async with self._in_turn():
            self._let_go_of_the_parents()
            line, self._line = self._line, None
            if line is not None and line.gone is None:
                await line.finish()
            elif self._can_come_back():
                await self._end_what_is_kept()
            self._why_gone = "the client was closed"
            self._session_id = None
            self.playing = False

    def __del__(self) -> None:
        # a client that nobody closed and nobody has any more: its session ends all the same
        line = getattr(self, "_line", None)
        if line is not None and line.pid == os.getpid() and line.gone is None:
            line.finish_from_anywhere()

    # One question

    async def _answer_to(self, message: Mapping[str, Any], *, begins: bool) -> dict[str, Any]:
        numbered = "id" in self._able
        if numbered:
            self._number += 1
            message = {**message, "id": self._number}
        text, number = _encoded(message), self._number if numbered else None
        while True:
            try:
                return await self._once(text, number)
            except CutError as exc:
                self._why_gone = str(exc)
                if not self._can_come_back():
                    raise SessionLost(self._gone(), kind="connection_lost") from exc
            except _NotKept as exc:
                self._session_id = None
                if not begins:
                    raise SessionLost(self._gone(), kind="connection_lost") from exc.__cause__
                # nothing is lost by that: a reset begins anew anyway
                begins = False
                await self._anew()
                self.playing = True

    async def _once(self, text: str, number: int | None) -> dict[str, Any]:
        if not self.connected:
            await self._come_back(self._connect_timeout_s)
        line = self._line
        assert line is not None
        try:
            await line.send(text)
            answer = await self._answer(line, number)
        except CutError:
            # the server may have said why it closes
            said = line.unasked()
            if said is None or not _code(answer := _decoded(said)) or "id" in answer:
                raise
        if number is not None and "id" not in answer and _code(answer) == "SESSION_ERROR":
            self._drop(_words(answer))
            raise _NotKept
        return answer

    async def _answer(self, line: Line, number: int | None) -> dict[str, Any]:
        while True:
            answer = _decoded(await line.receive())
            if number is None or answer.get("id") == number or ("id" not in answer and _code(answer)):
                return answer
            # it was asked for by somebody who has not waited for it

    def _data(self, answer: dict[str, Any], *, before: bool) -> Any:
        data = answer.get("data")
        code = _code(answer)
        if not code:
            return data
        about = data if isinstance(data, dict) else {}
        words = _words(answer)
        error = ServerError(words, code, {name: about[name] for name in about if name not in ("message", "code")})
        if code in _ENDS_SESSION:
            self._drop(words)
            self._session_id = None
            if before:
                raise SessionLost(self._gone(), kind="session_error") from error
            self.playing = False
        raise error

    # The socket

    def _in_turn(self) -> asyncio.Lock:
        if self._turn is None or self._turn_pid != os.getpid():
            self._turn, self._turn_pid = asyncio.Lock(), os.getpid()
        return self._turn

    def _let_go_of_the_parents(self) -> None:
        """In a forked child: the session is the parent's, and so is its socket."""
        if self._line is not None and self._line.pid != os.getpid():
            _of_the_parent.append(self._line)
            self._line = self._session_id = None
            self._why_gone = "the connection belongs to the parent process"

    def _gone(self) -> str:
        return f"the session is lost: {self._why_gone or 'the connection was closed'}"

    def _can_come_back(self) -> bool:
        return self._session_id is not None and "keep" in self._able and "id" in self._able

    def _refused(self) -> None:
        """Raise what a server said before it was asked anything, once."""
        line, self._line = self._line, None
        if line is not None and line.gone is not None and (said := line.unasked()) is not None:
            self.playing = False
            self._data(_decoded(said), before=False)

    async def _anew(self) -> None:
        """Open a session of which nothing is asked yet."""
        self.playing = False
        await self._connect()

    async def _connect(self) -> None:
        self._session_id = None
        try:
            self._line = await open_line(f"{self.url}?keep=1", timeout_s=self._connect_timeout_s, **self._opening)
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            why = str(exc) or f"no answer within {self._connect_timeout_s:g} s"
            raise ConnectionError(f"Failed to connect to {self.url}: {why}") from exc
        said = self._line.headers.get("X-ORS-Capabilities", "")
        self._able = frozenset(word.strip() for word in said.split(",") if word.strip())
        self._session_id = self._line.headers.get("X-Session-ID") if self._able else None
        self._why_gone = ""

    async def _come_back(self, patience_s: float) -> None:
        """Open another socket to the same session. Raises _NotKept where there is no way back."""
        assert self._session_id is not None
        url = f"{self.url}?{urlencode({'session_id': self._session_id, 'keep': 1})}"
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + patience_s, _AGAIN_S
        while True:
            try:
                self._line = await open_line(url, timeout_s=max(0.1, until - loop.time()), **self._opening)
            except (aiohttp.ClientError, OSError, TimeoutError) as exc:
                refused = isinstance(exc, aiohttp.WSServerHandshakeError) and 400 <= exc.status < 500
                if refused or loop.time() + pause > until:
                    raise _NotKept from exc
            else:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, _AGAIN_MOST_S)

    async def _end_what_is_kept(self) -> None:
        try:
            await self._come_back(_END_S)
        except _NotKept:
            return
        line, self._line = self._line, None
        assert line is not None
        await line.finish()

    def _abandon(self, why: str) -> None:
        """Nobody waits for the answer any more."""
        if "id" not in self._able:
            # it would be taken for the next one
            self._drop(why)

    def _drop(self, why: str) -> None:
        line, self._line = self._line, None
        self._why_gone = why
        if line is not None:
            line.close_later(why)


class _NotKept(Exception):
    """The session that a client has come back to is not there."""


_of_the_parent: list[Line] = []


def _code(answer: Mapping[str, Any]) -> str:
    """The code of an error; nothing for what is none."""
    data = answer.get("data")
    if answer.get("type") != "error":
        return ""
    return str(data.get("code", "UNKNOWN")) if isinstance(data, Mapping) else "UNKNOWN"


def _words(answer: Mapping[str, Any]) -> str:
    data = answer.get("data")
    return str(data.get("message", "Unknown error")) if isinstance(data, Mapping) else "Unknown error"


def _encoded(message: Mapping[str, Any]) -> str:
    try:
        return msgspec.json.encode(message).decode()
    except (TypeError, OverflowError, ValueError):
        return json.dumps(message)


def _decoded(text: str) -> dict[str, Any]:
    try:
        answer = msgspec.json.decode(text)
    except msgspec.DecodeError:
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
    if not isinstance(answer, dict):
        raise RuntimeError(f"the server answered with {text[:200]!r}, which is no message")
    return answer
