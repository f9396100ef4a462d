"""Pings for sessions that nobody uses for a while, from the portal's thread.

Neither a model that thinks for long nor an event loop that is blocked loses a session.

A failed ping is tried again and ends nothing. Only the server's word that the session is gone does, and then at once.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from typing import Any

from ors.client.answers import refusal
from ors.client.portal import portal
from ors.client.transport import NetworkError
from ors.errors import SessionLost

__all__ = ["unwatch", "watch"]

_AT_ONCE = 64
_PING_S = 20.0


class _Keeper:
    """Watches the open sessions of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[int, weakref.ref[Any]] = {}
        self._wake_at = float("inf")
        self._wake: asyncio.Event | None = None

    def add(self, session: Any) -> None:
        """Ping this session when it is idle, as long as it is open and somebody holds it."""
        due = session.ping_due()
        with self._lock:
            self._sessions[id(session)] = weakref.ref(session)
            if due >= self._wake_at:
                return
            # the thread is woken only for what is due before anything else: episodes that are quick never do
            started, self._wake_at = self._wake is not None, due
            loop = portal().loop
            if started:
                loop.call_soon_threadsafe(self._wake_up)
            else:
                self._wake = asyncio.Event()
                asyncio.run_coroutine_threadsafe(self._watch(), loop)

    def remove(self, session: Any) -> None:
        """The session was closed."""
        self._sessions.pop(id(session), None)

    def _wake_up(self) -> None:
        if self._wake is not None:
            self._wake.set()

    async def _watch(self) -> None:
        assert self._wake is not None
        places = asyncio.Semaphore(_AT_ONCE)
        while True:
            now = time.monotonic()
            due, earliest = [], float("inf")
            with self._lock:
                for number, reference in list(self._sessions.items()):
                    session = reference()
                    if session is None or session.lost is not None:
                        self._sessions.pop(number, None)
                    elif (at := session.ping_due()) <= now:
                        due.append(session)
                    else:
                        earliest = min(earliest, at)
                if not self._sessions:
                    self._wake_at, self._wake = float("inf"), None
                    return
                self._wake_at = earliest
            if due:
                await asyncio.gather(*(self._ping(session, places) for session in due))
                continue
            session = None
            self._wake.clear()
            try:
                async with asyncio.timeout(max(earliest - time.monotonic(), 0.0)):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _ping(self, session: Any, places: asyncio.Semaphore) -> None:
        async with places:
            endpoint = session.endpoint
            try:
                async with asyncio.timeout(_PING_S):
                    answer = await endpoint.transport().fetch("POST", endpoint.url("/ping"), session.headers, b"")
            except (NetworkError, TimeoutError):
                session.pinged(False)
                return
            if answer.status < 300:
                session.pinged(True)
                return
            failed = refusal(answer, "POST /ping", session.sid, of_session=True)
            if isinstance(failed, SessionLost):
                session.lose(failed)
            else:
                session.pinged(False)


_keeper = _Keeper()


def watch(session: Any) -> None:
    """Keep a session alive until it is closed (`unwatch`), lost, or nobody holds it."""
    _keeper.add(session)


def unwatch(session: Any) -> None:
    """The session was closed."""
    _keeper.remove(session)


def _forget() -> None:
    """In a forked child: the sessions are the parent's to keep."""
    global _keeper
    _keeper = _Keeper()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
