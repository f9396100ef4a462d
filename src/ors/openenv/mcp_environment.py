"""`MCPEnvironment`: an environment whose agents call the tools of a FastMCP server.

It needs the package `fastmcp`, as the environment itself does, which makes such a server.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from abc import abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from ors.openenv.environment import Environment
from ors.openenv.mcp_types import (
    RESERVED_TOOL_NAMES,
    CallToolAction,
    CallToolObservation,
    ListToolsAction,
    ListToolsObservation,
    Tool,
    ToolError,
    ToolErrorType,
)
from ors.openenv.models import Action, Observation

__all__ = ["MCP_TOOL_CALL_TIMEOUT", "MCPEnvironment", "get_server_tools"]

MCP_TOOL_CALL_TIMEOUT = 30.0
"""How many seconds a tool may take, unless the step says otherwise."""

_MODES = ("production", "simulation")


class MCPEnvironment(Environment[Any, Any, Any]):
    """An environment with the tools of a FastMCP server.

    Agents list tools and call them with the two actions for that; all other actions go to `_step_impl`. Tools that are
    registered with `self.tool(mode=…)` are there only in that mode of the server. Raises ValueError for a tool that has
    the name of something that only trainers do.
    """

    _mode: str | None = None

    def __init__(self, mcp_server: Any, transform: Any | None = None) -> None:
        super().__init__(transform=transform)
        self._validate_tool_names(mcp_server)
        self.mcp_server = mcp_server
        self.mcp_client = _fastmcp().Client(mcp_server)
        self._mode_tools: dict[str, dict[str | None, Callable[..., Any]]] = defaultdict(dict)
        self._mode_tool_schemas: dict[str, dict[str | None, dict[str, Any]]] = defaultdict(dict)

    # Tools

    def tool(self, mode: str | None = None) -> Callable[[Callable[..., Any]], Any]:
        """Register a function as a tool: for one mode of the server, or for both."""
        if mode is not None and mode not in _MODES:
            raise ValueError(f"Invalid mode '{mode}': it is 'production', 'simulation' or None")

        def register(function: Callable[..., Any]) -> Any:
            name = function.__name__
            if name in RESERVED_TOOL_NAMES:
                raise ValueError(_reserved([name]))
            self._mode_tools[name][mode] = function
            if mode is None:
                return self._server().tool()(function)
            self._mode_tool_schemas[name][mode] = {
                "name": name,
                "description": function.__doc__ or "",
                "input_schema": _schema_of(function),
            }
            return function

        return register

    def _validate_tool_names(self, mcp_server: Any) -> None:
        if taken := RESERVED_TOOL_NAMES & self._get_server_tools(mcp_server).keys():
            raise ValueError(_reserved(sorted(taken)))

    def _get_server_tools(self, mcp_server: Any) -> dict[str, Any]:
        return get_server_tools(mcp_server)

    def _function(self, name: str) -> Callable[..., Any] | None:
        """The function of a tool that was registered here, in the mode of this server."""
        functions = self._mode_tools.get(name, {})
        return functions.get(None) or functions.get(self._mode)

    @property
    def supports_code_mode(self) -> bool:
        """Whether `execute_code` is there."""
        return True

    def get_callables(self) -> dict[str, Callable[..., Any]]:
        """The tools as functions, by name."""
        functions = {
            name: tool.fn
            for name, tool in self._get_server_tools(self.mcp_server).items()
            if callable(getattr(tool, "fn", None))
        }
        for name in self._mode_tools:
            if name not in functions and (function := self._function(name)) is not None:
                functions[name] = function
        return functions

    def execute_code(self, code: str) -> Observation:
        """Run Python code that calls tools as functions; what it assigns to `result` is in the metadata.

        It runs here, in this process, with all that this process may do: only for code that is trusted as this is.
        """
        names: dict[str, Any] = {}
        try:
            exec(code, self.get_callables(), names)  # noqa: S102  what it is there for
        except SyntaxError as exc:
            return Observation(done=False, reward=0.0, metadata={"error": f"Syntax error: {exc}"})
        except Exception as exc:
            return Observation(done=False, reward=0.0, metadata={"error": str(exc)})
        return Observation(done=False, reward=0.0, metadata={"result": names.get("result")})

    # Steps

    def step(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """Act: list tools, call one, or whatever `_step_impl` does with the action."""
        if isinstance(action, ListToolsAction):
            return _run(self._async_handle_list_tools())
        if isinstance(action, CallToolAction):
            return _run(self._async_handle_call_tool(action, timeout_s=timeout_s))
        return self._step_impl(action, timeout_s=timeout_s, **kwargs)

    async def step_async(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """The same on the event loop that the connection to the tools lives on."""
        if isinstance(action, ListToolsAction):
            return await self._async_handle_list_tools()
        if isinstance(action, CallToolAction):
            return await self._async_handle_call_tool(action, timeout_s=timeout_s)
        return await asyncio.to_thread(self._step_impl, action, timeout_s=timeout_s, **kwargs)

    @abstractmethod
    def _step_impl(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """Act, where the action is not about tools."""

    async def _async_handle_list_tools(self) -> ListToolsObservation:
        try:
            async with self.mcp_session() as client:
                listed = await client.list_tools()
        except Exception as exc:
            return ListToolsObservation(tools=[], metadata={"error": str(exc), "error_type": "list_tools_failed"})
        tools = [
            Tool(name=tool.name, description=tool.description or "", input_schema=getattr(tool, "inputSchema", {}))
            for tool in listed
            if tool.name not in self._mode_tool_schemas
        ]
        for schemas in self._mode_tool_schemas.values():
            schema = schemas.get(None) or schemas.get(self._mode)
            if schema is not None:
                tools.append(Tool(**schema))
        return ListToolsObservation(tools=tools)

    async def _async_handle_call_tool(
        self, action: CallToolAction, timeout_s: float | None = None
    ) -> CallToolObservation:
        name = action.tool_name
        limit = MCP_TOOL_CALL_TIMEOUT if timeout_s is None else timeout_s
        function = self._function(name)
        if function is None and name in self._mode_tools:
            return _failed(name, ToolErrorType.TOOL_NOT_FOUND, f"Tool '{name}' not available in {self._mode} mode")
        call = self._call_tool(name, action.arguments) if function is None else _call(function, action.arguments)
        try:
            result = await asyncio.wait_for(call, limit)
        except TimeoutError:
            return _failed(name, ToolErrorType.TIMEOUT, f"Tool '{name}' timed out after {limit} seconds")
        except Exception as exc:
            words = str(exc)
            kind = ToolErrorType.EXECUTION_ERROR if function is not None else _kind_of(words.lower())
            return _failed(name, kind, words)
        return CallToolObservation(tool_name=name, result=result)

    async def _call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        async with self.mcp_session() as client:
            return await client.call_tool(name, arguments)

    # The connection

    @asynccontextmanager
    async def mcp_session(self) -> AsyncIterator[Any]:
        """A connection to the tools; one that is held open is shared by those that are opened meanwhile."""
        if self.mcp_client is None:
            raise RuntimeError("the environment is closed, and its tools with it")
        async with self.mcp_client as client:
            yield client

    def _server(self) -> Any:
        if self.mcp_server is None:
            raise RuntimeError("the environment is closed, and its tools with it")
        return self.mcp_server

    def close(self) -> None:
        """Let go of the tools. A subclass that has something to release calls this too."""
        self.mcp_client = None
        self.mcp_server = None


def get_server_tools(mcp_server: Any) -> dict[str, Any]:
    """The tools of a FastMCP server, of version 2 or 3, by name."""
    if hasattr(mcp_server, "get_tools"):
        tools = _run(mcp_server.get_tools())
        if isinstance(tools, dict):
            return tools
    if hasattr(mcp_server, "list_tools"):
        return {tool.name: tool for tool in _run(mcp_server.list_tools())}
    return {}


def _fastmcp() -> Any:
    try:
        import fastmcp
    except ImportError:
        raise ImportError("MCPEnvironment needs fastmcp: pip install 'ors-kit[openenv]'") from None
    return fastmcp


async def _call(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a tool that is known here only. The result has the form that FastMCP's client gives results."""
    from fastmcp.client.client import CallToolResult
    from mcp.types import TextContent

    if inspect.iscoroutinefunction(function):
        value = await function(**arguments)
    else:
        value = await asyncio.to_thread(function, **arguments)
        if inspect.isawaitable(value):
            value = await value
    return CallToolResult(
        content=[TextContent(type="text", text=str(value))],
        structured_content={"result": value},
        meta=None,
        data=value,
        is_error=False,
    )


