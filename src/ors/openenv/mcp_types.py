"""Tools of OpenEnv environments: the actions that list and call them, what is observed then, and JSON-RPC."""

from __future__ import annotations

import enum
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ors.openenv.models import Action, BaseMessage, Observation

__all__ = [
    "RESERVED_TOOL_NAMES",
    "CallToolAction",
    "CallToolObservation",
    "JsonRpcError",
    "JsonRpcErrorCode",
    "JsonRpcRequest",
    "JsonRpcResponse",
    "ListToolsAction",
    "ListToolsObservation",
    "McpMethod",
    "Tool",
    "ToolError",
    "ToolErrorType",
    "WSMCPMessage",
    "WSMCPResponse",
]

RESERVED_TOOL_NAMES = frozenset(["reset", "step", "state", "close"])
"""Names that no tool may have: what a trainer does is not what an agent does."""


class JsonRpcErrorCode(int, enum.Enum):
    """The error codes of JSON-RPC 2.0."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    SERVER_ERROR = -32000


_MEANINGS = {
    JsonRpcErrorCode.PARSE_ERROR: "Parse error",
    JsonRpcErrorCode.INVALID_REQUEST: "Invalid Request",
    JsonRpcErrorCode.METHOD_NOT_FOUND: "Method not found",
    JsonRpcErrorCode.INVALID_PARAMS: "Invalid params",
    JsonRpcErrorCode.INTERNAL_ERROR: "Internal error",
    JsonRpcErrorCode.SERVER_ERROR: "Server error",
}


class McpMethod(str, enum.Enum):  # noqa: UP042  str() of one is as in the existing package
    """The methods of MCP that an OpenEnv server knows."""

    TOOLS_LIST = "tools/list"
    TOOLS_CALL = "tools/call"


class JsonRpcError(BaseModel):
    """Why a method could not be carried out."""

    model_config = ConfigDict(extra="forbid")

    code: int = Field(description="The kind of error")
    message: str = Field(description="What went wrong")
    data: Any | None = Field(default=None, description="What else there is to know")

    @classmethod
    def from_code(cls, code: JsonRpcErrorCode, message: str | None = None, data: Any = None) -> JsonRpcError:
        """An error with the words that its code has, unless others are given."""
        return cls(code=code.value, message=message or _MEANINGS.get(code, "Unknown error"), data=data)


class JsonRpcRequest(BaseModel):
    """Asks for a method."""

    model_config = ConfigDict(extra="forbid")

    jsonrpc: Literal["2.0"] = Field(description="Always 2.0")
    method: str = Field(description="The name of the method")
    params: dict[str, Any] = Field(default_factory=dict, description="What the method is given")
    id: str | int | None = Field(default=None, description="The client's name for this request")


class JsonRpcResponse(BaseModel):
    """Answers a request, with a result or with an error and never with both."""

    model_config = ConfigDict(extra="forbid")

    jsonrpc: Literal["2.0"] = Field(default="2.0", description="Always 2.0")
    result: Any | None = Field(default=None, description="What the method returned")
    error: JsonRpcError | None = Field(default=None, description="Why there is no result")
    id: str | int | None = Field(default=None, description="The client's name for the request")

    def model_dump(self, **kwargs: Any) -> dict[str, Any]:
        """The response as JSON-RPC wants it: the result or the error, not the other as null."""
        data: dict[str, Any] = {"jsonrpc": self.jsonrpc, "id": self.id}
        if self.error is not None:
            data["error"] = self.error.model_dump()
        else:
            data["result"] = self.result
        return data

    def model_dump_json(self, **kwargs: Any) -> str:
        """The same as text."""
        return json.dumps(self.model_dump())

    @classmethod
    def success(cls, result: Any, request_id: str | int | None = None) -> JsonRpcResponse:
        """An answer with a result."""
        return cls(result=result, id=request_id)

    @classmethod
    def error_response(
        cls,
        code: JsonRpcErrorCode,
        message: str | None = None,
        data: Any = None,
        request_id: str | int | None = None,
    ) -> JsonRpcResponse:
        """An answer with an error."""
        return cls(error=JsonRpcError.from_code(code, message, data), id=request_id)


class Tool(BaseModel):
    """A tool, as agents are told of it."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="Its name, which no other tool has")
    description: str = Field(description="What it does")
    input_schema: dict[str, Any] = Field(description="The JSON Schema of its arguments")


class ToolErrorType(str, enum.Enum):  # noqa: UP042  str() of one is as in the existing package
    """Why a tool has no result."""

    EXECUTION_ERROR = "execution_error"
    INVALID_ARGS = "invalid_args"
    TRANSPORT_ERROR = "transport_error"
    TOOL_NOT_FOUND = "tool_not_found"
    TIMEOUT = "timeout"


class ToolError(BaseModel):
    """A tool that has no result. What a tool itself calls an error is in its result."""

    model_config = ConfigDict(extra="forbid")

    error_type: ToolErrorType = Field(description="The kind of error")
    message: str = Field(description="What went wrong")


class ListToolsAction(Action):
    """Asks which tools there are; needs no reset."""

    type: Literal["list_tools"] = Field(default="list_tools", description="Which action this is")


class CallToolAction(Action):
    """Calls a tool."""

    type: Literal["call_tool"] = Field(default="call_tool", description="Which action this is")
    tool_name: str = Field(description="The name of the tool")
    arguments: dict[str, Any] = Field(default_factory=dict, description="What the tool is given")


class ListToolsObservation(Observation):
    """The tools that there are."""

    tools: list[Tool] = Field(description="The tools with the schemas of their arguments")


class CallToolObservation(Observation):
    """What a call of a tool came to."""

    tool_name: str = Field(description="The name of the tool")
    result: Any = Field(default=None, description="What the tool returned, also where it calls that an error")
    error: ToolError | None = Field(default=None, description="Why the tool has no result")


class WSMCPMessage(BaseMessage):
    """A JSON-RPC request over a WebSocket of a session."""

    type: Literal["mcp"] = Field(default="mcp", description="What is asked for")
    data: dict[str, Any] = Field(description="The JSON-RPC request")


class WSMCPResponse(BaseModel):
    """The answer to one."""

    model_config = ConfigDict(extra="forbid")

    type: str = Field(default="mcp", description="What this is")
    data: dict[str, Any] = Field(description="The JSON-RPC response")
