"""Bodies as OpenEnv's servers read them: what is wrong is a list under `detail`, as clients of FastAPI know it.

It never repeats the input.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ors.faces.http import Handler, Reply, Request, json_reply
from ors.jsontext import dump

__all__ = ["InvalidBodyError", "errors_of", "invalid_reply", "read_body", "read_text", "telling"]

M = TypeVar("M", bound=BaseModel)


class InvalidBodyError(Exception):
    """A body is not what its route takes. errors: each fault."""

    def __init__(self, errors: list[dict[str, Any]]) -> None:
        super().__init__("the body is not valid")
        self.errors = errors


def telling(handler: Callable[[Request], Coroutine[Any, Any, Reply | None]] | Handler) -> Handler:
    """A handler that answers what its body is not."""

    async def handle(request: Request) -> Reply | None:
        try:
            return await handler(request)
        except InvalidBodyError as exc:
            return invalid_reply(exc.errors)

    return handle


def invalid_reply(errors: list[dict[str, Any]]) -> Reply:
    """The answer that lists what is wrong with an input."""
    return json_reply(dump({"detail": errors, "kind": "invalid_request", "retryable": False}), 422)


def errors_of(exc: ValidationError, *before: str, urls: bool = False) -> list[dict[str, Any]]:
    """The faults of an input, without the input; `before`: where it stands itself. urls: of pages about the faults."""
    found: list[dict[str, Any]] = json.loads(exc.json(include_input=False, include_url=urls))
    for error in found:
        error["loc"] = [*before, *error["loc"]]
    return found


async def read_body(request: Request, model: type[M], *, optional: bool = False) -> M:
    """The body as a model; an optional one that is missing is an empty object. Raises InvalidBodyError."""
    text = await request.body()
    if not text.strip():
        if not optional:
            raise InvalidBodyError([{"type": "missing", "loc": ["body"], "msg": "Field required"}])
        text = b"{}"
    value = read_text(text)
    if value is None and optional:
        value = {}
    try:
        return model.model_validate(value, from_attributes=True)  # so FastAPI reads one
    except ValidationError as exc:
        raise InvalidBodyError(errors_of(exc, "body")) from None


def read_text(text: bytes | str) -> Any:
    """The value of a JSON text, as leniently as Python reads it. Raises InvalidBodyError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        at = getattr(exc, "pos", 0)
        why = getattr(exc, "msg", None) or str(exc)
        fault = {"type": "json_invalid", "loc": ["body", at], "msg": "JSON decode error", "ctx": {"error": why}}
        raise InvalidBodyError([fault]) from None
