"""The tasks of a split for asynchronous code; see `ors.client.sequence` for what a sequence is."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from ors.client.order import Cursor
from ors.client.paging import count, fetch
from ors.client.sequence import PAGE, Keeping, TaskView
from ors.client.tasks import Task

if TYPE_CHECKING:
    from ors.client.environment import AsyncEnvironment

__all__ = ["AsyncFilteredTasks", "AsyncTaskIterator", "AsyncTaskSequence"]


class AsyncTaskSequence(TaskView):
    """The tasks of a split: `len(tasks)`, `await tasks.get(i)`, `tasks[a:b]`, `async for task in tasks`."""

    @classmethod
    async def of(cls, env: AsyncEnvironment, split: str, page: int = PAGE) -> AsyncTaskSequence:
        """All tasks of a split, which is asked for its size once. They are fetched `page` at once."""
        return cls(env, split, await count(env, str(split)), page=page)

    def __getitem__(self, part: slice) -> AsyncTaskSequence:
        """A slice as a sequence of its own; a single task is `await tasks.get(number)`."""
        if not isinstance(part, slice):
            raise TypeError("a task of an asynchronous sequence is `await tasks.get(number)`")
        return self._cut(part)

    async def get(self, number: int) -> Task:
        """The task at a place. Raises IndexError."""
        return (await fetch(self.env, self.split, [self._index(number)]))[0]

    def __aiter__(self) -> AsyncTaskIterator:
        """Each task, the next page being fetched while one is used."""
        return AsyncTaskIterator(self)

    def filter(self, test: Callable[[Task], object]) -> AsyncFilteredTasks:
        """Only the tasks of which `test` says yes. How many these are is not known before."""
        return AsyncFilteredTasks(self, Keeping((test,)))

    async def to_list(self) -> list[Task]:
        """All tasks."""
        return [task async for task in self]


class AsyncTaskIterator(AsyncIterator[Task]):
    """Goes through tasks. `cursor` says how far it has come; `AsyncTaskSequence.resume` goes on from there."""

    def __init__(self, tasks: AsyncTaskSequence) -> None:
        self.cursor: Cursor = tasks._start()
        self._env = tasks.env
        self._split = tasks.split
        self._pages = tasks._pages()
        self._ready: deque[tuple[Task, Cursor]] = deque()
        self._coming: tuple[asyncio.Task[list[Task]], list[Cursor]] | None = None
        self._begun = False

    async def __anext__(self) -> Task:
        while not self._ready:
            if not self._begun:
                self._begun = True
                self._ask()
            if self._coming is None:
                raise StopAsyncIteration
            fetched, cursors = self._coming
            # whoever is cancelled here may go on later: the page still comes
            tasks = await asyncio.shield(fetched)
            self._ready.extend(zip(tasks, cursors, strict=True))
            self._ask()
        task, self.cursor = self._ready.popleft()
        return task

    def _ask(self) -> None:
        self._coming = None
        page = next(self._pages, None)
        if page is not None:
            work = fetch(self._env, self._split, [index for index, _ in page])
            self._coming = asyncio.get_running_loop().create_task(work), [cursor for _, cursor in page]

    def __del__(self) -> None:
        if self._coming is not None and not self._coming[0].get_loop().is_closed():
            self._coming[0].cancel()


class AsyncFilteredTasks:
    """The tasks that pass a filter. Their number is known when all have been looked at."""

    def __init__(self, tasks: AsyncTaskSequence, keeping: Keeping) -> None:
        self._tasks = tasks
        self._keeping = keeping

    async def __aiter__(self) -> AsyncIterator[Task]:
        """Each task that passes."""
        passed = 0
        if self._keeping.limit == 0:
            return
        async for task in self._tasks:
            if self._keeping.passes(task):
                yield task
                passed += 1
                if passed == self._keeping.limit:
                    return

    def filter(self, test: Callable[[Task], object]) -> AsyncFilteredTasks:
        """Only those of which this test says yes as well."""
        return AsyncFilteredTasks(self._tasks, self._keeping.also(test))

    def take(self, count: int) -> AsyncFilteredTasks:
        """The first `count` that pass."""
        return AsyncFilteredTasks(self._tasks, self._keeping.at_most(count))

    def __getattr__(self, name: str) -> Any:
        if name in ("shuffle", "shard", "skip", "repeat", "resume", "at_epoch"):
            raise ValueError(f"{name} first, then filter: how many tasks pass is not known before")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
