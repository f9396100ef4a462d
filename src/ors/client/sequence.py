"""The tasks of a split as a sequence: its length, its items and its slices; shuffled, shared out, gone through again.

Nothing is listed: an order is computed (`ors.client.order`), and tasks are asked for page by page, the next page while
the last is used. Every method answers with another sequence and leaves its own as it is. A sequence can be pickled.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from ors.client.order import Cursor, Order, Remainder, Shard
from ors.client.tasks import Task

if TYPE_CHECKING:
    from ors.client.environment import AsyncEnvironment

__all__ = ["PAGE", "Keeping", "TaskView"]

_FINITE = 1 << 50
PAGE = 100
"""How many tasks are asked for at once."""


class TaskView:
    """What the synchronous and the asynchronous sequence have in common: which tasks, in which order."""

    def __init__(self, env: AsyncEnvironment, split: str, total: int, *, page: int = PAGE) -> None:
        if page < 1:
            raise ValueError(f"page={page}; it is at least 1")
        self.env = env
        self.split = str(split)
        self._order = Order(total)
        self._shard = Shard()
        self._epoch = 0
        self._epochs: int | None = 1
        self._position = 0
        self._page = page

    def __repr__(self) -> str:
        share = f", shard {self._shard.rank} of {self._shard.world}" if self._shard.world > 1 else ""
        size = f"{len(self._order):,}" if len(self._order) < _FINITE else "an endless number of"
        return f"<{type(self).__name__}: {size} tasks of {self.split}{share}>"

    # Other sequences

    def shuffle(self, seed: int = 0) -> Self:
        """In an order that the seed determines, and another one in each epoch. It takes no memory."""
        self._finite("shuffle")
        return self._like(order=self._whole("shuffle").shuffled(seed), shard=Shard())

    def shard(self, rank: int, world: int, *, remainder: Remainder = "keep") -> Self:
        """The share of one of `world` processes, of every `world` tasks in a row the one at `rank`.

        remainder: what becomes of the last tasks when they do not come out even: "keep" gives some shards one task
        more, "drop" leaves them out, "pad" gives the other shards a task from the beginning once more.
        """
        order = self._whole("shard") if self._shard.world > 1 else self._order
        return self._like(order=order, shard=Shard(rank, world, remainder))

    def workers(self, part: int, parts: int) -> Self:
        """The part of one of several workers of this process: what is this shard's is divided among them."""
        return self._like(shard=self._shard.split(part, parts))

    def take(self, count: int) -> Self:
        """The first `count` tasks."""
        return self._cut(slice(0, max(count, 0)))

    def skip(self, count: int) -> Self:
        """All but the first `count` tasks."""
        return self._cut(slice(max(count, 0), None))

    def repeat(self, times: int | None = None) -> Self:
        """Again and again, `times` in all or without end; where it is shuffled, in another order in each epoch."""
        if times is not None and times < 0:
            raise ValueError(f"times={times}; it is at least 0, or None for no end")
        return self._like(epochs=times)

    def at_epoch(self, epoch: int) -> Self:
        """In the order of this epoch; the first is 0."""
        return self._like(epoch=epoch, position=0)

    def resume(self, cursor: Cursor | tuple[int | None, int, int]) -> Self:
        """From where a cursor says on. The number of shards may be another than when it was saved.

        Raises ValueError for a cursor that is of another order.
        """
        seed, epoch, position = cursor
        if seed != self._order.seed:
            raise ValueError(f"the cursor is of an order with seed {seed}, this one has {self._order.seed}")
        if not 0 <= position <= len(self._order):
            raise ValueError(f"the cursor stands at {position:,}; there are {len(self._order):,} tasks")
        if self._epochs is not None and not self._epoch <= epoch < max(self._epoch + self._epochs, 1):
            raise ValueError(f"the cursor is in epoch {epoch}; the last is {self._epoch + self._epochs - 1}")
        left = None if self._epochs is None else self._epochs - (epoch - self._epoch)
        return self._like(epoch=epoch, position=position, epochs=left)

    # What the two kinds are made of

    def __len__(self) -> int:
        if self._epochs is None or len(self._order) >= _FINITE:
            raise TypeError("an endless sequence has no length")
        if not self._epochs:
            return 0
        first, each = self._sizes()
        return first + each * (self._epochs - 1)

    def _sizes(self) -> tuple[int, int]:
        """How many tasks there are in what is left of the first epoch, and in each after it."""
        total = len(self._order)
        return self._shard.size(total - self._position), self._shard.size(total)

    def _index(self, number: int) -> int:
        """The index in the split of an item. Raises IndexError."""
        if number < 0:
            number += len(self)
        first, each = self._sizes()
        total = len(self._order)
        if number < 0 or self._epochs == 0 or (number >= first and self._epochs == 1):
            raise IndexError(f"there are {0 if self._epochs == 0 else first:,} tasks in this sequence of {self.split}")
        if number < first:
            place = (self._position + self._shard.rank + number * self._shard.world) % total
            return self._order.index(place, self._epoch)
        later, number = divmod(number - first, each) if each else (0, 0)
        if not each or (self._epochs is not None and later + 1 >= self._epochs):
            raise IndexError(f"there are {len(self):,} tasks in this sequence of {self.split}")
        return self._order.index(self._shard.place(number, total), self._epoch + 1 + later)

    def _walk(self) -> Iterator[tuple[int, Cursor]]:
        """Each index, and the place that is reached when its task has been used."""
        epoch, position, left = self._epoch, self._position, self._epochs
        seed = self._order.seed
        while left is None or left > 0:
            for index, reached in self._order.walk(self._shard, epoch, position):
                yield index, Cursor(seed, epoch, reached)
            if not self._shard.size(len(self._order)):
                return
            epoch, position = epoch + 1, 0
            left = None if left is None else left - 1

    def _pages(self) -> Iterator[list[tuple[int, Cursor]]]:
        walk = self._walk()
        while page := list(itertools.islice(walk, self._page)):
            yield page

    def _start(self) -> Cursor:
        return Cursor(self._order.seed, self._epoch, self._position)

    def _cut(self, part: slice) -> Self:
        return self._like(order=self._whole("slice").cut(part), shard=Shard())

    def _whole(self, what: str) -> Order:
        """The order with the shard in it, for steps that come after it."""
        if self._position or self._epochs != 1:
            raise ValueError(f"{what} first, then repeat and resume")
        return self._order.shared(self._shard)

    def _finite(self, what: str) -> None:
        if len(self._order) >= _FINITE:
            raise ValueError(f"{self.split} has no known end: take some of it first, then {what}")

    def _like(self, **changes: Any) -> Self:
        made = copy.copy(self)
        for name, value in changes.items():
            setattr(made, f"_{name}", value)
        return made


class Keeping:
    """Which tasks a filter lets pass, and how many at most."""

    __slots__ = ("limit", "tests")

    def __init__(self, tests: tuple[Callable[[Task], object], ...] = (), limit: int | None = None) -> None:
        self.tests = tests
        self.limit = limit

    def passes(self, task: Task) -> bool:
        """Whether all tests say yes."""
        return all(test(task) for test in self.tests)

    def also(self, test: Callable[[Task], object]) -> Keeping:
        """With one test more."""
        if self.limit is not None:
            raise ValueError("filter first, then take")
        return Keeping((*self.tests, test))

    def at_most(self, count: int) -> Keeping:
        """With a limit."""
        return Keeping(self.tests, count if self.limit is None else min(count, self.limit))
