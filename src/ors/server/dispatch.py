"""From a request to its route: one table, matched as data; and from whatever goes wrong to an answer that says so.

There is one path for every request: origin, key, route, environment, session, handler.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from ors.core.failures import failure
from ors.core.ports import OfferingSpec
from ors.core.secrets import mask
from ors.errors import RequestError
from ors.faces.http import Receive, Reply, Request, Route, Send, failure_reply
from ors.faces.sockets import SocketLimits, SocketRoute, carry
from ors.server.auth import Keys

__all__ = ["Dispatcher", "route_path"]

logger = logging.getLogger("ors.server")

_KNOWN_PATHS = 4096


class Dispatcher:
    """An ASGI application over a route table."""

    def __init__(
        self,
        routes: Sequence[Route],
        environments: Mapping[str, OfferingSpec],
        keys: Keys,
        *,
        max_body: int,
        allowed_origins: Sequence[str] = (),
        sockets: Sequence[SocketRoute] = (),
        limits: SocketLimits | None = None,
    ) -> None:
        self._limits = limits or SocketLimits()
        self._environments = environments
        self._first = next(iter(environments))
        self._keys = keys
        self._max_body = max_body
        self._origins = frozenset(origin.rstrip("/") for origin in allowed_origins)
        self._root: dict[str, dict[str, Route]] = {}
        self._env: dict[str, dict[str, Route]] = {}
        self._patterns: list[tuple[re.Pattern[str], dict[str, Route]]] = []
        self._found: dict[tuple[str, str], tuple[Route, str | None, str]] = {}
        self._known: set[str] = set()
        self._sockets = {route.path: route for route in sockets}
        for route in routes:
            if "{" in route.path:
                pattern = re.compile(re.sub(r"\{\w+\}", "[^/]*", route.path))
                self._patterns.append((pattern, {route.method: route}))
            else:
                (self._root if route.scope == "root" else self._env).setdefault(route.path, {})[route.method] = route

    def knows(self, path: str) -> bool:
        """Whether a path is one of this table's, whatever the method, or looks like an environment's."""
        if path in self._known:
            return True
        try:
            self._match("GET", path)
        except RequestError as exc:
            if exc.kind == "not_found":
                return False
        if len(self._known) < _KNOWN_PATHS:
            self._known.add(path)
        return True

    def knows_socket(self, path: str) -> bool:
        """Whether a path is one of a WebSocket."""
        return self._socket(path) is not None

    async def socket(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Talk to the client of a WebSocket; who may not is answered as to any request, before there is one."""
        request = Request(scope, receive, send, self._max_body)
        request.path = route_path(scope)
        try:
            if (origin := request.headers.get(b"origin")) is not None:
                self._check_origin(origin, request.headers)
            request.principal = self._keys.authenticate(request.headers)
            found = self._socket(request.path)
            if found is None:
                raise RequestError("not_found", f"there is no WebSocket at {request.path[:200]}")
            route, request.env, request.env_spelt = found
            if route.scope == "env" and request.env not in self._environments:
                raise RequestError("unknown_environment", f"unknown environment '{request.env_spelt[:200]}'")
        except RequestError as exc:
            await _refuse(request, failure_reply(failure(exc.kind, mask(exc.detail))))
            return
        await carry(request, route.open, self._limits)

    def _socket(self, path: str) -> tuple[SocketRoute, str | None, str] | None:
        bare = path.rstrip("/") or "/"
        if (route := self._sockets.get(bare.lower())) is not None:
            return route, self._first, ""
        first, slash, rest = bare[1:].partition("/")
        route = self._sockets.get(f"/{rest.lower()}") if slash else None
        return (route, first.lower(), first) if route is not None and route.scope == "env" else None

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send, self._max_body)
        try:
            reply = await self._answer(request)
        except RequestError as exc:
            reply = failure_reply(failure(exc.kind, mask(exc.detail), retry_after=exc.retry_after))
            if exc.kind == "method_not_allowed":
                reply.headers.append((b"allow", b", ".join(m.encode() for m in self._methods(request.path))))
            elif exc.kind == "body_too_large":
                reply.headers.append((b"connection", b"close"))
        except asyncio.CancelledError:
            raise
        except Exception as exc:
            logger.exception("answering %s %s failed", scope["method"], request.path)
            reply = failure_reply(failure("internal", f"the server failed: {type(exc).__name__}", ran="unknown"))
        if reply is not None:
            await reply.send(send)

    async def _answer(self, request: Request) -> Reply | None:
        scope = request.scope
        path = request.path = route_path(scope)
        headers = request.headers
        if (origin := headers.get(b"origin")) is not None:
            self._check_origin(origin, headers)
        method = scope["method"]
        found = self._found.get((method, path))
        if found is None:
            try:
                found = self._match(method, path)
            except RequestError:
                self._keys.authenticate(headers)  # who has no key learns nothing of the routes
                raise
            if len(self._found) < _KNOWN_PATHS:
                self._found[method, path] = found
        route, request.env, request.env_spelt = found
        if (deployment := headers.get(b"x-deployment")) is not None and not request.env_spelt:
            # the openreward client names its environment here and nowhere else
            named = deployment.decode("latin-1").rpartition("/")[2].strip().lower()
            if named in self._environments:
                request.env = named
        if not route.open:
            request.principal = self._keys.authenticate(headers)
        if route.session:
            request.sid = sid = headers.get(b"x-session-id", b"").decode("latin-1").strip()
            if not sid:
                raise RequestError("missing_session_id", "X-Session-ID header is required")
            if len(sid) > 512:
                raise RequestError("invalid_header", "X-Session-ID is longer than 512 characters")
        return await route.handler(request)

    def _match(self, method: str, path: str) -> tuple[Route, str | None, str]:
        """The route of a path, the environment it is about, and how that was spelt. Raises RequestError."""
        bare = path.rstrip("/") or "/"
        table = self._root.get(bare) or self._root.get(bare.lower())
        env: str | None = None
        spelt = ""
        if table is None and (table := self._env.get(bare.lower())) is not None:
            env = self._first
        if table is None:
            for pattern, by_method in self._patterns:
                if pattern.fullmatch(bare):
                    table = by_method
                    break
        if table is None:
            first, slash, rest = bare[1:].partition("/")
            table = self._env.get(f"/{rest.lower()}") if slash else None
            if table is not None:
                env, spelt = first.lower(), first
                if env not in self._environments:
                    raise RequestError("unknown_environment", f"unknown environment '{first[:200]}'")
        if table is None:
            raise RequestError("not_found", f"there is nothing at {path[:200]}; GET /openapi.json lists the routes")
        route = table.get(method)
        if route is None and method == "HEAD":
            route = table.get("GET")
        if route is None:
            raise RequestError("method_not_allowed", f"{method} is not allowed here; use {' or '.join(table)}")
        return route, env, spelt

    def _methods(self, path: str) -> list[str]:
        found = []
        for method in ("GET", "POST"):
            try:
                self._match(method, path)
            except RequestError:
                continue
            found.append(method)
        return found

    def _check_origin(self, origin: bytes, headers: Mapping[bytes, bytes]) -> None:
        """Pages of other sites must not reach a server on somebody's machine."""
        text = origin.decode("latin-1").rstrip("/")
        if text in self._origins or "*" in self._origins:
            return
        _, _, host = text.partition("://")
        if not host or host.lower() != headers.get(b"host", b"").decode("latin-1").lower():
            raise RequestError(
                "foreign_origin", "requests from pages of other origins are refused; see allowed_origins"
            )


async def _refuse(request: Request, reply: Reply) -> None:
    await request.receive()
    if "websocket.http.response" not in (request.scope.get("extensions") or {}):
        await request.send({"type": "websocket.close", "code": 1008, "reason": ""})
        return
    start = {"type": "websocket.http.response.start", "status": reply.status, "headers": reply.headers}
    await request.send(start)
    await request.send({"type": "websocket.http.response.body", "body": reply.body})


def route_path(scope: Mapping[str, Any]) -> str:
    """The path below the place where the application is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root) else path
