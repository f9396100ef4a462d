"""Tasks that are seeds, for environments that make every episode themselves and have no tasks of their own."""

from __future__ import annotations

__all__ = ["Seeds"]

_FIRST = {"train": 0, "test": 1 << 30}
_MOST = 1 << 30


class Seeds:
    """`{"seed": n}` for every n of a range; the ranges of the splits do not overlap, and all of them fit 32 bits.

    Each split begins at a seed of its own, so a split's tasks stay the same when another gets more or fewer.
    """

    def __init__(self, train: int = 1_000_000, test: int = 10_000) -> None:
        self._counts = {"train": train, "test": test}
        for split, count in self._counts.items():
            if not 0 <= count <= _MOST:
                raise ValueError(f"{split}={count}: a split has between 0 and {_MOST} seeds")

    def splits(self) -> list[str]:
        """The names of the splits, which are also their types."""
        return list(self._counts)

    def count(self, split: str) -> int:
        """How many tasks a split has."""
        return self._counts[split]

    def task(self, split: str, index: int) -> dict[str, int]:
        """The task at a place. Raises IndexError outside the split."""
        if not 0 <= index < self._counts[split]:
            raise IndexError(f"index {index} is outside split {split!r}, which has {self._counts[split]} tasks")
        return {"seed": _FIRST[split] + index}
