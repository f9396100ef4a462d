"""Names that are imported when they are first used, and names of what is not there yet."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any


def lazy(
    module: str, home: str, names: Iterable[str], later: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module whose `names` are those of another; `later`: those that are not there."""
    known, missing = frozenset(names), frozenset(later)

    def get(name: str) -> Any:
        if name in known:
            value = getattr(importlib.import_module(home), name)
        elif name in missing:
            value = absent(f"{module}.{name}")
        else:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        setattr(sys.modules[module], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[module]), *known, *missing})

    return get, listed


def absent(path: str) -> type:
    """A class that can be named and inherited from, and says when it is used that there is nothing behind it yet."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{path} is not part of ORS Kit yet; the openenv package has it")

    return type(path.rpartition(".")[2], (), {"__init__": refuse, "__module__": path.rpartition(".")[0]})
