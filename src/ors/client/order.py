"""Which task stands where: an order of the places of a split, made of steps that are computed and never listed.

Cuts and shuffles are steps of the order; a shard is the share that one of several processes takes of what they made.
Nothing here asks a server.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from ors.tasks.permutation import Permutation

__all__ = ["Cursor", "Order", "Remainder", "Shard"]

Remainder: TypeAlias = Literal["keep", "drop", "pad"]


class Cursor(NamedTuple):
    """How far a run has come: so many tasks, of all shards together, in this epoch of the order of this seed.

    It is a tuple of numbers (and None), so it can be saved as JSON and made again with `Cursor(*saved)`.
    """

    seed: int | None
    epoch: int
    position: int


@dataclasses.dataclass(frozen=True, slots=True)
class Shard:
    """The share of one of `world` processes: of every `world` tasks in a row, the one at `rank`.

    remainder: what becomes of the last tasks when they do not come out even: "keep" gives some shards one task more,
    "drop" leaves them out, "pad" gives the other shards a task from the beginning once more.
    """

    rank: int = 0
    world: int = 1
    remainder: Remainder = "keep"

    def __post_init__(self) -> None:
        if self.world < 1 or not 0 <= self.rank < self.world:
            raise ValueError(f"shard {self.rank} of {self.world}: the first is 0, the last is one below their number")
        if self.remainder not in ("keep", "drop", "pad"):
            raise ValueError(f"remainder={self.remainder!r}; it is 'keep', 'drop' or 'pad'")

    def size(self, total: int) -> int:
        """How many of `total` tasks are this shard's."""
        if self.remainder == "drop":
            return total // self.world
        if self.remainder == "pad":
            return -(-total // self.world)
        return (total - self.rank + self.world - 1) // self.world if total > self.rank else 0

    def place(self, number: int, total: int) -> int:
        """Where the task that is `number` in this shard stands among all."""
        return (self.rank + number * self.world) % total

    def split(self, part: int, parts: int) -> Shard:
        """A share of this shard, for `parts` workers of one process."""
        if self.remainder == "pad" and parts > 1:
            raise ValueError("a padded shard cannot be divided among workers: each would be padded anew")
        inner = Shard(part, parts)
        return Shard(self.rank + self.world * inner.rank, self.world * parts, self.remainder)


@dataclasses.dataclass(frozen=True, slots=True)
class _Cut:
    range: range

    def size(self, total: int) -> int:
        return len(self.range)

    def place(self, number: int, total: int, epoch: int) -> int:
        return self.range[number]


@dataclasses.dataclass(frozen=True, slots=True)
class _Shuffle:
    seed: int

    def size(self, total: int) -> int:
        return total

    def place(self, number: int, total: int, epoch: int) -> int:
        return _permutation(total, self.seed, epoch)[number]


@dataclasses.dataclass(frozen=True, slots=True)
class _Share:
    shard: Shard

    def size(self, total: int) -> int:
        return self.shard.size(total)

    def place(self, number: int, total: int, epoch: int) -> int:
        return self.shard.place(number, total)


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    """An order of the first `total` indices of a split: cuts, shuffles and shares, one after another."""

    total: int
    steps: tuple[_Cut | _Shuffle | _Share, ...] = ()

    def __len__(self) -> int:
        return self._sizes()[-1]

    @property
    def seed(self) -> int | None:
        """The seed of the last shuffle."""
        return next((step.seed for step in reversed(self.steps) if isinstance(step, _Shuffle)), None)

    def index(self, place: int, epoch: int = 0) -> int:
        """The index in the split of the task at a place. Each epoch has shuffles of its own."""
        sizes = self._sizes()
        for step, total in zip(reversed(self.steps), reversed(sizes[:-1]), strict=True):
            place = step.place(place, total, epoch)
        return place

    def cut(self, part: slice) -> Order:
        """A slice of it, by the rules of Python."""
        return self._with(_Cut(range(*part.indices(len(self)))))

    def shuffled(self, seed: int) -> Order:
        """The same in an order that a seed determines."""
        return self._with(_Shuffle(seed))

    def shared(self, shard: Shard) -> Order:
        """One shard of it as an order of its own."""
        return self._with(_Share(shard)) if shard.world > 1 else self

    def walk(self, shard: Shard, epoch: int, position: int) -> Iterator[tuple[int, int]]:
        """The indices of a shard from a position on, each with the position that is reached when it has been used."""
        total = len(self)
        left = total - position
        for number in range(shard.size(left)):
            place = position + shard.rank + number * shard.world
            yield self.index(place % total, epoch), min(position + (number + 1) * shard.world, total)

    def _with(self, step: _Cut | _Shuffle | _Share) -> Order:
        return Order(self.total, (*self.steps, step))

    def _sizes(self) -> list[int]:
        sizes = [self.total]
        for step in self.steps:
            sizes.append(step.size(sizes[-1]))
        return sizes


_recent: dict[tuple[int, int, int], Permutation] = {}


def _permutation(total: int, seed: int, epoch: int) -> Permutation:
    """Making one takes longer than looking up a place, and one is used many times in a row."""
    key = (total, seed, epoch)
    found = _recent.get(key)
    if found is None:
        if len(_recent) >= 16:
            _recent.clear()
        found = _recent[key] = Permutation(total, seed, epoch)
    return found
