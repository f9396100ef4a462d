"""OpenRouter: chat completions, where the text of a tool's result is one string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ors.client.formats.content import ToolResult
from ors.client.formats.openai import chat_prompt, chat_results, chat_tool
from ors.types import ImageBlock, TextBlock, ToolSpec

__all__ = ["prompt", "results", "tool"]


def tool(spec: ToolSpec) -> dict[str, Any]:
    """A function tool."""
    return chat_tool(spec, "OpenRouter")


def prompt(blocks: Sequence[TextBlock | ImageBlock]) -> list[dict[str, Any]]:
    """One user message, or none where there is nothing to say."""
    return chat_prompt(blocks, "OpenRouter")


def results(outcomes: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """A `tool` message for each result, then one user message with their images."""
    return chat_results(outcomes, "OpenRouter", join="\n")
