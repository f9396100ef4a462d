"""What a class holds for all of its instances: where two sessions would see each other."""

from __future__ import annotations

from typing import Any

__all__ = ["class_state"]


def class_state(cls: type[Any]) -> dict[str, str]:
    """What of a class can be changed, as text; of the author's own classes only."""
    held: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.partition(".")[0] not in ("builtins", "abc", "typing", "ors", "openenv", "pydantic"):
            held |= {name: value for name, value in vars(base).items() if isinstance(value, _CHANGEABLE)}
    return {name: repr(value) for name, value in held.items() if not name.startswith("__")}


_CHANGEABLE = (list, dict, set, bytearray)
