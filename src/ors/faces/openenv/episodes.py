"""Episodes over plain HTTP: `/reset`, then `/step` and `/state`, which name the session they mean.

By the header `X-Session-ID` that `/reset` answered with (or that its client chose), by the cookie where that is wanted,
or by the `episode_id` that `/reset` was given. Who names none gets an environment of its own for each request, as from
OpenEnv's server, and is told so in a header.
"""

from __future__ import annotations

from collections import OrderedDict
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from ors.core.failures import Failure, failure
from ors.core.ports import Op, Outcome, Principal
from ors.faces.http import Request
from ors.faces.openenv.sessions import Held, Sessions

__all__ = ["Episodes", "Said"]

_COOKIE = "ors_session"
_REMEMBERED = 100_000
_ALONE = (
    "no session was named, so this was an environment of its own, made and closed for this request; send the "
    "X-Session-ID that /reset answers with to go on with one episode"
)

Said = tuple[Outcome, list[str], str | None]
"""An outcome, what there is to say of it, and the session it is of where that can be named."""


class Episodes:
    """Finds, opens and uses the sessions that HTTP requests mean."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._by_episode: OrderedDict[tuple[str | None, str, str], str] = OrderedDict()

    async def reset(self, request: Request, op: Op, episode_id: str | None) -> Said:
        """Reset the session that is named; else open one, which the client may name from now on."""
        env, principal = request.env or "", request.principal
        named = self._named(request) or self._of_episode(principal, env, episode_id)
        sid = named or self._sessions.new_id()
        outcome: Outcome | None = None
        if named is not None:
            self._sessions.take(named)
            outcome = await self._sessions.host.perform(named, principal, op)
            if isinstance(outcome, Failure) and outcome.kind == "session_ended" and not self._header(request):
                # an episode's name may be used again when its session is over
                named, sid, outcome = None, self._sessions.new_id(), None
        if outcome is None or (isinstance(outcome, Failure) and outcome.kind == "unknown_session"):
            failed = await self._sessions.open(env, principal, sid, lazy=True)
            if failed is not None:
                return failed, [], None
            outcome = await self._sessions.host.perform(sid, principal, op)
            if isinstance(outcome, Failure):
                self._sessions.end(sid, principal, "reset failed")
                return outcome, [], None
            if named is None:
                # whether its client means to go on is seen when it does
                seconds = self._sessions.options.http_keep_s
                self._sessions.hold(sid, Held(env, principal), seconds, "no step followed")
        if episode_id is not None and not isinstance(outcome, Failure):
            self._by_episode[principal.key, env, episode_id] = sid
            while len(self._by_episode) > _REMEMBERED:
                self._by_episode.popitem(last=False)
        return outcome, [], sid

    async def use(self, request: Request, op: Op, episode_id: str | None) -> Said:
        """Act in the session that is named; else in an environment of its own."""
        env, principal = request.env or "", request.principal
        sid = self._named(request) or self._of_episode(principal, env, episode_id)
        if sid is not None:
            held = self._sessions.take(sid)
            if held is not None and held.state is not None:  # a socket's, which waits for it
                self._sessions.hold(sid, held, self._sessions.options.socket_keep_s, "client gone")
            outcome = await self._sessions.host.perform(sid, principal, op)
            if isinstance(outcome, Failure) and outcome.kind == "unknown_session":
                outcome = failure("unknown_session", "no session has this id; POST /reset opens one and says its id")
            return outcome, [], sid
        sid = self._sessions.new_id()
        failed = await self._sessions.open(env, principal, sid, lazy=True)
        if failed is not None:
            return failed, [], None
        try:
            outcome = await self._sessions.host.perform(sid, principal, op)
        finally:
            self._sessions.end(sid, principal, "answered")
        return outcome, [_ALONE], None

    def cookie(self, sid: str) -> list[tuple[bytes, bytes]]:
        """The header that sets the cookie, where one is wanted."""
        if not self._sessions.options.cookie:
            return []
        return [(b"set-cookie", f"{_COOKIE}={sid}; Path=/; HttpOnly; SameSite=Strict".encode())]

    @staticmethod
    def episode_in_query(request: Request) -> str | None:
        """The `episode_id` that a URL names."""
        query = parse_qs(request.scope.get("query_string", b"").decode("latin-1"))
        named: str = query.get("episode_id", [""])[0]
        return named or None

    @staticmethod
    def _header(request: Request) -> str:
        return request.header(b"x-session-id")

    def _named(self, request: Request) -> str | None:
        if sid := self._header(request)[:512]:
            return sid
        if self._sessions.options.cookie and (text := request.header(b"cookie")):
            try:
                morsel = SimpleCookie(text).get(_COOKIE)
            except CookieError:
                return None
            return morsel.value if morsel is not None and morsel.value else None
        return None

    def _of_episode(self, principal: Principal, env: str, episode_id: Any) -> str | None:
        """The session of an episode that was begun under the same key over HTTP."""
        if not isinstance(episode_id, str):
            return None
        return self._by_episode.get((principal.key, env, episode_id))
