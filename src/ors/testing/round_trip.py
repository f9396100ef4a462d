"""Tasks as JSON: whether two are equal, and what is not the same after it was written and read again."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["canonical", "changed"]


def canonical(value: Any) -> str:
    """Text that is the same for equal values, JSON or not."""
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, default=_shown)
    except (TypeError, ValueError):
        return repr(value)


def _shown(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    return vars(value) if hasattr(value, "__dict__") else repr(value)


def changed(raw: Any, read: Any, path: str = "$") -> str | None:
    """The first place at which a task is another after it was JSON; tuples as lists are told of by nobody."""
    if isinstance(raw, dict) and isinstance(read, dict):
        for key, value in raw.items():
            if not isinstance(key, str):
                return f"the key {key!r} at {path} is of type {type(key).__name__}, and becomes text"
            if key in read and (found := changed(value, read[key], f"{path}.{key}")) is not None:
                return found
        return None
    if isinstance(raw, (list, tuple)) and isinstance(read, list) and len(raw) == len(read):
        return next(
            (found for i, one in enumerate(raw) if (found := changed(one, read[i], f"{path}[{i}]")) is not None), None
        )
    if raw is None or type(raw) in (str, int, float, bool):
        return None if raw == read else f"{path} was {raw!r:.40} and is {read!r:.40}"
    if path == "$" or isinstance(raw, (str, int, float)):
        return None  # a model, a dataclass, an enum: what becomes of it is what its author wrote
    return f"{path} is of type {type(raw).__name__}, and becomes {type(read).__name__}"
