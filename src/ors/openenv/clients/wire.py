"""One session over a WebSocket: one question, one answer, in order; and what is true once the socket is gone.

A session in which something was done is never replaced in silence. Where the server can keep a session for its client,
a socket that breaks is opened again to the same session, and what was asked is asked again under the same number, so
that it happens once. Where it cannot, what is asked then is a `SessionLost`, and only a reset, or `new_session`, opens
another session. An answer that comes too late is never taken for the next one.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp

from ors.errors import SessionLost
from ors.openenv.clients.addresses import is_local, websocket_url
from ors.openenv.clients.frames import (
    ENDS_SESSION,
    TOO_LARGE,
    ServerError,
    code_of,
    decoded,
    encoded,
    last_words,
    words_of,
)
from ors.openenv.clients.line import CutError, Line, keep_task, open_line

__all__ = ["ServerError", "Wire"]

_LATER_S = 5.0
"""How much longer than the server the client waits for what the server was given a limit for."""
_AGAIN_S, _AGAIN_MOST_S = 0.05, 1.0
_END_S = 1.0
_LET_END_S = 10.0
"""How long requests that were made before a client is closed may take."""
_CUTS = 8
"""How often one request, or a session that nothing is asked of, is cut off before it is given up."""


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
            "on_cut": _caller(self),
        }
        self._line: Line | None = None
        self._turn: asyncio.Lock | None = None
        self._turn_pid = 0
        self._why_gone = ""
        self._able: frozenset[str] = frozenset()
        self._session_id: str | None = None
        self._number = 0
        self._returns = 0
        self._returning: asyncio.Task[None] | None = None
        self._closing = False
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
            if self._closing:
                raise SessionLost(self._gone(), kind="connection_lost")
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
        """End the session. Who is still waiting for an answer after a while is told that there will be none."""
        await self._stop_returning()
        turn = self._in_turn()
        try:
            async with asyncio.timeout(_LET_END_S):
                await turn.acquire()
        except TimeoutError:
            self._closing = True
            if self._line is not None:
                self._line.close_later("the client was closed")
            await turn.acquire()
        try:
            await self._end()
        finally:
            self._closing = False
            turn.release()

    async def _end(self) -> None:
        self._let_go_of_the_parents()
        line, self._line = self._line, None
        kept = self._can_come_back()
        if line is not None and line.gone is None:
            # of a connection that is dead nothing is known yet, perhaps; a session that is kept would outlive it
            kept = not await line.finish(_END_S if kept else 0.0) and kept
        if kept:
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
        text, number = encoded(message), self._number if numbered else None
        cuts = 0
        while True:
            try:
                answer = await self._once(text, number)
            except CutError as exc:
                self._why_gone = str(exc)
                if exc.too_large and self._can_come_back():
                    # it would be too large again
                    raise ServerError(str(exc), TOO_LARGE) from exc
                cuts += 1
                if cuts == _CUTS or self._closing:
                    self._session_id = None
                if not self._can_come_back():
                    raise SessionLost(self._gone(), kind="connection_lost") from exc
                if cuts > 1:
                    await asyncio.sleep(_pause(cuts))
            except _NotKept as exc:
                self._session_id = None
                if not begins:
                    raise SessionLost(self._gone(), kind="connection_lost") from exc.__cause__
                # nothing is lost by that: a reset begins anew anyway
                begins = False
                await self._anew()
                self.playing = True
            else:
                self._returns = 0
                return answer

    async def _once(self, text: str, number: int | None) -> dict[str, Any]:
        if not self.connected:
            await self._come_back(self._connect_timeout_s)
        line = self._line
        assert line is not None
        answer = last_words(line.take_unasked())
        try:
            if answer is None:
                await line.send(text)
                answer = await self._answer(line, number)
        except CutError:
            # the server may have said why it closes
            answer = last_words(line.take_unasked())
            if answer is None:
                raise
        if number is not None and "id" not in answer and code_of(answer) == "SESSION_ERROR":
            self._drop(words_of(answer))
            raise _NotKept
        return answer

    async def _answer(self, line: Line, number: int | None) -> dict[str, Any]:
        while True:
            answer = decoded(await line.receive())
            if number is None or answer.get("id") == number or ("id" not in answer and code_of(answer)):
                return answer
            # it was asked for by somebody who has not waited for it

    def _data(self, answer: dict[str, Any], *, before: bool) -> Any:
        data = answer.get("data")
        code = code_of(answer)
        if not code:
            return data
        about = data if isinstance(data, dict) else {}
        words = words_of(answer)
        error = ServerError(words, code, {name: about[name] for name in about if name not in ("message", "code")})
        if code in ENDS_SESSION:
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
        if line is not None and (said := last_words(line.take_unasked())) is not None:
            self.playing = False
            self._data(said, before=False)

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
                self._line = await open_line(url, timeout_s=max(_END_S, until - loop.time()), **self._opening)
            except (aiohttp.ClientError, OSError, TimeoutError) as exc:
                refused = isinstance(exc, aiohttp.WSServerHandshakeError) and 400 <= exc.status < 500
                if refused or self._closing or loop.time() + pause > until:
                    raise _NotKept from exc
            else:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, _AGAIN_MOST_S)

    def cut(self) -> None:
        """The socket is gone. A session is kept for a time only, so that its client does not wait until it is asked."""
        line = self._line
        if self.playing and line is not None and self._can_come_back() and self._returns < _CUTS:
            self._returning = asyncio.get_running_loop().create_task(self._return(line))
            keep_task(self._returning)

    async def _return(self, line: Line) -> None:
        async with self._in_turn():
            if self._line is not line or not self._can_come_back() or line.holds_last_words():
                return
            self._returns += 1
            if self._returns > 1:
                await asyncio.sleep(_pause(self._returns))
            self._why_gone = line.gone or ""
            try:
                await self._come_back(self._connect_timeout_s)
            except _NotKept:
                pass  # whoever asks next is told

    async def _stop_returning(self) -> None:
        returning = self._returning
        if returning is None or returning.done() or self._turn_pid != os.getpid():
            return
        # a connection that is being opened would take the session from the one that ends it
        self._closing = True
        await asyncio.wait({returning}, timeout=_END_S)
        returning.cancel()
        self._closing = False

    async def _end_what_is_kept(self) -> None:
        try:
            await self._come_back(0.0)
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


def _caller(wire: Wire) -> Callable[[], None]:
    """Tells a wire that its socket is gone, and does not hold it."""
    held = weakref.ref(wire)

    def call() -> None:
        if (wire := held()) is not None:
            wire.cut()

    return call


def _pause(times: int) -> float:
    return min(_AGAIN_S * 2.0**times, _AGAIN_MOST_S)
