"""The outer shell for code that treats the server as a FastAPI application: adds routes and middleware, mounts, tests.

Middleware that is added wraps every request, the server's own routes too. Routes that are added are reached where the
server's own table has none.
"""

from __future__ import annotations

import json
from typing import Any

import fastapi
from fastapi.routing import APIRoute
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ors.jsontext import dump
from ors.server.application import Application
from ors.server.dispatch import route_path

__all__ = ["Shell"]


class Shell(fastapi.FastAPI):
    """A FastAPI application around the server's own."""

    def __init__(self, application: Application) -> None:
        # docs and the description come from the table of routes
        super().__init__(title="ORS Kit", openapi_url=None, docs_url=None, redoc_url=None)
        self._application = application
        application.describe = self._describe
        # what neither table knows is answered in one shape, and tells nothing to whoever has no key
        self.router.default = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        elif scope["type"] == "http" and not self.user_middleware and self._application.knows(route_path(scope)):
            # with no middleware to pass, the stack below would come to the same end
            scope["app"] = self
            await self._application(scope, receive, send)
        elif scope["type"] == "websocket" and not self.user_middleware and self._knows_socket(scope):
            scope["app"] = self
            await self._application(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def _knows_socket(self, scope: Scope) -> bool:
        return self._application.knows_socket(route_path(scope))

    def build_middleware_stack(self) -> ASGIApp:
        added = self.user_middleware
        self.user_middleware = [*added, Middleware(_Own, self._application)]
        try:
            return super().build_middleware_stack()
        finally:
            self.user_middleware = added

    def openapi(self) -> dict[str, Any]:
        """The description of the server's routes and of those that were added."""
        document: dict[str, Any] = json.loads(self._application.document())
        added = super().openapi()
        document["paths"] |= added.get("paths", {})
        for kind, parts in added.get("components", {}).items():
            known = document["components"].setdefault(kind, {})
            known |= {name: part for name, part in parts.items() if name not in known}
        return document

    def _describe(self) -> bytes:
        added = any(isinstance(route, APIRoute) for route in self.routes)
        return dump(self.openapi()) if added else self._application.document()

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The server starts before, and stops after, what the added parts do in their own lifespan."""

        async def sending(message: Message) -> None:
            if message["type"].startswith("lifespan.shutdown"):
                await self._application.stop()
            await send(message)

        try:
            await self._application.start()
        except Exception as exc:
            await receive()
            await send({"type": "lifespan.startup.failed", "message": f"{type(exc).__name__}: {exc}"})
            raise
        await super().__call__(scope, receive, sending)


class _Own:
    """The innermost middleware: what the server's own table knows goes there."""

    def __init__(self, app: ASGIApp, application: Application) -> None:
        self._app = app
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind, application = scope["type"], self._application
        if (kind == "http" and application.knows(route_path(scope))) or (
            kind == "websocket" and application.knows_socket(route_path(scope))
        ):
            await self._application(scope, receive, send)
        else:
            await self._app(scope, receive, send)
