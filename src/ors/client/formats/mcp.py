"""The Model Context Protocol: tools, prompt messages and results of calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ors.client.formats.content import ToolResult, blocks_of, prepare
from ors.client.formats.schema import object_root
from ors.types import ImageBlock, TextBlock, ToolSpec

__all__ = ["prompt", "results", "tool"]


def tool(spec: ToolSpec) -> dict[str, Any]:
    """A tool; its schema is plain JSON Schema with an object at the root, so nothing is taken from it."""
    return {
        "name": spec.name,
        "description": spec.description,
        "inputSchema": object_root(spec.input_schema or {}, spec.name, keep_unions=True),
    }


def prompt(blocks: Sequence[TextBlock | ImageBlock]) -> list[dict[str, Any]]:
    """A message for each block: a message holds one."""
    return [{"role": "user", "content": content} for content in _content(blocks)]


def results(outcomes: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """The result of each call; the protocol names the call around it."""
    return [{"content": _content(blocks_of(outcome)), "isError": outcome.is_error} for outcome in outcomes]


def _content(blocks: Sequence[TextBlock | ImageBlock]) -> list[dict[str, Any]]:
    return [
        {"type": "image", "data": block.data, "mimeType": block.mimeType}
        if isinstance(block, ImageBlock)
        else {"type": "text", "text": block.text}
        for block in prepare(blocks, None, "MCP")
    ]
