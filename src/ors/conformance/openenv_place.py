"""A place on a server of OpenEnv: routes without a name are its first environment's, and sockets are its sessions."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from ors.conformance.inputs import make_input
from ors.conformance.judging import Failed, NotApplicable, object_of
from ors.conformance.place import Place
from ors.conformance.visit import SID
from ors.conformance.websocket import Socket
from ors.conformance.wire import Answer

__all__ = ["OpenEnvPlace"]


class OpenEnvPlace(Place):
    """One environment of the server that is visited."""

    def root(self, route: str) -> str:
        """The path of a route of episodes: without a name for the first environment."""
        return f"/{route}" if self.is_first else f"/{quote(self.env, safe='')}/{route}"

    async def root_get(self, route: str, **options: Any) -> Answer:
        """GET a route of episodes."""
        return self._remembered(await self.visit.ask("GET", self.root(route), **options))

    async def root_post(self, route: str, body: Any = None, **options: Any) -> Answer:
        """POST to a route of episodes."""
        return self._remembered(await self.visit.ask("POST", self.root(route), body=body, **options))

    def _remembered(self, answer: Answer) -> Answer:
        # a server that keeps an episode over HTTP says under which id; it is deleted at the end
        if answer.problem is None and (sid := answer.header(SID.lower())):
            self.visit.may_be_open(sid)
        return answer

    async def schema(self) -> dict[str, Any]:
        """The schemas of actions, observations and states. Raises Failed."""
        return object_of(await self.schema_answer(), "action", "observation", "state")

    async def schema_answer(self) -> Answer:
        """The answer of `/schema`."""
        return await self.once("schema", lambda: self.root_get("schema"))

    async def an_action(self) -> dict[str, Any]:
        """An action that the environment's schema accepts. Raises NotApplicable."""
        if self.is_probe:
            return {"text": "hello"}
        try:
            made = make_input((await self.schema())["action"])
        except Failed as exc:
            raise NotApplicable(f"it needs /schema: {exc}") from None
        if not isinstance(made, dict):
            raise NotApplicable("no action can be made from the schema")
        return made

    @contextlib.asynccontextmanager
    async def socket(self, query: str = "", route: str = "ws") -> AsyncIterator[Socket]:
        """A socket for the length of a `with`."""
        self.visit.spend(1)
        socket = Socket(self.visit.speaker, self.root(route) + query)
        try:
            await socket.open()
            yield socket
        finally:
            socket.leave()

    async def rpc(self, method: str, params: dict[str, Any] | None = None, id: Any = 1) -> Answer:
        """POST a request of JSON-RPC to `/mcp`."""
        body = {"jsonrpc": "2.0", "method": method, "params": params or {}, "id": id}
        return await self.root_post("mcp", body)
