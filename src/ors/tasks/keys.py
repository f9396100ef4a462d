"""What identifies a task: the author's id, or a hash of what it says.

The hash is SHA-256 over canonical JSON (RFC 8785): keys sorted by their UTF-16 units, no blanks, numbers as ECMAScript
writes them. One thing differs: an integer past 2^53 keeps all its digits, since two tasks that differ there are two.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from ors.jsontext import JSONValueError, dump
from ors.tasks.values import jsonable

__all__ = ["canonical_json", "task_key"]

_EXACT = 1 << 53


def task_key(task: Any, id: str | Callable[[Any], Any] | None = None) -> str:
    """The key of a task: what `id` (the name of a field, or a function of the task) says, else 64 hex digits.

    Raises JSONValueError where the task has no JSON form or no such id.
    """
    if id is None:
        return hashlib.sha256(canonical_json(jsonable(task))).hexdigest()
    if callable(id):
        key = id(task)
    else:
        data = jsonable(task)
        if id not in data:
            raise JSONValueError(f"the task has no field {id!r}, which holds the ids")
        key = data[id]
    if isinstance(key, bool) or not isinstance(key, (str, int)) or key == "":
        raise JSONValueError(f"the id of a task is a text or an integer, not {key!r:.100}")
    return str(key)


def canonical_json(value: Any) -> bytes:
    """JSON values as RFC 8785 writes them. Raises JSONValueError for what is no JSON."""
    dump(value)  # says where what is wrong is
    return _canonical(value).encode()


def _canonical(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (bool, type(None))):
        return json.dumps(value)
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_canonical, value))}]"
    items = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
    return "{" + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{_canonical(item)}" for key, item in items) + "}"


def _number(value: int | float) -> str:
    """ECMAScript's Number::toString; its digits are those of Python's repr, laid out in another way."""
    if isinstance(value, int) and abs(value) > _EXACT:
        return str(value)
    number = float(value)
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    digits, _, exponent = f"{abs(number)!r}".partition("e")
    whole, _, fraction = digits.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)  # where the point stands, from the first digit of `digits` on
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{sign}{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"
