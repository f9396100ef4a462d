"""Clients of environments whose actions are tools."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import aiohttp

from ors.openenv.clients.addresses import is_local
from ors.openenv.clients.env_client import EnvClient
from ors.openenv.clients.pending import run
from ors.openenv.clients.wire import Wire, http_of_loop
from ors.openenv.mcp_types import CallToolAction, CallToolObservation, ListToolsAction, ListToolsObservation, Tool
from ors.openenv.models import Observation, State

__all__ = ["MCPClientBase", "MCPToolClient"]

ActT = TypeVar("ActT")
ObsT = TypeVar("ObsT")
StateT = TypeVar("StateT")


class MCPClientBase(EnvClient[ActT, ObsT, StateT], Generic[ActT, ObsT, StateT]):
    """A session in which tools are listed and called over HTTP, and `reset`, `step` and `state` over the WebSocket."""

    def __init__(
        self,
        base_url: str | None = None,
        connect_timeout_s: float = 10.0,
        message_timeout_s: float = 60.0,
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
        self._session_id: str | None = None
        self._tools: list[Tool] | None = None
        self._numbers = itertools.count(1)

    def list_tools(self, use_cache: bool = True) -> Any:
        """The tools of the environment. Raises RuntimeError with the words of a server that cannot say."""
        return run(self._list_tools(use_cache), "list_tools()")

    async def _list_tools(self, use_cache: bool) -> list[Tool]:
        if self._tools is None or not use_cache:
            result = await self._rpc("tools/list", {})
            self._tools = [_tool(each) for each in result.get("tools", [])]
        return list(self._tools)

    async def _rpc(self, method: str, params: dict[str, Any]) -> Any:
        """Ask for a method in this session. Raises RuntimeError for what the server refuses."""
        await self._connected()
        assert self._session_id is not None
        return await self._post(method, {**params, "session_id": self._session_id})

    async def _post(self, method: str, params: dict[str, Any]) -> Any:
        url = f"{self._http_base()}mcp"
        body = {"jsonrpc": "2.0", "method": method, "params": params, "id": next(self._numbers)}
        http = http_of_loop(proxies=not is_local(url))
        timeout = aiohttp.ClientTimeout(total=self._options["message_timeout_s"])
        try:
            async with http.post(url, json=body, headers=self._headers, timeout=timeout) as answer:
                if answer.status != 200:
                    raise RuntimeError(f"POST {url} answered {answer.status}: {(await answer.text())[:2000]}")
                said = await answer.json(content_type=None)
        except TimeoutError as exc:
            raise TimeoutError(f"no answer to {method} from {url} in time") from exc
        except (aiohttp.ClientError, OSError) as exc:
            raise ConnectionError(f"Failed to connect to {url}: {exc}") from exc
        if "error" in said:
            error = said["error"]
            raise RuntimeError(f"MCP error: {error.get('message', 'unknown')} (code: {error.get('code')})")
        return said.get("result") or {}

    # The session that both transports share

    async def _connected(self) -> Any:
        if self._session_id is None:
            self._session_id = str((await self._post("openenv/session/create", {}))["session_id"])
            self._wire = Wire(self._started(), **self._options, query={"session_id": self._session_id})
        assert self._wire is not None
        await self._wire.connect()
        return self

    def _session(self) -> Wire:
        if self._wire is None:
            raise ConnectionError("the session is not open")
        return self._wire

    async def _reset(self, kwargs: dict[str, Any]) -> Any:
        await self._connected()
        return await super()._reset(kwargs)

    async def _step(self, action: ActT, kwargs: dict[str, Any]) -> Any:
        await self._connected()
        return await super()._step(action, kwargs)

    async def _state(self) -> StateT:
        await self._connected()
        return await super()._state()

    def _forget_session(self) -> None:
        self._session_id = None

    async def _disconnect(self) -> None:
        session, self._session_id = self._session_id, None
        wire, self._wire = self._wire, None
        self._tools = None
        if wire is not None:
            await wire.close()
        if session is not None:
            try:
                await self._post("openenv/session/close", {"session_id": session})
            except (RuntimeError, ConnectionError, TimeoutError):
                pass  # it ended with its socket, or with its server


class MCPToolClient(MCPClientBase[Any, Observation, State]):
    """A client that calls an environment's tools by name."""

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
        result = await self._rpc("tools/call", {"name": name, "arguments": arguments})
        if not isinstance(result, dict):
            return result
        if result.get("is_error") or result.get("error"):
            raise RuntimeError(f"Tool '{name}' failed: {_words(result)}")
        if "data" in result:
            return result["data"]
        return result.get("result", result)

    async def _get_tool(self, name: str) -> Tool | None:
        return next((tool for tool in await self._list_tools(True) if tool.name == name), None)

    async def _has_tool(self, name: str) -> bool:
        return await self._get_tool(name) is not None

    def _step_payload(self, action: Any) -> dict[str, Any]:
        if isinstance(action, ListToolsAction):
            return {"type": "list_tools"}
        if isinstance(action, CallToolAction):
            return {"type": "call_tool", "tool_name": action.tool_name, "arguments": action.arguments}
        return super()._step_payload(action)

    def _parse_result(self, payload: dict[str, Any]) -> Any:
        observation = payload.get("observation", {})
        about = {"reward": payload.get("reward"), "done": bool(payload.get("done", False))}
        model: type[Observation] = Observation
        if "tool_name" in observation:
            model = CallToolObservation
        elif "tools" in observation:
            model = ListToolsObservation
            observation = {**observation, "tools": [_tool(each) for each in observation["tools"]]}
        else:
            observation = {"metadata": {**observation.get("metadata", {}), **_without(observation, "metadata")}}
        result = super()._parse_result({"observation": {}, **about})
        result.observation = model.model_validate({**observation, **about})
        result.metadata = payload.get("metadata")
        return result


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


def _without(observation: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in observation.items() if key != name}
