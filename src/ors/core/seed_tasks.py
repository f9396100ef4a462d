"""Seeds as the tasks of an offering that has none of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ors.core.failures import Failure, failure
from ors.core.ports import Document, RunWork, TaskQuery, TaskRef, Work
from ors.jsontext import dump
from ors.tasks import Seeds

__all__ = ["SeedTasks"]

_PIECE = 10_000


class SeedTasks:
    """The port `Tasks` over seeds. No author code runs; long lists are still written away from the event loop."""

    def __init__(self, seeds: Seeds | None = None) -> None:
        self._seeds = seeds or Seeds()

    async def query(self, query: TaskQuery, run: RunWork) -> Document | Failure:
        """Answer a question with JSON."""
        if query.kind == "splits":
            return Document(dump([{"name": name, "type": name} for name in self._seeds.splits()]))
        if (wrong := self._check(query.split)) is not None:
            return wrong
        if query.kind == "count":
            return Document(dump(self._seeds.count(query.split)))
        if query.kind == "get":
            task = await self.resolve(TaskRef(query.split, query.index), run)
            return task if isinstance(task, Failure) else Document(dump(task))
        wanted = range(*slice(query.start, query.stop).indices(self._seeds.count(query.split)))
        body = await run(Work(lambda: self._encode(query.split, wanted), label="task_range"))
        return body if isinstance(body, Failure) else Document(b"[%s]" % body)

    async def resolve(self, ref: TaskRef, run: RunWork) -> Any:
        """The task at a place, or a Failure."""
        if (wrong := self._check(ref.split)) is not None:
            return wrong
        try:
            return self._seeds.task(ref.split, ref.index)
        except IndexError as exc:
            return failure("invalid_index", f"Invalid index: {exc}")

    async def stream(self, split: str, run: RunWork) -> AsyncIterator[bytes | Failure]:
        """The JSON of every task, in pieces."""
        if (wrong := self._check(split)) is not None:
            yield wrong
            return
        before = b"["
        count = self._seeds.count(split)
        for start in range(0, count, _PIECE):
            wanted = range(start, min(start + _PIECE, count))
            piece = await run(Work(lambda wanted=wanted: self._encode(split, wanted), label="tasks"))  # type: ignore[misc]
            if isinstance(piece, Failure):
                yield piece
                return
            yield before + piece
            before = b","
        yield b"]" if count else b"[]"

    def _check(self, split: str) -> Failure | None:
        names = self._seeds.splits()
        if split in names:
            return None
        return failure("unknown_split", f"Invalid split '{split[:200]}'; the splits are {', '.join(names)}")

    def _encode(self, split: str, wanted: range) -> bytes:
        return b",".join([dump(self._seeds.task(split, index)) for index in wanted])
