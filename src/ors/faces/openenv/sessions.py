"""The sessions that this face opened, who is at them, and who has to go where there are too many.

A session lives in the host, where it is counted, limited and expired with those of every other face. Here is only what
a face knows: which socket is at it, whether it waits for one to come back, whether it was made by a `/reset` whose
client may never have meant to go on.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import Any, Literal, Protocol

import msgspec

from ors.core.failures import Failure
from ors.core.ports import Host, OfferingSpec, Op, Principal, Start

__all__ = ["Attached", "FaceOptions", "Held", "Sessions"]

logger = logging.getLogger("ors.session")

_OPENED_AGAIN = 3


class FaceOptions(msgspec.Struct, frozen=True):
    """mode: whether trainers' routes are there. strict_reset: keys that mean nothing to `reset` are refused.

    socket_keep_s: how long a session waits for a client that asked for it. http_keep_s: how long one that `/reset` made
    waits for a first step. cookie: `/reset` sets one. seeds: environments without tasks of their own have seeds.
    """

    mode: Literal["simulation", "production"] = "simulation"
    strict_reset: bool = False
    socket_keep_s: float = 60.0
    http_keep_s: float = 300.0
    cookie: bool = False
    seeds: bool = True


class Attached(Protocol):
    """What is at a session: a socket's talk."""

    @property
    def silent_since(self) -> float | None:
        """Since when its client owes the answer to a ping."""
        ...

    def give_up(self) -> asyncio.Future[Any]:
        """The session is needed by others: let the client go. What is returned is done when the session is over."""
        ...


class Held(msgspec.Struct, eq=False):
    """A session that nobody is at. until: ends it. state: what its socket leaves to the next one."""

    env: str
    principal: Principal
    until: asyncio.TimerHandle | None = None
    state: Any = None


class Sessions:
    """Opens sessions, and ends those that may be ended for others."""

    def __init__(self, host: Host, options: FaceOptions) -> None:
        self.host = host
        self.options = options
        self.attached: dict[str, Attached] = {}
        self.pending_close: set[str] = set()
        self._envs: dict[str, tuple[str, Principal]] = {}
        self._held: dict[str, Held] = {}
        self._ending: set[asyncio.Future[Any]] = set()

    @staticmethod
    def new_id() -> str:
        """An id for a session."""
        return str(uuid.uuid4())

    def spec(self, env: str) -> OfferingSpec:
        """What an environment offers."""
        return self.host.offerings()[env]

    async def open(self, env: str, principal: Principal, sid: str, *, lazy: bool) -> Failure | None:
        """Open a session, if need be in place of one that nobody seems to be at any more."""
        start = Start(kind="steps", lazy=lazy)
        for attempt in range(_OPENED_AGAIN):
            opened = await self.host.open(sid, env, start, principal, None)
            if not isinstance(opened, Failure):
                if not lazy:
                    made = await self.host.perform(sid, principal, Op("open"))
                    if isinstance(made, Failure):
                        self.end(sid, principal, "setup_failed")
                        return made
                return None
            if opened.kind != "too_many_sessions" or attempt == _OPENED_AGAIN - 1:
                return opened
            if (over := self._give_one_up(env)) is None:
                return opened
            await over
        return None

    def attach(self, sid: str, env: str, principal: Principal, talk: Attached) -> None:
        """A socket is at a session."""
        self.attached[sid] = talk
        self._envs[sid] = (env, principal)

    def detach(self, sid: str) -> bool:
        """The socket has left; whether the session was to be closed when it does."""
        self.attached.pop(sid, None)
        self._envs.pop(sid, None)
        closes = sid in self.pending_close
        self.pending_close.discard(sid)
        return closes

    def hold(self, sid: str, held: Held, seconds: float, why: str) -> None:
        """Keep a session that nobody is at, for a time."""
        held.until = asyncio.get_running_loop().call_later(seconds, self._expire, sid, why)
        self._held[sid] = held

    def take(self, sid: str) -> Held | None:
        """Somebody is at a session again that was kept for a time."""
        held = self._held.pop(sid, None)
        if held is not None and held.until is not None:
            held.until.cancel()
        return held

    def end(self, sid: str, principal: Principal, why: str) -> asyncio.Future[Any]:
        """End a session; need not be waited for."""
        ending: asyncio.Future[Any] = asyncio.ensure_future(self.host.end(sid, principal, why))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return ending

    def _expire(self, sid: str, why: str) -> None:
        held = self._held.pop(sid, None)
        if held is not None:
            self.end(sid, held.principal, why)

    def _give_one_up(self, env: str) -> asyncio.Future[Any] | None:
        """End the session of an environment that is missed least; None where all are in use."""
        for sid, held in self._held.items():
            if held.env == env:
                self.take(sid)
                return self.end(sid, held.principal, "given up for another")
        silent = [
            (since, sid)
            for sid, talk in self.attached.items()
            if self._envs[sid][0] == env and (since := talk.silent_since) is not None
        ]
        if not silent:
            return None
        _, sid = min(silent)
        logger.info("session %s is given up for another: its client has not answered", sid)
        return self.attached[sid].give_up()
