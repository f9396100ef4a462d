"""What clients send over a socket of a session, and what is wrong with what is no such message.

Whole messages are read by `read`, quickly. What it refuses is read again as Python reads JSON, which takes more, and
explained in the words that OpenEnv's servers have for it.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ors.faces.bodies import errors_of
from ors.faces.openenv.answers import error_frame

__all__ = ["JSONRPCRequest", "Message", "ResetRequest", "StepRequest", "read"]

Id = str | int | float | None


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """A message. timeout_s: how long what it asks for may take; id: what its answer is to carry."""

    type: Literal["reset", "step", "state", "close", "mcp"]
    data: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    timeout_s: float | None = None
    id: Id = None


_decoder = msgspec.json.Decoder(Message)


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid")

    timeout_s: Annotated[float, Field(gt=0)] | None = None
    id: Id = None


class _Reset(_Message):
    type: Literal["reset"]
    data: dict[str, Any] = {}


class _Step(_Message):
    type: Literal["step"]
    data: dict[str, Any]


class _State(_Message):
    type: Literal["state"]


class _Close(_Message):
    type: Literal["close"]


class _MCP(_Message):
    type: Literal["mcp"]
    data: dict[str, Any]


_MODELS: dict[Any, type[_Message]] = {"reset": _Reset, "step": _Step, "state": _State, "close": _Close, "mcp": _MCP}
_WITH_DATA = frozenset(["step", "mcp"])
_WITHOUT = frozenset(["state", "close"])


def read(text: str | bytes) -> Message | bytes:
    """The message, or the frame that says what is wrong with it."""
    if isinstance(text, bytes):
        return error_frame("Invalid JSON: a message is text, and this is binary", "INVALID_JSON")
    try:
        message = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _read_again(text)
    has_data = message.data is not msgspec.UNSET
    if message.type in (_WITHOUT if has_data else _WITH_DATA) or (
        message.timeout_s is not None and message.timeout_s <= 0
    ):
        return _read_again(text)
    return message


def _read_again(text: str) -> Message | bytes:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as exc:
        return error_frame(f"Invalid JSON: {exc}", "INVALID_JSON")
    if not isinstance(value, dict):
        return error_frame(
            f"Invalid JSON: a message is an object, and this is a {type(value).__name__}", "INVALID_JSON"
        )
    kind = value.get("type", "")
    model = _MODELS.get(kind) if isinstance(kind, str) else None
    if model is None:
        return error_frame(f"Unknown message type: {kind}", "UNKNOWN_TYPE")
    try:
        checked = model.model_validate(value)
    except ValidationError as exc:
        return error_frame("Invalid message", "VALIDATION_ERROR", {"errors": errors_of(exc, urls=True)})
    data = value.get("data", msgspec.UNSET)
    return Message(kind, data, checked.timeout_s, checked.id)


class ResetRequest(BaseModel):
    """The body of `/reset`: these, and whatever else the environment's `reset` takes."""

    model_config = ConfigDict(extra="allow")

    seed: Annotated[int, Field(ge=0)] | None = None
    episode_id: Annotated[str, Field(max_length=255)] | None = None


class StepRequest(BaseModel):
    """The body of `/step`: these, and whatever else the environment's `step` takes."""

    model_config = ConfigDict(extra="allow")

    action: dict[str, Any]
    timeout_s: Annotated[float, Field(gt=0)] | None = None
    request_id: Annotated[str, Field(max_length=255)] | None = None


class JSONRPCRequest(BaseModel):
    """A request of JSON-RPC 2.0."""

    model_config = ConfigDict(extra="forbid")

    jsonrpc: Literal["2.0"]
    method: str
    params: dict[str, Any] = {}
    id: str | int | None = None
