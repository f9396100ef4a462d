"""Many episodes, some at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from ors.client import AsyncORS
from ors.evaluation.agents import Agent
from ors.evaluation.jobs import Job
from ors.evaluation.playing import Limits, play
from ors.evaluation.results import Result

__all__ = ["run"]


async def run(
    client: AsyncORS,
    agents: Mapping[str, Agent],
    jobs: Iterable[Job],
    *,
    concurrency: int,
    ended: Callable[[Result], None],
    began: Callable[[Job], None] = lambda job: None,
    limits: Limits | None = None,
    secrets: Mapping[str, str] | None = None,
) -> None:
    """Play the episodes, at most `concurrency` at once, and call `ended` with what came of each, as they end.

    Where this is cancelled, the sessions that are open are ended before it returns.
    """
    left = iter(jobs)
    bounds = limits or Limits()

    async def work() -> None:
        # all take from one iterator: there may be more episodes than fit in memory
        for job in left:
            began(job)
            ended(await play(client, agents[job.key.agent], job, bounds, secrets))

    try:
        async with asyncio.TaskGroup() as workers:
            for _ in range(concurrency):
                workers.create_task(work())
    except BaseExceptionGroup as group:
        # `ended` raised: the first of these is the reason why the others did too
        raise group.exceptions[0] from group.exceptions[0].__cause__
