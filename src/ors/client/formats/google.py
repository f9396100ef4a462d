"""Google's function declarations and contents: `google` with its own schemas, `google-json` with JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ors.client.formats.content import ToolResult, blocks_of, prepare
from ors.client.formats.google_schema import narrow
from ors.client.formats.inline import inline
from ors.client.formats.names import check_name, check_parameters
from ors.client.formats.schema import object_root
from ors.types import ImageBlock, TextBlock, ToolSpec

__all__ = ["json_tool", "prompt", "results", "tool"]

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_PARAMETER = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")
_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})


def tool(spec: ToolSpec) -> dict[str, Any]:
    """A function declaration whose `parameters` are null where there are none: an empty object is refused."""
    parameters, description = None, spec.description
    if spec.input_schema:
        schema = inline(object_root(spec.input_schema, spec.name), spec.name)
        parameters = narrow(check_parameters(schema, spec.name, _PARAMETER, "Google"))
        if "properties" not in parameters:
            # what is known of its input besides its properties has no other place
            description = "\n\n".join(filter(None, (description, parameters.get("description"))))
            parameters = None
    return {"name": check_name(spec.name, _NAME, "Google"), "description": description, "parameters": parameters}


def json_tool(spec: ToolSpec) -> dict[str, Any]:
    """A function declaration with a JSON Schema, which newer versions of the service take whole."""
    return {
        "name": check_name(spec.name, _NAME, "Google"),
        "description": spec.description,
        "parametersJsonSchema": object_root(spec.input_schema or {}, spec.name),
    }


def prompt(blocks: Sequence[TextBlock | ImageBlock]) -> list[dict[str, Any]]:
    """One content of the user, or none where there is nothing to say."""
    parts = [
        _inline(block) if isinstance(block, ImageBlock) else {"text": block.text}
        for block in prepare(blocks, _IMAGES, "Google")
    ]
    return [{"role": "user", "parts": parts}] if parts else []


def results(outcomes: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """One content of the user: the function responses, then their images.

    A response holds JSON, and only the newest models take images inside it, so it says where each image stood.
    """
    responses: list[dict[str, Any]] = []
    images: list[dict[str, Any]] = []
    for outcome in outcomes:
        name = outcome.require("name", "Google")
        texts = []
        for block in prepare(blocks_of(outcome), _IMAGES, "Google"):
            if isinstance(block, ImageBlock):
                number = len(images) // 2 + 1
                texts.append(f"[Image {number}: after this]")
                images += [{"text": f"Image {number}, from the result of {name}:"}, _inline(block)]
            else:
                texts.append(block.text)
        said = texts if len(texts) > 1 else "".join(texts)
        response = {"id": outcome.call_id} if outcome.call_id else {}
        responses.append(
            {
                "functionResponse": {
                    **response,
                    "name": name,
                    "response": {"error" if outcome.is_error else "output": said},
                }
            }
        )
    return [{"role": "user", "parts": [*responses, *images]}] if responses else []


def _inline(block: ImageBlock) -> dict[str, Any]:
    return {"inlineData": {"mimeType": block.mimeType, "data": block.data}}
