"""Clients of environments whose actions are tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict

from ors.openenv.clients.env_client import EnvClient
from ors.openenv.clients.pending import run
from ors.openenv.clients.step_result import StepResult
from ors.openenv.clients.wire import ServerError
from ors.openenv.mcp_types import CallToolAction, CallToolObservation, ListToolsAction, ListToolsObservation, Tool
from ors.openenv.models import Observation, State

__all__ = ["GenericMCPObservation", "MCPClientBase", "MCPToolClient"]

_NOT_UNDERSTOOD = ("UNKNOWN_TYPE", "VALIDATION_ERROR")


class GenericMCPObservation(Observation):
    """An observation that is not about tools; its fields are those that the environment gave it."""

    model_config = ConfigDict(extra="allow")


class MCPClientBase(EnvClient[Any, Observation, State]):
    """A session in which tools are listed and called, all over one WebSocket: it ends with its client, and it is one
    session however many workers the server has.
    """

    def __init__(
        self,
        base_url: str | None = None,
        connect_timeout_s: float = 10.0,
        message_timeout_s: float | None = 60.0,
        websocket_ping_interval_s: float | None = 20.0,
        websocket_ping_timeout_s: float | None = 20.0,
        provider: Any = None,
        mode: str | None = None,
        max_message_size_mb: float = 100.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if mode is not None and mode.lower() != "production":
            raise ValueError(f"{type(self).__name__} speaks to servers in production mode, not in {mode!r} mode")
        super().__init__(
            base_url=base_url,
            connect_timeout_s=connect_timeout_s,
            message_timeout_s=message_timeout_s,
            max_message_size_mb=max_message_size_mb,
            websocket_ping_interval_s=websocket_ping_interval_s,
            websocket_ping_timeout_s=websocket_ping_timeout_s,
            provider=provider,
            mode="production",
            headers=headers,
        )
        self._tools: list[Tool] | None = None

    def list_tools(self, use_cache: bool = True) -> Any:
        """The tools of the environment. Raises RuntimeError with the words of a server that cannot say."""
        return run(self._list_tools(use_cache), "list_tools()")

    async def _list_tools(self, use_cache: bool) -> list[Tool]:
        if self._tools is None or not use_cache:
            try:
                said = await self._rpc("tools/list", {})
            except ServerError as exc:
                if exc.code not in _NOT_UNDERSTOOD:
                    raise
                # a server from before there was JSON-RPC on this socket
                payload = await self._session().ask({"type": "step", "data": {"type": "list_tools"}})
                said = payload.get("observation") or {}
            if not isinstance(said.get("tools"), list):
                raise RuntimeError(f"the environment at {self.base_url} lists no tools; it said {str(said)[:200]}")
            self._tools = [_tool(each) for each in said["tools"]]
        return list(self._tools)

    async def _rpc(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask for a method in this session. Raises RuntimeError for what the server refuses."""
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
        said = await self._session().ask({"type": "mcp", "data": request})
        if error := said.get("error"):
            raise RuntimeError(f"MCP error: {error.get('message', 'unknown')} (code: {error.get('code')})")
        return said.get("result") or {}

    async def _reset(self, kwargs: dict[str, Any]) -> Any:
        self._tools = None  # another task may have others
        return await super()._reset(kwargs)

    async def _disconnect(self) -> None:
        self._tools = None
        await super()._disconnect()

    def _step_payload(self, action: Any) -> dict[str, Any]:
        if isinstance(action, ListToolsAction):
            return {"type": "list_tools"}
        if isinstance(action, CallToolAction):
            return {"type": "call_tool", "tool_name": action.tool_name, "arguments": action.arguments}
        return super()._step_payload(action)

    def _parse_result(self, payload: dict[str, Any]) -> Any:
        observation = payload.get("observation", {})
        about = {"reward": payload.get("reward"), "done": bool(payload.get("done", False))}
        model: type[Observation] = GenericMCPObservation
        # an environment may have fields of these names among others
        if "tool_name" in observation and observation.keys() <= CallToolObservation.model_fields.keys():
            model = CallToolObservation
        elif "tools" in observation and observation.keys() <= ListToolsObservation.model_fields.keys():
            model = ListToolsObservation
            observation = {**observation, "tools": [_tool(each) for each in observation["tools"]]}
        result = super()._parse_result({"observation": {}, **about})
        result.observation = model.model_validate({**observation, **about})
        result.metadata = payload.get("metadata")
        return result


class MCPToolClient(MCPClientBase):
    """A client that calls an environment's tools by name.

    A call is a step: it counts. What it was paid and whether the episode is over is in `last_result`, and under `meta`
    in the result of the tool as the server gave it (`last_result.observation.result`).
    """

    last_result: StepResult[Any] | None = None
    """What the last step or call came to."""

    def call_tool(self, name: str, **kwargs: Any) -> Any:
        """Call a tool; the result is what it returned. Raises RuntimeError with what went wrong."""
        return run(self._call_tool(name, kwargs), f"call_tool({name!r})")

    def get_tool(self, name: str) -> Any:
        """The tool of this name, or None."""
        return run(self._get_tool(name), f"get_tool({name!r})")

    def has_tool(self, name: str) -> Any:
        """Whether there is a tool of this name."""
        return run(self._has_tool(name), f"has_tool({name!r})")

    async def _call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        action = {"type": "call_tool", "tool_name": name, "arguments": arguments}
        try:
            payload = await self._session().ask({"type": "step", "data": action})
        except ServerError as exc:
            if exc.code != "VALIDATION_ERROR":
                raise
            # its steps take other actions; nothing has run
            result: Any = await self._rpc("tools/call", {"name": name, "arguments": arguments})
        else:
            observation = payload.get("observation") or {}
            if isinstance(given := observation.get("result"), dict):
                paid = {"reward": payload.get("reward"), "done": bool(payload.get("done", False))}
                given["meta"] = {**(given.get("meta") or {}), **paid}
            self.last_result = self._parse_result(payload)
            if observation.get("error"):
                raise RuntimeError(f"Tool '{name}' failed: {_words(observation)}")
            result = observation.get("result", observation)
        if isinstance(result, dict):
            if result.get("is_error") or result.get("error"):
                raise RuntimeError(f"Tool '{name}' failed: {_words(result)}")
            if "data" in result:
                return result["data"]
            return result.get("result", result)
        return result

    async def _step(self, action: Any, kwargs: dict[str, Any]) -> Any:
        self.last_result = await super()._step(action, kwargs)
        return self.last_result

    async def _get_tool(self, name: str) -> Tool | None:
        return next((tool for tool in await self._list_tools(True) if tool.name == name), None)

    async def _has_tool(self, name: str) -> bool:
        return await self._get_tool(name) is not None


def _tool(each: Mapping[str, Any]) -> Tool:
    """A tool as either kind of server lists it."""
    return Tool(
        name=each["name"],
        description=each.get("description") or "",
        input_schema=each.get("input_schema") or each.get("inputSchema") or {},
    )


def _words(result: Mapping[str, Any]) -> str:
    error = result.get("error")
    if isinstance(error, Mapping):
        return str(error.get("message", error))
    if error:
        return str(error)
    texts = [part.get("text", "") for part in result.get("content", []) if isinstance(part, Mapping)]
    return " ".join(texts) or "without a word"
