"""What tools and prompts return → the JSON that the core keeps, or a failure that names what is wrong with it."""

from __future__ import annotations

import math
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from ors.core.failures import Failure, failure
from ors.core.ports import Document, ToolOutcome
from ors.errors import describe_errors
from ors.images import to_blocks
from ors.jsontext import JSONTextError, load
from ors.types import BLOCKS, TextBlock, ToolOutput

__all__ = ["prompt_document", "tool_outcome"]

_EMPTY = [TextBlock(text="")]


def tool_outcome(name: str, output: Any) -> ToolOutcome | Failure:
    """Write a tool's output. Its blocks are never empty; NaN and infinity are errors (spec: Output Guarantees)."""
    if not isinstance(output, ToolOutput):
        return failure("bad_output", f"'{name}' returned {type(output).__name__}; expected ToolOutput", ran="yes")
    reward = output.reward
    if reward is not None and not (isinstance(reward, (int, float)) and math.isfinite(reward)):
        return failure(
            "bad_output", f"'{name}' returned the reward {reward!r}; a reward is a finite number or None", ran="yes"
        )
    if not output.blocks:
        output = output.model_copy(update={"blocks": _EMPTY})
    try:
        body = ToolOutput.__pydantic_serializer__.to_json(output, warnings="error")
    except (PydanticSerializationError, ValueError, RecursionError, TypeError) as exc:
        return failure("bad_output", f"'{name}' returned an output that is no JSON: {_first_line(exc)}", ran="yes")
    if b"NaN" in body or b"Infinity" in body:
        # the words may stand in a text, so the strict parser decides
        try:
            load(body)
        except JSONTextError:
            where = _where_not_finite(output)
            return failure("bad_output", f"'{name}' returned NaN or an infinite number at {where}", ran="yes")
    return ToolOutcome(body, reward, bool(output.finished))


def prompt_document(name: str, prompt: Any) -> Document | Failure:
    """Write a prompt: blocks, text, images, or a list of these."""
    try:
        blocks = BLOCKS.validate_python(to_blocks(prompt))
        body = BLOCKS.dump_json(blocks or [TextBlock(text="")], warnings="error")
    except ValidationError as exc:
        words = f"{name} returned no prompt: {describe_errors(exc)}; return blocks, text or images"
        return failure("prompt_failed", words, ran="yes")
    except (PydanticSerializationError, ValueError, RecursionError, TypeError, OSError) as exc:
        return failure("prompt_failed", f"{name} returned no prompt: {_first_line(exc)}", ran="yes")
    return Document(body)


def _where_not_finite(output: ToolOutput) -> str:
    stack: list[tuple[str, Any]] = [("metadata", output.metadata)]
    stack += [(f"blocks[{i}].detail", block.detail) for i, block in enumerate(output.blocks)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, float) and not math.isfinite(value):
            return path
        if isinstance(value, dict):
            stack.extend((f"{path}.{key}", item) for key, item in value.items())
        elif isinstance(value, (list, tuple)):
            stack.extend((f"{path}[{i}]", item) for i, item in enumerate(value))
    return "metadata"


def _first_line(exc: BaseException) -> str:
    lines = str(exc).strip().splitlines()
    return lines[0] if lines else type(exc).__name__
