"""What tools and prompts return → the JSON that the core keeps, or a failure that names what is wrong with it.

The two shapes are written here field by field: that is several times faster than a general serializer, and nothing can
turn into null on the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from ors.core.failures import Failure, failure
from ors.core.ports import Document, ToolOutcome
from ors.errors import describe_errors
from ors.images import to_blocks
from ors.jsontext import JSONValueError, dump
from ors.types import BLOCKS, ImageBlock, TextBlock, ToolOutput

__all__ = ["prompt_document", "tool_outcome"]

_EMPTY = b'{"text":"","detail":null,"type":"text"}'
_encode = msgspec.json.encode


class _BadOutput(Exception):
    """What is wrong with an output."""


def tool_outcome(name: str, output: Any) -> ToolOutcome | Failure:
    """Write a tool's output. Its blocks are never empty; NaN and infinity are errors (spec: Output Guarantees)."""
    if not isinstance(output, ToolOutput):
        return failure("bad_output", f"'{name}' returned {type(output).__name__}; expected ToolOutput", ran="yes")
    reward, finished = output.reward, output.finished
    try:
        if reward is None:
            paid = b"null"
        elif isinstance(reward, (int, float)) and math.isfinite(reward):
            reward = float(reward)
            paid = _encode(reward)
        else:
            raise _BadOutput(f"the reward {reward!r:.100}; a reward is a finite number or None")
        if type(finished) is not bool:
            raise _BadOutput(f"finished={finished!r:.100}; it is True or False")
        body = b'{"blocks":[%s],"metadata":%s,"reward":%s,"finished":%s}' % (
            _blocks(output.blocks),
            b"null" if output.metadata is None else _object("metadata", output.metadata),
            paid,
            b"true" if finished else b"false",
        )
    except (_BadOutput, OverflowError) as exc:
        return failure("bad_output", f"'{name}' returned {exc}", ran="yes")
    return ToolOutcome(body, reward, finished)


def prompt_document(name: str, prompt: Any) -> Document | Failure:
    """Write a prompt: blocks, text, images, or a list of these."""
    try:
        return Document(b"[%s]" % _blocks(BLOCKS.validate_python(to_blocks(prompt))))
    except ValidationError as exc:
        wrong = f"{describe_errors(exc)}; return blocks, text or images"
    except (_BadOutput, ValueError, RecursionError, TypeError, OSError) as exc:
        wrong = f"{str(exc).splitlines()[0] if str(exc) else type(exc).__name__}"
    return failure("prompt_failed", f"{name} returned no prompt: {wrong}", ran="yes")


def _blocks(blocks: Any) -> bytes:
    if not isinstance(blocks, Sequence) or isinstance(blocks, (str, bytes)):
        raise _BadOutput(f"blocks of type {type(blocks).__name__}; they are a list")
    if not blocks:
        return _EMPTY
    return b",".join([_block(index, block) for index, block in enumerate(blocks)])


def _block(index: int, block: Any) -> bytes:
    detail = getattr(block, "detail", None)
    about = b"null" if detail is None else _object(f"blocks[{index}].detail", detail)
    if isinstance(block, TextBlock):
        return b'{"text":%s,"detail":%s,"type":"text"}' % (_text(index, "text", block.text), about)
    if isinstance(block, ImageBlock):
        data, mime = _text(index, "data", block.data), _text(index, "mimeType", block.mimeType)
        return b'{"data":%s,"mimeType":%s,"detail":%s,"type":"image"}' % (data, mime, about)
    raise _BadOutput(f"{type(block).__name__} at blocks[{index}]; a block is a TextBlock or an ImageBlock")


def _text(index: int, field: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise _BadOutput(f"{type(value).__name__} at blocks[{index}].{field}, which is text")
    try:
        return _encode(str(value))
    except UnicodeEncodeError:
        raise _BadOutput(f"a lone surrogate at blocks[{index}].{field}, which UTF-8 cannot encode") from None


def _object(path: str, value: Any) -> bytes:
    """A JSON object of the author's: what Python's own types do not cover is converted as pydantic would."""
    if not isinstance(value, dict):
        raise _BadOutput(f"{type(value).__name__} as {path}, which is an object")
    try:
        try:
            return dump(value)
        except JSONValueError:
            return dump(to_jsonable_python(value, inf_nan_mode="constants"))
    except (ValueError, RecursionError, TypeError) as exc:
        raise _BadOutput(f"{path} that is no JSON: {str(exc).splitlines()[0]}".replace("$", path)) from None
