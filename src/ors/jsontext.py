"""Strict JSON in, strict JSON out.

What comes from the network is parsed once, strictly: duplicate keys, NaN, numbers no float can hold, lone surrogates,
nesting deeper than 200 levels and bytes that are not UTF-8 are refused with their position. What goes out is compact,
is not ASCII-escaped, and never holds a NaN: a value that cannot be JSON is an error that names the path to it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import jiter

__all__ = ["JSONTextError", "JSONValueError", "dump", "load"]

# A float can only overflow where an exponent has three digits or a number has over 300; all else skips the walk.
_MAY_OVERFLOW = re.compile(rb"[0-9.][eE]\+?[0-9]{3}|[0-9]{309}")


class JSONTextError(ValueError):
    """The bytes are not JSON that this project accepts; the message says what is wrong and where."""


class JSONValueError(ValueError):
    """A Python value cannot be written as JSON; the message names the path inside the value."""


def load(body: bytes) -> Any:
    """Parse `body` strictly. Raises JSONTextError, whose message carries line and column."""
    try:
        value = jiter.from_json(body, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys")
    except ValueError as exc:
        raise JSONTextError(_explain(body, str(exc))) from None
    if _MAY_OVERFLOW.search(body) is not None and (path := _find_non_finite(value)) is not None:
        raise JSONTextError(f"the number at {path} is too large for a 64-bit float")
    return value


def dump(value: Any) -> bytes:
    """Write `value` as compact UTF-8 JSON. Raises JSONValueError naming the path of what cannot be written."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as exc:
        raise JSONValueError(_blame(value, exc)) from None


def _explain(body: bytes, message: str) -> str:
    if not body.strip():
        return "the body is empty; send a JSON value"
    if body.startswith(b"\xef\xbb\xbf"):
        return "the body starts with a byte order mark; send plain UTF-8 JSON"
    if message.startswith("expected value"):
        for word in (b"NaN", b"Infinity", b"-Infinity"):
            if word in body:
                message += " (NaN and Infinity are not JSON)"
                break
    if message.startswith("recursion limit"):
        message = message.replace("recursion limit exceeded", "nested deeper than 200 levels")
    return message


def _find_non_finite(value: Any) -> str | None:
    """The path of the first NaN or infinite float, walked without recursion."""
    stack: list[tuple[str, Any]] = [("$", value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                return path
        elif isinstance(item, Mapping):
            stack.extend((f"{path}.{key}", child) for key, child in item.items())
        elif isinstance(item, (list, tuple)):
            stack.extend((f"{path}[{i}]", child) for i, child in enumerate(item))
    return None


def _blame(value: Any, exc: Exception) -> str:
    if isinstance(exc, RecursionError) or "Circular" in str(exc):
        return "the value is nested too deeply or contains itself"
    if (path := _find_non_finite(value)) is not None:
        return f"the value at {path} is NaN or infinite, which JSON cannot hold"
    stack: list[tuple[str, Any]] = [("$", value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, dict):
            for key in item:
                if not isinstance(key, (str, int, float, bool, type(None))):
                    return f"the object at {path} has the key {key!r} of type {type(key).__name__}; JSON keys are text"
                if isinstance(key, str) and _has_surrogate(key):
                    return f"a key of the object at {path} holds a lone surrogate, which UTF-8 cannot encode"
            stack.extend((f"{path}.{key}", child) for key, child in item.items())
        elif isinstance(item, (list, tuple)):
            stack.extend((f"{path}[{i}]", child) for i, child in enumerate(item))
        elif isinstance(item, str):
            if _has_surrogate(item):
                return f"the text at {path} holds a lone surrogate, which UTF-8 cannot encode"
        elif not isinstance(item, (bool, int, float, type(None))):
            return f"the value at {path} is of type {type(item).__name__}, which JSON cannot hold"
    return str(exc)


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)
