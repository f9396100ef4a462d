"""Tasks that a function makes, each when it is asked for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from typing import Any

from ors.tasks.declared import DeclaredSource, outside
from ors.tasks.either import either
from ors.tasks.source import Id

__all__ = ["Generated"]

_SEEDS = 1 << 30
"""So many seeds belong to each split: those of the first four fit 32 bits, which is what numpy's generators take."""


class Generated(DeclaredSource[int | None]):
    """`{split: how many tasks it has}`, None where there is no end, and a function that makes one.

    A function with one parameter gets a seed: splits get seeds that no other split has, `k * 2^30 + index` for the
    k-th split, from 0 on. A function with two gets the split and the index. It must make the same task
    every time, and may be asynchronous.
    """

    def __init__(
        self,
        where: Mapping[str, int | None],
        make: Callable[..., Any],
        *,
        id: Id = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(where, id=id, types=types)
        self._make = make
        self._by_seed = _takes(make) == 1
        self._first = {split: number * _SEEDS for number, split in enumerate(where)}
        for split, count in where.items():
            if isinstance(count, bool) or not (count is None or (isinstance(count, int) and count >= 0)):
                raise ValueError(f"split {split!r} has {count!r} tasks; say a number, or None where there is no end")
            if self._by_seed and count is not None and count > _SEEDS:
                raise ValueError(
                    f"split {split!r} has {count} tasks; of those made from seeds, a split has 2^30 at most"
                )

    def count(self, split: str) -> int | None:
        """How many tasks a split has; None where there is no end."""
        return self.where(split)

    def get(self, split: str, index: int) -> Any:
        """The task that the function makes; something to await where it is asynchronous."""
        count = self.where(split)
        most = _SEEDS if count is None and self._by_seed else count
        if index < 0 or (most is not None and index >= most):
            raise outside(split, index, most)
        return self._make(self._first[split] + index) if self._by_seed else self._make(split, index)

    @either
    def range(self, split: str, start: int, stop: int) -> Generator[Any, Any, Any]:
        """The tasks from `start` to before `stop`. An IndexError of the function is no end."""
        count = self.where(split)
        most = _SEEDS if count is None and self._by_seed else count
        found: list[Any] = []
        for index in range(start, stop if most is None else min(stop, most)):
            found.append((yield self.get(split, index)))
        return found


def _takes(make: Callable[..., Any]) -> int:
    """How many arguments a function takes: 1 or 2. Raises TypeError for others."""
    for number in (2, 1):
        try:
            inspect.signature(make).bind(*range(number))
        except (TypeError, ValueError):  # the latter for some that are written in C
            continue
        required = [p for p in inspect.signature(make).parameters.values() if p.default is p.empty and p.kind in (0, 1)]
        if number == 2 and len(required) == 1:  # a seed, and an option of the author's own
            continue
        return number
    raise TypeError(f"{getattr(make, '__name__', make)} takes (split, index) or (seed)")
