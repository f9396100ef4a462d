"""Tools, prompts and results of calls in the formats of model providers.

`openai`, `anthropic`, `google` and `openrouter` mean what they mean in existing clients; `openai` is the Responses
format. Nothing that is passed in is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

from ors.client.formats import anthropic, google, mcp, openai, openrouter
from ors.client.formats.content import ToolResult
from ors.client.formats.errors import FormatError
from ors.types import ImageBlock, TextBlock, ToolOutput, ToolSpec

__all__ = [
    "FORMATS",
    "FormatError",
    "Provider",
    "ToolResult",
    "convert_prompt",
    "convert_tool_output",
    "convert_tool_outputs",
    "convert_tool_response",
    "convert_tools",
]

Provider = Literal["openai", "openai-chat", "anthropic", "google", "google-json", "openrouter", "mcp"]
"""The name of a format."""


@dataclass(frozen=True, slots=True)
class _Format:
    tool: Callable[[ToolSpec], dict[str, Any]]
    prompt: Callable[[Sequence[TextBlock | ImageBlock]], list[dict[str, Any]]]
    results: Callable[[Sequence[ToolResult]], list[dict[str, Any]]]


_FORMATS: dict[str, _Format] = {
    "openai": _Format(openai.response_tool, openai.response_prompt, openai.response_results),
    "openai-chat": _Format(openai.chat_tool, openai.chat_prompt, openai.chat_results),
    "anthropic": _Format(anthropic.tool, anthropic.prompt, anthropic.results),
    "google": _Format(google.tool, google.prompt, google.results),
    "google-json": _Format(google.json_tool, google.prompt, google.results),
    "openrouter": _Format(openrouter.tool, openrouter.prompt, openrouter.results),
    "mcp": _Format(mcp.tool, mcp.prompt, mcp.results),
}
FORMATS: tuple[str, ...] = tuple(_FORMATS)
"""The names of the formats."""


def convert_tools(tools: Sequence[ToolSpec], format: Provider | str) -> list[dict[str, Any]]:
    """The tools as the provider takes them, in the same order. Raises FormatError for what it would refuse."""
    convert = _named(format).tool
    return [convert(spec) for spec in tools]


@overload
def convert_tool_response(res: Mapping[str, Any], format: None = None) -> list[ToolSpec]: ...
@overload
def convert_tool_response(res: Mapping[str, Any], format: Provider | str) -> list[dict[str, Any]]: ...
def convert_tool_response(
    res: Mapping[str, Any], format: Provider | str | None = None
) -> list[ToolSpec] | list[dict[str, Any]]:
    """The tools of a server's answer to `/tools` or `/task_tools`, as `ToolSpec`s or in a provider's format."""
    specs = [
        ToolSpec(name=one["name"], description=one.get("description") or "", input_schema=one.get("input_schema"))
        for one in res["tools"]
    ]
    return specs if format is None else convert_tools(specs, format)


def convert_prompt(blocks: Sequence[TextBlock | ImageBlock], format: Provider | str) -> list[dict[str, Any]]:
    """The prompt as the provider's messages of the user: empty text is left out, images are kept.

    One message (in `mcp` one for each block), and none where all text is empty.
    """
    return _named(format).prompt(blocks)


def convert_tool_output(
    output: ToolOutput | str,
    format: Provider | str,
    *,
    call_id: str | None = None,
    name: str | None = None,
    is_error: bool = False,
) -> list[dict[str, Any]]:
    """The result of one call as the provider's messages: what comes after the model's message with the call.

    call_id: the id of the call, which all but `google` and `mcp` need. name: the tool's name, which `google` needs.
    is_error: the call failed; `output` may then be the error's text. The reward is not told.
    """
    return convert_tool_outputs([ToolResult(output, call_id, name, is_error)], format)


def convert_tool_outputs(results: Sequence[ToolResult], format: Provider | str) -> list[dict[str, Any]]:
    """The results of calls that the model made in one message, as the provider's messages.

    Convert these together: some providers want all results in one message, or before anything else.
    """
    return _named(format).results(results)


def _named(format: str) -> _Format:
    try:
        return _FORMATS[format]
    except (KeyError, TypeError):
        raise FormatError(f"Invalid format: {format!r}; there are {', '.join(FORMATS)}") from None
