"""What a class holds for all of its instances: where two sessions would see each other."""

from __future__ import annotations

import copy
from typing import Any

__all__ = ["ClassState"]

_CHANGEABLE = (list, dict, set, bytearray)


class ClassState:
    """What of an author's classes can be changed, as it was when this was made."""

    def __init__(self, cls: type[Any]) -> None:
        self._cls = cls
        self._texts = {name: repr(value) for name, value in _held(cls).items()}
        self._kept = {name: (value, kept) for name, value in _held(cls).items() if (kept := _copied(value)) is not None}

    def changed(self) -> list[str]:
        """The names of what is not as it was."""
        return [name for name, value in _held(self._cls).items() if self._texts.get(name) != repr(value)]

    def restore(self) -> bool:
        """Make it what it was, in place. Whether all of it is."""
        for value, kept in self._kept.values():
            fresh = copy.deepcopy(kept)
            if isinstance(value, (list, bytearray)):
                value[:] = fresh
            else:
                value.clear()
                value.update(fresh)
        return not self.changed()


def _held(cls: type[Any]) -> dict[str, Any]:
    held: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.partition(".")[0] not in ("builtins", "abc", "typing", "ors", "openenv", "pydantic"):
            held |= {name: value for name, value in vars(base).items() if isinstance(value, _CHANGEABLE)}
    return {name: value for name, value in held.items() if not name.startswith("__")}


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # it holds what cannot be copied, a connection for instance
        return None
