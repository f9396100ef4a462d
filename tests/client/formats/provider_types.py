"""The providers' own types: what their SDKs declare, checked strictly and to the last part."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from anthropic.types import MessageParam as AnthropicMessage
from anthropic.types import ToolParam as AnthropicTool
from google.genai import types as google
from mcp import types as mcp
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam
from openai.types.responses import FunctionToolParam, ResponseInputItemParam
from pydantic import BaseModel, TypeAdapter

TOOLS: dict[str, Any] = {
    "openai": FunctionToolParam,
    "openai-chat": ChatCompletionFunctionToolParam,
    "openrouter": ChatCompletionFunctionToolParam,
    "anthropic": AnthropicTool,
    "google": google.FunctionDeclaration,
    "google-json": google.FunctionDeclaration,
    "mcp": mcp.Tool,
}
PROMPTS: dict[str, Any] = {
    "openai": ResponseInputItemParam,
    "openai-chat": ChatCompletionMessageParam,
    "openrouter": ChatCompletionMessageParam,
    "anthropic": AnthropicMessage,
    "google": google.Content,
    "google-json": google.Content,
    "mcp": mcp.PromptMessage,
}
RESULTS: dict[str, Any] = {**PROMPTS, "mcp": mcp.CallToolResult}


@functools.cache
def _adapter(declared: Any) -> TypeAdapter[Any]:
    return TypeAdapter(declared)


def accepted(declared: Any, value: Any) -> Any:
    """The value as the declared type reads it. Raises ValidationError; keys that the type has not are an error."""
    read = _drained(_adapter(declared).validate_python(value))
    _same_keys(value, read.model_dump(by_alias=True, mode="json") if isinstance(read, BaseModel) else read, "")
    return read


def _drained(value: Any) -> Any:
    # a field that is declared as an Iterable is checked while it is read
    if isinstance(value, Mapping):
        return {key: _drained(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, BaseModel)):
        return [_drained(item) for item in value]
    return value


def _same_keys(given: Any, read: Any, path: str) -> None:
    if isinstance(given, Mapping):
        unknown = set(given) - set(read)
        assert not unknown, f"{path}: {unknown} are no keys of the type"
        for key, item in given.items():
            _same_keys(item, read[key], f"{path}.{key}")
    elif isinstance(given, list):
        assert len(given) == len(read), path
        for i, item in enumerate(given):
            _same_keys(item, read[i], f"{path}[{i}]")
