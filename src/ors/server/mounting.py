"""The server's table as routes of somebody else's application, which starts and stops it with itself."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

from starlette.routing import Match, Route, WebSocketRoute

from ors.server.application import Application

__all__ = ["live_with", "routes_of"]


class _OfItsOwn(Route):
    """A route under the name of an environment, for the environments of one application only."""

    def matches(self, scope: Any) -> Any:
        return _own(self.endpoint, *super().matches(scope))


class _SocketOfItsOwn(WebSocketRoute):
    """The same for sockets."""

    def matches(self, scope: Any) -> Any:
        return _own(self.endpoint, *super().matches(scope))


def _own(application: Any, match: Match, child: Any) -> tuple[Match, Any]:
    known = match is Match.NONE or child["path_params"]["env_name"].lower() in application.names
    return (match, child) if known else (Match.NONE, {})


def routes_of(application: Application) -> list[Any]:
    """The table as routes of Starlette, all of which lead to the application."""
    host: Any = None
    found: list[Any] = []
    for route in application.routes(host):
        if route.scope == "env":
            found.append(_OfItsOwn(f"/{{env_name}}{route.path}", application, methods=[route.method]))
        found.append(Route(route.path, application, methods=[route.method]))
    for path in application.socket_paths():
        found += [WebSocketRoute(path, application), _SocketOfItsOwn(f"/{{env_name}}{path}", application)]
    return found


def live_with(app: Any, application: Application) -> None:
    """Start and stop the application with another one."""
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(whole: Any) -> Any:
        await application.start()
        try:
            async with inner(whole) as state:
                yield state
        finally:
            await application.stop()

    app.router.lifespan_context = lifespan
