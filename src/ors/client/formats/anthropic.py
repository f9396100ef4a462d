"""Anthropic's messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ors.client.formats.content import ToolResult, blocks_of, prepare
from ors.client.formats.names import check_name, check_parameters
from ors.client.formats.schema import object_root
from ors.types import ImageBlock, TextBlock, ToolSpec

__all__ = ["prompt", "results", "tool"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_PARAMETER = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_NO_TEXT = "The call failed without a message."
"""An error without content is refused."""


def tool(spec: ToolSpec) -> dict[str, Any]:
    """A tool of the client's own."""
    schema = object_root(spec.input_schema or {}, spec.name)
    return {
        "type": "custom",
        "name": check_name(spec.name, _NAME, "Anthropic"),
        "description": spec.description,
        "input_schema": check_parameters(schema, spec.name, _PARAMETER, "Anthropic"),
    }


def prompt(blocks: Sequence[TextBlock | ImageBlock]) -> list[dict[str, Any]]:
    """One user message, or none where there is nothing to say."""
    content = _content(blocks)
    return [{"role": "user", "content": content}] if content else []


def results(outcomes: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """One user message with every result, as answers to calls made together are to be given."""
    parts = []
    for outcome in outcomes:
        part: dict[str, Any] = {"type": "tool_result", "tool_use_id": outcome.require("call_id", "Anthropic")}
        content = _content(blocks_of(outcome))
        if outcome.is_error:
            part["is_error"] = True
            content = content or [{"type": "text", "text": _NO_TEXT}]
        if content:
            part["content"] = content
        parts.append(part)
    return [{"role": "user", "content": parts}] if parts else []


def _content(blocks: Sequence[TextBlock | ImageBlock]) -> list[dict[str, Any]]:
    return [
        {"type": "image", "source": {"type": "base64", "media_type": block.mimeType, "data": block.data}}
        if isinstance(block, ImageBlock)
        else {"type": "text", "text": block.text}
        for block in prepare(blocks, _IMAGES, "Anthropic", blanks=False)
    ]
