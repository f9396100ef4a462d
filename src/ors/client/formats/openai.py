"""OpenAI's Responses (`openai`) and chat completions (`openai-chat`), and the latter as OpenRouter takes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ors.client.formats.content import ToolResult, blocks_of, data_url, prepare
from ors.client.formats.names import check_name
from ors.client.formats.schema import Schema, map_subschemas, object_root
from ors.types import ImageBlock, TextBlock, ToolSpec

__all__ = ["chat_prompt", "chat_results", "chat_tool", "response_prompt", "response_results", "response_tool"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})

Message = dict[str, Any]


def response_tool(spec: ToolSpec) -> Message:
    """A function tool of the Responses.

    `strict` is false: left out it means true there, and then every parameter counts as required and defaults are gone.
    """
    return {
        "type": "function",
        "name": check_name(spec.name, _NAME, "OpenAI"),
        "description": spec.description,
        "parameters": _parameters(spec) if spec.input_schema else None,
        "strict": False,
    }


def chat_tool(spec: ToolSpec, provider: str = "OpenAI") -> Message:
    """A function tool of chat completions."""
    return {
        "type": "function",
        "function": {
            "name": check_name(spec.name, _NAME, provider),
            "description": spec.description,
            "parameters": _parameters(spec),
        },
    }


def response_prompt(blocks: Sequence[TextBlock | ImageBlock]) -> list[Message]:
    """One user message, or none where there is nothing to say."""
    parts = _response_parts(prepare(blocks, _IMAGES, "OpenAI"))
    return [{"role": "user", "content": parts}] if parts else []


def response_results(results: Sequence[ToolResult]) -> list[Message]:
    """An item for each result; a single text is a string, all else is a list of parts, images included."""
    items = []
    for result in results:
        parts = _response_parts(prepare(blocks_of(result), _IMAGES, "OpenAI"))
        single = not parts or (len(parts) == 1 and parts[0]["type"] == "input_text")
        output = (parts[0]["text"] if parts else "") if single else parts
        items.append({"type": "function_call_output", "call_id": result.require("call_id", "OpenAI"), "output": output})
    return items


def chat_prompt(blocks: Sequence[TextBlock | ImageBlock], provider: str = "OpenAI") -> list[Message]:
    """One user message, or none where there is nothing to say; a single text is a string."""
    parts = _chat_parts(prepare(blocks, _IMAGES, provider))
    if not parts:
        return []
    single = len(parts) == 1 and parts[0]["type"] == "text"
    return [{"role": "user", "content": parts[0]["text"] if single else parts}]


def chat_results(results: Sequence[ToolResult], provider: str = "OpenAI", *, join: str | None = None) -> list[Message]:
    """A `tool` message for each result, then one user message with their images, which `tool` messages cannot hold.

    Where an image stood, the text says which image of the user message it is. Several texts are parts of their own, or
    joined with `join`.
    """
    messages: list[Message] = []
    images: list[Message] = []
    for result in results:
        call_id = result.require("call_id", provider)
        texts = []
        for block in prepare(blocks_of(result), _IMAGES, provider):
            if isinstance(block, ImageBlock):
                number = len(images) // 2 + 1
                texts.append(f"[Image {number}: in the next message]")
                images += _chat_parts([TextBlock(text=f"Image {number}, from the result of {call_id}:"), block])
            else:
                texts.append(block.text)
        content: Any = texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]
        if not texts or join is not None:
            content = (join or "").join(texts)
        messages.append({"role": "tool", "tool_call_id": call_id, "content": content})
    return [*messages, {"role": "user", "content": images}] if images else messages


def _parameters(spec: ToolSpec) -> Schema:
    schema: Schema = _with_items(object_root(spec.input_schema or {}, spec.name), "")
    return schema


def _with_items(schema: Any, _where: str) -> Any:
    # an array without `items` is refused, also one that has `prefixItems`
    if not isinstance(schema, dict):
        return schema
    schema = map_subschemas(schema, _with_items)
    kinds = schema.get("type")
    if (kinds == "array" or (isinstance(kinds, list) and "array" in kinds)) and "items" not in schema:
        schema["items"] = {}
    return schema


def _response_parts(blocks: Sequence[TextBlock | ImageBlock]) -> list[Message]:
    return [
        {"type": "input_image", "image_url": data_url(block), "detail": "auto"}
        if isinstance(block, ImageBlock)
        else {"type": "input_text", "text": block.text}
        for block in blocks
    ]


def _chat_parts(blocks: Sequence[TextBlock | ImageBlock]) -> list[Message]:
    return [
        {"type": "image_url", "image_url": {"url": data_url(block)}}
        if isinstance(block, ImageBlock)
        else {"type": "text", "text": block.text}
        for block in blocks
    ]
