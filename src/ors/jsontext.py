"""Strict JSON in, strict JSON out.

What comes from the network is parsed once, strictly: duplicate keys, NaN, numbers no float can hold, lone surrogates,
nesting deeper than 200 levels and bytes that are not UTF-8 are refused with their position. What goes out is compact,
is not ASCII-escaped, and never holds a NaN: a value that cannot be JSON is an error that names the path to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any

import jiter

__all__ = ["JSONTextError", "JSONValueError", "dump", "load"]

# A float reaches 1e309 only with an exponent of three digits, or with 210 digits before one of two; all else skips the
# walk. All searches are linear, whatever the body holds; two that begin with a letter take a third of one with either.
_LONG_EXPONENT = re.compile(rb"e\+?[0-9]{3}")
_LONG_UPPER_EXPONENT = re.compile(rb"E\+?[0-9]{3}")
_LONG_NUMBER = re.compile(rb"(?:\A|[^0-9])[0-9]{210}")
_POSITION = re.compile(r"line (\d+) column (\d+)$")
_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


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
    may_overflow = (
        _LONG_EXPONENT.search(body)
        or _LONG_UPPER_EXPONENT.search(body)
        or (len(body) >= 210 and _LONG_NUMBER.search(body))
    )
    if may_overflow and (path := _find_non_finite(value)) is not None:
        raise JSONTextError(f"the number at {path} is too large for a 64-bit float")
    return value


def dump(value: Any) -> bytes:
    """Write `value` as compact UTF-8 JSON. Raises JSONValueError naming the path of what cannot be written."""
    try:
        return _write(value).encode()
    except (TypeError, ValueError, RecursionError) as exc:
        raise JSONValueError(_blame(value) or str(exc)) from None


def _writer() -> Callable[[Any], str]:
    """What `json.dumps` does with our options, without making an encoder for each value: half of its time."""
    plain = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # another interpreter
        return plain.encode
    # without markers it keeps no state; what contains itself then ends in a RecursionError
    encode = make(None, plain.default, json.encoder.encode_basestring, None, ":", ",", False, False, False)
    return lambda value: "".join(encode(value, 0))


_write = _writer()


def _explain(body: bytes, message: str) -> str:
    if not body.strip():
        return "the body is empty; send a JSON value"
    if body.startswith(b"\xef\xbb\xbf"):
        return "the body starts with a byte order mark; send plain UTF-8 JSON"
    try:
        body.decode()
    except UnicodeDecodeError as exc:
        if body[exc.start] == 0xED and body[exc.start + 1 : exc.start + 2] >= b"\xa0":
            return f"the body is not UTF-8: an encoded lone surrogate at byte {exc.start}"
        return f"the body is not UTF-8: {exc.reason} {body[exc.start]:#04x} at byte {exc.start}"
    at = _offset(body, message)
    if body[at : at + 3] == b"NaN" or body[at : at + 8] == b"Infinity":
        return f"{message} (NaN and Infinity are not JSON)"
    if message.startswith("recursion limit"):
        return message.replace("recursion limit exceeded", "nested deeper than 200 levels")
    if message.startswith("number out of range"):
        return message.replace("number out of range", "a number of more than 4,300 digits")
    if _LONE_SURROGATE.search(body, max(0, at - 12), at + 1):
        return f"{message} (a lone surrogate is no character)"
    return message


def _offset(body: bytes, message: str) -> int:
    """Where in the body an error of the parser points."""
    if (found := _POSITION.search(message)) is None:
        return 0
    line, column = int(found[1]), int(found[2])
    start = 0
    for _ in range(line - 1):
        start = body.find(b"\n", start) + 1
    return start + max(column - 1, 0)


# Where a value stands in another: (where the container stands, key or index). Links, since the text of every path in a
# deep value would cost the square of its depth.
_Place = tuple[Any, str | int] | None


def _path(place: _Place) -> str:
    parts: list[str] = []
    while place is not None:
        place, part = place
        parts.append(f"[{part}]" if isinstance(part, int) else f".{part}")
    path = "$" + "".join(reversed(parts))
    return path if len(path) <= 300 else f"{path[:150]}…{path[-150:]}"


def _find_non_finite(value: Any) -> str | None:
    """The path of a NaN or infinite float of parsed JSON, walked without recursion."""
    if not isinstance(value, (dict, list)):
        return _path(None) if isinstance(value, float) and not isfinite(value) else None
    stack: list[tuple[_Place, Any]] = [(None, value)]
    while stack:
        place, item = stack.pop()
        children: Iterable[tuple[Any, Any]] = item.items() if type(item) is dict else enumerate(item)
        for key, child in children:
            # only containers are pushed: a body of millions of numbers is walked in the time it took to parse
            kind = type(child)
            if kind is float:
                if not isfinite(child):
                    return _path((place, _shown(key) if type(item) is dict else key))
            elif kind is dict or kind is list:
                stack.append(((place, _shown(key) if type(item) is dict else key), child))
    return None


def _blame(value: Any) -> str | None:
    """What in a Python value cannot be JSON, and where; walked without recursion, each container once."""
    seen: set[int] = set()
    stack: list[tuple[_Place, Any]] = [(None, value)]
    while stack:
        place, item = stack.pop()
        if isinstance(item, (dict, list, tuple)):
            if id(item) in seen:
                continue
            seen.add(id(item))
        if isinstance(item, dict):
            for key in item:
                if (fault := _blame_key(key)) is not None:
                    return f"the object at {_path(place)} has a key {fault}"
            stack.extend(((place, _shown(key)), child) for key, child in reversed(item.items()))
        elif isinstance(item, (list, tuple)):
            stack.extend(((place, i), item[i]) for i in reversed(range(len(item))))
        elif (fault := _blame_scalar(item)) is not None:
            return f"the value at {_path(place)} {fault}"
    return "the value is nested too deeply or contains itself" if seen else None


def _blame_key(key: Any) -> str | None:
    if not isinstance(key, (str, int, float, type(None))):
        return f"of type {type(key).__name__}, where JSON has text"
    fault = _blame_scalar(key)
    return None if fault is None else f"that {fault}"


def _blame_scalar(item: Any) -> str | None:
    if isinstance(item, str):
        return "holds a lone surrogate, which UTF-8 cannot encode" if _has_surrogate(item) else None
    if isinstance(item, float):
        return None if isfinite(item) else "is NaN or infinite, which JSON cannot hold"
    if isinstance(item, int):
        try:
            int.__repr__(item)
        except ValueError:
            return "is an integer of more than 4,300 digits, which JSON readers refuse"
        return None
    return None if item is None else f"is of type {type(item).__name__}, which JSON cannot hold"


def _shown(key: Any) -> str:
    """A key as it stands in a path: short, and text that can be encoded."""
    text = str(key)
    if len(text) > 60:
        text = text[:60] + "…"
    return text.encode("utf-8", "backslashreplace").decode()


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)
