"""`/task_range`: 100 tasks out of a split of a million."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from failures import noting
from servers import OPENREWARD, ORS_SDK, OURS, Running, Subject, serving
from wire import Connection

ROWS = 1_000_000
WANTED = {"split": "test", "start": ROWS // 2, "stop": ROWS // 2 + 100}
LISTED, INDEXED = "list_tasks", "num_tasks and get_task"
BUDGET_S = 20.0
"""What one server may take for its requests; the slow ones get fewer."""


@dataclass(frozen=True)
class RangeCost:
    """The time of a warm request, and the memory of the server."""

    ms: list[float]
    rss_start_kib: int
    rss_end_kib: int

    @property
    def median_ms(self) -> float:
        return median(self.ms)


def measure_tasks(subjects: Iterable[Subject], quick: bool) -> dict[str, dict[str, RangeCost]]:
    """Both ways of writing an environment: with the split as a list, and with tasks by index."""
    wanted = (OURS, ORS_SDK) if quick else (OURS, ORS_SDK, OPENREWARD)
    order = [subject for subject in subjects if subject in wanted]
    results: dict[str, dict[str, RangeCost]] = {subject.name: {} for subject in order}
    for way in (INDEXED, LISTED):
        servers = {}
        for subject in order:
            print(f"  /task_range by {way}: {subject.name}", flush=True)
            arguments = ["--tasks", str(ROWS), *(["--indexed"] if way == INDEXED else [])]
            with noting(f"{subject.name}: /task_range by {way}"), serving(subject, *arguments) as server:
                servers[subject.name] = asyncio.run(_ask(server, 5 if quick else 25))
        for name, cost in servers.items():
            results[name][way] = cost
    return results


async def _ask(server: Running, requests: int) -> RangeCost:
    start = server.rss_kib()
    times: list[float] = []
    async with Connection(server.port) as connection:
        await _once(connection)
        deadline = time.perf_counter() + BUDGET_S
        while len(times) < requests and (len(times) < 3 or time.perf_counter() < deadline):
            times.append(await _once(connection))
    return RangeCost(times, start, server.rss_kib())


async def _once(connection: Connection) -> float:
    begun = time.perf_counter()
    answer = await connection.request("POST", "/mathenv/task_range", WANTED)
    taken = (time.perf_counter() - begun) * 1e3
    tasks = answer.json()["tasks"] if answer.status == 200 else None
    if not tasks or len(tasks) != 100 or tasks[0]["answer"] != str(ROWS):
        raise RuntimeError(f"/task_range answered {answer.status}: {answer.body[:300]!r}")
    return taken
