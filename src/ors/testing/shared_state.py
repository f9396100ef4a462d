"""What the instances of a class share: the plain data in its class attributes and in the variables of its modules.

It is put back before each episode that is compared with another. So a cache that fills is no difference, and what one
session leaves for the next is.
"""

from __future__ import annotations

import collections
import copy
import sys
import types
from typing import Any

from ors.testing.places import Own, Spot

__all__ = ["SharedState"]

_MOST = 20_000
_SCALARS = (str, bytes, int, float, complex, type(None))
_CONTAINERS = (list, dict, set, frozenset, tuple, collections.deque, bytearray)


class SharedState:
    """The plain data that is shared, as it was when this was made."""

    def __init__(self, own: Own) -> None:
        self._own = own
        self._kept: dict[tuple[Any, str], tuple[Any, Any]] = {}
        for holder, name, value in self._places():
            if _is_plain(value):
                self._kept[holder, name] = (value, copy.deepcopy(value))

    def _places(self) -> list[tuple[Any, str, Any]]:
        modules = {cls.__module__: sys.modules.get(cls.__module__) for cls in self._own.classes}
        found: list[tuple[Any, str, Any]] = []
        for holder in (*self._own.classes, *(module for module in modules.values() if module is not None)):
            for name, value in list(vars(holder).items()):
                if not name.startswith("__") and not name.startswith("_abc"):
                    found.append((holder, name, value))
        return found

    def restore(self) -> None:
        """Put everything back, in place where it is a container: others may hold it too."""
        for (holder, name), (value, kept) in self._kept.items():
            now = vars(holder).get(name)
            if now is not value:
                if _is_plain(now) or name not in vars(holder):
                    setattr(holder, name, value)
                else:
                    continue  # something that is no data: nobody can put that back
            if isinstance(value, (list, bytearray)):
                value[:] = copy.deepcopy(kept)
            elif isinstance(value, (dict, set)):
                value.clear()
                value.update(copy.deepcopy(kept))
            elif isinstance(value, collections.deque):
                value.clear()
                value.extend(copy.deepcopy(kept))

    def changed(self) -> list[tuple[str, Spot]]:
        """What is not as it was: its name, and where it is set."""
        found = []
        for (holder, name), (value, kept) in self._kept.items():
            now = vars(holder).get(name)
            if (now is not value and now != kept) or value != kept:
                if isinstance(holder, types.ModuleType):
                    found.append((name, self._own.of_global(holder.__name__, name)))
                else:
                    found.append((f"{holder.__name__}.{name}", self._own.of_attribute(holder, name)))
        return found


def _is_plain(value: Any) -> bool:
    left = [_MOST]

    def plain(one: Any) -> bool:
        left[0] -= 1
        if left[0] < 0:
            return False
        if isinstance(one, _SCALARS):
            return True
        if not isinstance(one, _CONTAINERS):
            return False
        if isinstance(one, dict):
            return all(plain(key) and plain(item) for key, item in one.items())
        return isinstance(one, bytearray) or all(plain(item) for item in one)

    try:
        return plain(value)
    except RecursionError:
        return False
