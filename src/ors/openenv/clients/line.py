"""One WebSocket: what is sent and heard over it, for as long as it is there.

It is always listened to, also while nobody waits for an answer: pings are answered, and what the server says of its own
accord is kept for whoever asks next.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp

from ors.openenv.clients.http import Socket, ends_with_loop, http_of_loop

__all__ = ["CutError", "Line", "keep_task", "open_line"]

_CLOSE_S = 5.0
_LAST_WORDS_S = 1.0
_UNASKED = 16
_CLOSE = '{"type":"close"}'


class CutError(Exception):
    """The line is gone; the message says why. too_large: it was for the size of a message."""

    def __init__(self, why: str, *, too_large: bool = False) -> None:
        super().__init__(why)
        self.too_large = too_large


class Line:
    """A socket that is listened to by a task of its own. Its coroutines run on the loop that it was opened on."""

    def __init__(self, socket_: Socket, ping_interval_s: float | None, on_cut: Callable[[], object]) -> None:
        self._socket = socket_
        self._loop = asyncio.get_running_loop()
        self._ping_interval_s = ping_interval_s
        self._pinger: asyncio.TimerHandle | None = None
        self._pinging: asyncio.Task[None] | None = None
        self._waiter: asyncio.Future[str] | None = None
        self._unasked: deque[str] = deque(maxlen=_UNASKED)
        self._on_cut = on_cut
        self._too_large = False
        self.gone: str | None = None
        self.pid = os.getpid()
        self.headers: Mapping[str, str] = socket_.headers
        self._listening = self._loop.create_task(self._listen())
        ends_with_loop(self)
        self._ping_later()

    async def send(self, text: str) -> None:
        """Send a text. Raises CutError."""
        if self.gone is not None:
            raise self._cut()
        try:
            await self._socket.send_str(text)
        except (ConnectionError, aiohttp.ClientError) as exc:
            # the server may have said why it closes before it did
            await asyncio.wait({self._listening}, timeout=_LAST_WORDS_S)
            self._lost(str(exc) or type(exc).__name__)
            raise self._cut() from exc

    async def receive(self) -> str:
        """The next text. Raises CutError."""
        if self._unasked:
            return self._unasked.popleft()
        if self.gone is not None:
            raise self._cut()
        self._waiter = self._loop.create_future()
        try:
            return await self._waiter
        finally:
            self._waiter = None

    def take_unasked(self) -> list[str]:
        """What the server said though nobody had asked."""
        said = list(self._unasked)
        self._unasked.clear()
        return said

    def holds_last_words(self) -> bool:
        """Whether the server said anything before it went."""
        return bool(self._unasked)

    async def finish(self, wait_s: float = 0.0) -> bool:
        """Say that the session is over, and close. Whether the server has heard it, if that is waited for."""
        if self.gone is None:
            try:
                async with asyncio.timeout(_CLOSE_S):
                    await self._socket.send_str(_CLOSE)
            except (TimeoutError, ConnectionError, aiohttp.ClientError):
                pass
            if wait_s:
                await asyncio.wait({self._listening}, timeout=wait_s)
        # one that is slow to answer has it still to read
        heard = self.gone is None or self._socket.close_code == aiohttp.WSCloseCode.OK
        await self.close("the client was closed")
        return heard

    async def close(self, why: str) -> None:
        """Close without a word to the server's session."""
        self._lost(why)
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._socket.close()
        except (TimeoutError, ConnectionError, aiohttp.ClientError):
            pass

    def close_later(self, why: str) -> None:
        """The same, without waiting for the server's part of it."""
        self._lost(why)
        keep_task(self._loop.create_task(self.close(why)))

    def finish_from_anywhere(self) -> None:
        """Finish it on its loop, from whichever thread."""
        try:
            self._loop.call_soon_threadsafe(self._finish_later)
        except RuntimeError:
            pass  # that loop is closed, and its sockets with it

    def _finish_later(self) -> None:
        keep_task(self._loop.create_task(self.finish()))

    async def _listen(self) -> None:
        why = "the connection was closed"
        try:
            while True:
                message = await self._socket.receive()
                if message.type is aiohttp.WSMsgType.TEXT:
                    self._heard(message.data)
                elif message.type is aiohttp.WSMsgType.BINARY:
                    self._heard(message.data.decode("utf-8", "replace"))
                else:
                    why = self._why(message)
                    return
        finally:
            if self._lost(why):
                self._on_cut()

    def _heard(self, text: str) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(text)
        else:
            self._unasked.append(text)

    def _why(self, message: aiohttp.WSMessage) -> str:
        code = self._socket.close_code
        if message.type is aiohttp.WSMsgType.ERROR:
            self._too_large = getattr(message.data, "code", code) == aiohttp.WSCloseCode.MESSAGE_TOO_BIG
            return "an answer was larger than max_message_size_mb" if self._too_large else str(message.data)
        if code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
            self._too_large = True
            return "a message was larger than the server takes (close code 1009)"
        if code == 1006:
            return "the connection broke"
        return f"the server closed the connection (close code {code})"

    def _cut(self) -> CutError:
        return CutError(self.gone or "", too_large=self._too_large)

    def _lost(self, why: str) -> bool:
        """It is gone. False where that was known."""
        if self.gone is not None:
            return False
        self.gone = why
        for stopping in (self._pinger, self._pinging):
            if stopping is not None:
                stopping.cancel()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(self._cut())
        return True

    # A ping keeps what stands between from closing a quiet connection. No pong is asked for, since some of what stands
    # between eats them; a peer that is gone is noticed by TCP.

    def _ping_later(self) -> None:
        if self._ping_interval_s:
            self._pinger = self._loop.call_later(self._ping_interval_s, self._ping)

    def _ping(self) -> None:
        if self.gone is None:
            self._pinging = self._loop.create_task(self._pinged())
            self._ping_later()

    async def _pinged(self) -> None:
        try:
            await self._socket.ping()
        except (ConnectionError, aiohttp.ClientError):
            pass  # whoever listens finds out


async def open_line(
    url: str,
    *,
    local: bool,
    headers: Mapping[str, str],
    max_message_size: int,
    ping_interval_s: float | None,
    timeout_s: float | None,
    on_cut: Callable[[], object],
) -> Line:
    """Open a WebSocket. local: without proxies and without compression. on_cut: is told when it is gone unasked.

    Raises what aiohttp raises, or TimeoutError.
    """
    async with asyncio.timeout(timeout_s):
        socket_ = await http_of_loop(proxies=not local).ws_connect(
            url,
            headers=headers,
            max_msg_size=max_message_size,
            compress=0 if local else 15,
            timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
        )
    assert isinstance(socket_, Socket)
    return Line(socket_, ping_interval_s, on_cut)


_tasks: set[asyncio.Task[Any]] = set()


def keep_task(task: asyncio.Task[Any]) -> None:
    """Let a task run to its end though nobody waits for it."""
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
