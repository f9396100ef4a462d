"""The tasks of a split for synchronous code; see `ors.client.sequence` for what a sequence is."""

from __future__ import annotations

import concurrent.futures
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, overload

from ors.client import tables
from ors.client.order import Cursor
from ors.client.paging import count, fetch
from ors.client.portal import portal
from ors.client.sequence import PAGE, Keeping, TaskView
from ors.client.tasks import Task

if TYPE_CHECKING:
    from ors.client.environment import AsyncEnvironment

__all__ = ["FilteredTasks", "TaskIterator", "TaskSequence"]


class TaskSequence(TaskView):
    """The tasks of a split: `len(tasks)`, `tasks[i]`, `tasks[a:b]`, `for task in tasks`.

    It is a data set as `torch.utils.data.DataLoader` takes them; `torch_dataset()` makes an iterable one.
    """

    @classmethod
    def of(cls, env: AsyncEnvironment, split: str, page: int = PAGE) -> TaskSequence:
        """All tasks of a split, which is asked for its size once. They are fetched `page` at once."""
        return cls(env, split, portal().run(count(env, str(split))), page=page)

    @overload
    def __getitem__(self, number: int) -> Task: ...
    @overload
    def __getitem__(self, number: slice) -> TaskSequence: ...
    def __getitem__(self, number: int | slice) -> Task | TaskSequence:
        """A task, or a slice as a sequence of its own. Raises IndexError."""
        if isinstance(number, slice):
            return self._cut(number)
        return portal().run(fetch(self.env, self.split, [self._index(number)]))[0]

    def __getitems__(self, numbers: list[int]) -> list[Task]:
        """Many at once: what `DataLoader` asks a data set for where it can."""
        return portal().run(fetch(self.env, self.split, [self._index(number) for number in numbers]))

    def __iter__(self) -> TaskIterator:
        """Each task, the next page being fetched while one is used."""
        return TaskIterator(self)

    def filter(self, test: Callable[[Task], object]) -> FilteredTasks:
        """Only the tasks of which `test` says yes. How many these are is not known before."""
        return FilteredTasks(self, Keeping((test,)))

    def to_list(self) -> list[Task]:
        """All tasks."""
        return list(self)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` with a row for each task."""
        return tables.to_arrow(self)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row for each task."""
        return tables.to_pandas(self)

    def to_polars(self) -> Any:
        """A `polars.DataFrame` with a row for each task."""
        return tables.to_polars(self)

    def to_dataset(self) -> Any:
        """A Hugging Face `datasets.Dataset` with a row for each task."""
        return tables.to_dataset(self)

    def torch_dataset(self) -> Any:
        """A `torch.utils.data.IterableDataset`; workers of a `DataLoader` divide the tasks among themselves."""
        try:
            from ors.client.torch_data import TorchTasks
        except ImportError as exc:
            raise ImportError("torch_dataset() needs the package torch") from exc
        return TorchTasks(self)


class TaskIterator(Iterator[Task]):
    """Goes through tasks. `cursor` says how far it has come; `TaskSequence.resume` goes on from there."""

    def __init__(self, tasks: TaskSequence) -> None:
        self.cursor: Cursor = tasks._start()
        self._env = tasks.env
        self._split = tasks.split
        self._pages = tasks._pages()
        self._ready: deque[tuple[Task, Cursor]] = deque()
        self._coming: tuple[concurrent.futures.Future[list[Task]], list[Cursor]] | None = None
        self._begun = False

    def __next__(self) -> Task:
        while not self._ready:
            if not self._begun:
                self._begun = True
                self._ask()
            if self._coming is None:
                raise StopIteration
            (future, cursors), self._coming = self._coming, None
            try:
                tasks = future.result()
            except BaseException:
                future.cancel()
                raise
            self._ready.extend(zip(tasks, cursors, strict=True))
            self._ask()
        task, self.cursor = self._ready.popleft()
        return task

    def _ask(self) -> None:
        page = next(self._pages, None)
        if page is not None:
            work = fetch(self._env, self._split, [index for index, _ in page])
            self._coming = portal().submit(work), [cursor for _, cursor in page]

    def __del__(self) -> None:
        if self._coming is not None:
            self._coming[0].cancel()


class FilteredTasks:
    """The tasks that pass a filter. Their number is known when all have been looked at."""

    def __init__(self, tasks: TaskSequence, keeping: Keeping) -> None:
        self._tasks = tasks
        self._keeping = keeping

    def __iter__(self) -> FilteredIterator:
        """Each task that passes."""
        return FilteredIterator(iter(self._tasks), self._keeping)

    def filter(self, test: Callable[[Task], object]) -> FilteredTasks:
        """Only those of which this test says yes as well."""
        return FilteredTasks(self._tasks, self._keeping.also(test))

    def take(self, count: int) -> FilteredTasks:
        """The first `count` that pass."""
        return FilteredTasks(self._tasks, self._keeping.at_most(count))

    def __getattr__(self, name: str) -> Any:
        if name in ("shuffle", "shard", "skip", "repeat", "resume", "at_epoch"):
            raise ValueError(f"{name} first, then filter: how many tasks pass is not known before")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class FilteredIterator(Iterator[Task]):
    """Goes through the tasks that pass. `cursor` counts those that did not as well."""

    def __init__(self, tasks: TaskIterator, keeping: Keeping) -> None:
        self._tasks = tasks
        self._keeping = keeping
        self._passed = 0

    @property
    def cursor(self) -> Cursor:
        """How far it has come in the tasks themselves."""
        return self._tasks.cursor

    def __next__(self) -> Task:
        if self._keeping.limit is not None and self._passed >= self._keeping.limit:
            raise StopIteration
        for task in self._tasks:
            if self._keeping.passes(task):
                self._passed += 1
                return task
        raise StopIteration
