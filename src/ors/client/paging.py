"""Getting many tasks of a split with few requests, and the next ones while the last are used."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ors.client.tasks import Task
from ors.errors import ProtocolError, RequestRefused

if TYPE_CHECKING:
    from ors.client.environment import AsyncEnvironment

__all__ = ["ENDLESS", "count", "fetch"]

ENDLESS = 1 << 62
"""The size of a split that has no end, or whose end nobody knows."""

_AT_ONCE = 16
_SPARSE = 4
"""A range is asked for where at least one in so many of its tasks is wanted."""


async def count(env: AsyncEnvironment, split: str) -> int:
    """How many tasks a split has; ENDLESS where the server cannot say."""
    try:
        return await env.num_tasks(split)
    except RequestRefused as exc:
        if exc.status != 501:
            raise
        return ENDLESS


async def fetch(env: AsyncEnvironment, split: str, indices: Sequence[int]) -> list[Task]:
    """The tasks at these indices, in this order: neighbours in one request, the rest side by side."""
    wanted = sorted(set(indices))
    runs: list[list[int]] = []
    for index in wanted:
        run = runs[-1] if runs else None
        if run is not None and index - run[-1] <= _SPARSE and index - run[0] < _SPARSE * (len(run) + 1):
            run.append(index)
        else:
            runs.append([index])
    found: dict[int, Task] = {}
    gate = asyncio.Semaphore(_AT_ONCE)

    async def get(run: list[int]) -> None:
        async with gate:
            if len(run) == 1:
                found[run[0]] = await env.get_task(split, run[0])
                return
            first, last = run[0], run[-1]
            tasks = await env.get_task_range(split, first, last + 1)
        if len(tasks) != last + 1 - first:
            words = f"tasks {first} to {last} of {split!r} were asked for, and {len(tasks)} came"
            raise ProtocolError(f"{words}: does the split change while it is read?", kind="bad_answer")
        for index in run:
            found[index] = tasks[index - first]

    if len(runs) == 1:
        await get(runs[0])
    elif runs:
        async with asyncio.TaskGroup() as group:
            for run in runs:
                group.create_task(get(run))
    return [found[index] for index in indices]
