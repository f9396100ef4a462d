"""Tasks as an iterable data set of torch. Imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch.utils.data import IterableDataset, get_worker_info

from ors.client.tasks import Task

if TYPE_CHECKING:
    from ors.client.task_sequence import TaskSequence

__all__ = ["TorchTasks"]


class TorchTasks(IterableDataset):  # type: ignore[misc]
    """A sequence of tasks; each worker of a `DataLoader` goes through a part of it."""

    def __init__(self, tasks: TaskSequence) -> None:
        super().__init__()
        self.tasks = tasks

    def __iter__(self) -> Iterator[Task]:
        worker: Any = get_worker_info()
        return iter(self.tasks if worker is None else self.tasks.workers(worker.id, worker.num_workers))

    def __len__(self) -> int:
        return len(self.tasks)
