"""The rewards of an episode, and the ways in which trainers make one number of them."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["Reduction", "Rewards"]

Reduction: TypeAlias = Literal["last", "sum", "max", "none"]
"""How the rewards of an episode become one: the last, the sum, the greatest, or the list as it is."""


class Rewards(list[float]):
    """The rewards of an episode in the order in which they came, without the calls that gave none."""

    def reduce(self, how: Reduction = "sum") -> float | list[float] | None:
        """One number, or None where there was no reward at all: that is not a reward of 0. `none`: a plain list."""
        if how == "none":
            return list(self)
        if how not in ("last", "sum", "max"):
            raise ValueError(f"a reduction is last, sum, max or none, not {how!r}")
        if not self:
            return None
        return self[-1] if how == "last" else sum(self) if how == "sum" else max(self)

    @property
    def last(self) -> float | None:
        """The last reward."""
        return self[-1] if self else None

    @property
    def sum(self) -> float | None:
        """The sum of the rewards."""
        return sum(self) if self else None

    @property
    def max(self) -> float | None:
        """The greatest reward."""
        return max(self) if self else None
