"""The routes that are about the server itself: health, readiness, version, docs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ors._version import __version__
from ors.core.failures import failure
from ors.core.ports import Host
from ors.faces.http import Reply, Request, Route, json_reply
from ors.jsontext import dump

__all__ = ["CAPABILITIES", "SystemFace"]

CAPABILITIES = (
    "client_call_ids",
    "idempotent_create",
    "call_cancel",
    "create_session_json",
    "error_kinds",
    "required_secrets",
    "task_keys",
)
"""What `/version` says that this server can do beyond the text of the standard."""

_COUNT = {"type": "integer", "minimum": 0}
_STATUS = {
    "type": "object",
    "properties": {
        "ready": {"type": "boolean"},
        "draining": {"type": "boolean"},
        "sessions": _COUNT,
        "calls": _COUNT,
        "zombies": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["ready", "draining", "sessions", "calls", "zombies"],
}


class SystemFace:
    """Liveness, readiness, version and the description of every route."""

    def __init__(self, host: Host, document: Callable[[], bytes], health: str = "ok") -> None:
        self._host = host
        self._health = dump({"status": health})
        self._document = document

    def routes(self) -> list[Route]:
        """The route table."""
        status = {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}
        version = {
            "type": "object",
            "properties": {
                "version": {"type": "string"},
                "build_sha": {"type": ["string", "null"]},
                "server": {"type": "string"},
                "capabilities": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["version", "build_sha", "server", "capabilities"],
        }
        return [
            Route("GET", "/health", self.health, "Whether the server lives", open=True, answer=status, tag="Server"),
            Route(
                "GET",
                "/ready",
                self.ready,
                "Whether new sessions are welcome",
                open=True,
                answer=_STATUS,
                tag="Server",
                kinds=("draining", "worker_unavailable"),
            ),
            Route(
                "GET", "/version", self.version, "The version, and what the server can do", answer=version, tag="Server"
            ),
            Route("GET", "/openapi.json", self.openapi, "This description", answer={"type": "object"}, tag="Server"),
            Route("GET", "/docs", self.docs, "This description, for people", answer="html", tag="Server"),
        ]

    async def health(self, request: Request) -> Reply:
        return json_reply(self._health)

    async def ready(self, request: Request) -> Reply:
        status: dict[str, Any] = await self._host.status()
        if status["ready"]:
            return json_reply(dump(status))
        if status["draining"]:
            failed = failure("draining", "the server is shutting down")
        else:
            words = "too many threads ignore their time limit; replace this process"
            failed = failure("worker_unavailable", status.get("lost", words))
        said = {"detail": failed.detail, "kind": failed.kind, "retryable": failed.retryable}
        return json_reply(dump(said | status), failed.status)

    async def version(self, request: Request) -> Reply:
        about = {
            "version": __version__,
            "build_sha": os.environ.get("ORS_BUILD_SHA"),
            "server": "ors-kit",
            "capabilities": list(CAPABILITIES),
        }
        return json_reply(dump(about))

    async def openapi(self, request: Request) -> Reply:
        return json_reply(self._document())

    async def docs(self, request: Request) -> Reply:
        from ors.server.docs_page import page

        return Reply(200, page(self._document()), [(b"content-type", b"text/html; charset=utf-8")])