def _failed(name: str, kind: ToolErrorType, message: str) -> CallToolObservation:
    return CallToolObservation(tool_name=name, result=None, error=ToolError(error_type=kind, message=message))


def _kind_of(words: str) -> ToolErrorType:
    """What kind of error FastMCP means; it says so in words only."""
    if "not found" in words or "unknown tool" in words:
        return ToolErrorType.TOOL_NOT_FOUND
    if "invalid" in words or "argument" in words:
        return ToolErrorType.INVALID_ARGS
    return ToolErrorType.EXECUTION_ERROR


def _reserved(names: list[str]) -> str:
    return (
        f"tools cannot use the reserved names {', '.join(names)}; reserved are {', '.join(sorted(RESERVED_TOOL_NAMES))}"
    )


def _schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The JSON Schema of what a function takes; text where it does not say."""
    properties: dict[str, Any] = {}
    required = []
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        properties[name] = {"type": "string"}
        if parameter.annotation is not parameter.empty:
            try:
                properties[name] = TypeAdapter(parameter.annotation).json_schema()
            except PydanticUserError:  # a type that has no schema
                pass
        if parameter.default is parameter.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end, from synchronous code on whatever thread."""
    if asyncio._get_running_loop() is None:
        return asyncio.run(coroutine)
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome[:] = [True, asyncio.run(coroutine)]
        except BaseException as exc:
            outcome[:] = [False, exc]

    thread = threading.Thread(target=run, name="ors-mcp")
    thread.start()
    thread.join()
    if outcome[0]:
        return outcome[1]
    raise outcome[1]
