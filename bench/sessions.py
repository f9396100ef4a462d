"""Sessions: what an idle one holds, and a thousand that block at once."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from cores import on_core
from failures import noting
from servers import BARE, OPENREWARD, ORS_SDK, OURS, Running, Subject, serving
from wire import Connection, call_tool, open_session

IDLE = {OURS: 20_000, ORS_SDK: 2_000, OPENREWARD: 2_000}
BLOCKING = {OURS: 1_000, ORS_SDK: 16, OPENREWARD: 16}
"""How many sessions block for a second at once; the peers get what they can end in a bearable time."""
CLIENTS = 16
THREADS_GONE_S = 40.0
PROBE = Path(__file__).resolve().parent / "probe.py"


@dataclass(frozen=True)
class IdleCost:
    """What idle sessions hold, with no connection open."""

    sessions: int
    kib: float
    """Resident memory for each session."""
    kib_prompted: float | None
    """The same, when the prompt of each has been asked for as well; not in a quick run."""
    threads_before: int
    threads: int
    created_per_s: float


def measure_idle(subjects: Iterable[Subject], quick: bool) -> dict[str, IdleCost]:
    """Create sessions, close every connection, wait until the server has nothing left to do, look at its memory."""
    results = {}
    for subject in subjects:
        if subject not in IDLE or (quick and subject is not OURS):
            continue
        print(f"  {IDLE[subject]:,} idle sessions: {subject.name}", flush=True)
        with noting(f"{subject.name}: idle sessions"), serving(subject) as server:
            results[subject.name] = asyncio.run(_idle(server, IDLE[subject], quick))
    return results


async def _idle(server: Running, count: int, quick: bool) -> IdleCost:
    # the first sessions load what is loaded late, and start what threads there are
    await _spread(server.port, [f"first-{number}" for number in range(CLIENTS)], _create)
    server.wait_until_idle()
    rss, threads = server.rss_kib(), server.threads()
    sids = [str(uuid.uuid4()) for _ in range(count)]
    begun = time.perf_counter()
    await _spread(server.port, sids, _create)
    rate = count / (time.perf_counter() - begun)
    server.wait_until_idle()
    held = server.rss_kib() - rss
    prompted = None
    if not quick:
        await _spread(server.port, sids, _prompt)
        server.wait_until_idle()
        prompted = (server.rss_kib() - rss) / count
    threads_left = _threads_when_calm(server, threads)
    return IdleCost(count, held / count, prompted, threads, threads_left, rate)


def _threads_when_calm(server: Running, before: int) -> int:
    """How many threads there are once those that were hired for the rush have had time to go."""
    deadline = time.monotonic() + THREADS_GONE_S
    while server.threads() > before and time.monotonic() < deadline:
        time.sleep(0.5)
    return server.threads()


async def _create(connection: Connection, sid: str) -> None:
    await open_session(connection, sid, 1)


async def _prompt(connection: Connection, sid: str) -> None:
    answer = await connection.request("GET", "/mathenv/prompt", sid=sid)
    if answer.status != 200 or b"What is 1+1?" not in answer.body:
        raise RuntimeError(f"/prompt answered {answer.status}: {answer.body[:300]!r}")


async def _spread(port: int, sids: list[str], do: Callable[[Connection, str], Awaitable[None]]) -> None:
    async def work(share: list[str]) -> None:
        async with Connection(port) as connection:
            for sid in share:
                await do(connection, sid)

    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(work(sids[number::CLIENTS]))


@dataclass(frozen=True)
class BlockingCost:
    """Sessions that all call a tool which blocks its thread for a second."""

    sessions: int
    seconds: list[float]
    """From the first request sent to the last answer read, for each round."""
    health_ms: list[float]
    """The slowest answer of /health meanwhile, for each round."""


def measure_blocking(subjects: Iterable[Subject], rounds: int, quick: bool) -> dict[str, BlockingCost]:
    """All sessions at once, with another process asking for /health all the time."""
    results = {}
    for subject in subjects:
        if subject not in BLOCKING or subject is BARE or (quick and subject is not OURS):
            continue
        print(f"  {BLOCKING[subject]:,} sessions that block for a second: {subject.name}", flush=True)
        seconds, health = [], []
        for _ in range(rounds if subject is OURS and not quick else 1):
            with noting(f"{subject.name}: blocking sessions"), serving(subject) as server:
                took, slowest = asyncio.run(_block(server, BLOCKING[subject]))
                seconds.append(took)
                health.append(slowest)
        if seconds:
            results[subject.name] = BlockingCost(BLOCKING[subject], seconds, health)
    return results


async def _block(server: Running, count: int) -> tuple[float, float]:
    sids = [str(uuid.uuid4()) for _ in range(count)]
    await _spread(server.port, sids, _create)
    connections = [Connection(server.port) for _ in sids]
    for connection in connections:
        await connection.__aenter__()
    server.wait_until_idle()
    pipe = asyncio.subprocess.PIPE
    probe = await asyncio.create_subprocess_exec(
        sys.executable, str(PROBE), str(server.port), stdin=pipe, stdout=pipe, preexec_fn=on_core(1)
    )
    assert probe.stdout is not None
    try:
        await probe.stdout.readline()  # it has had its first answer
        begun = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for connection, sid in zip(connections, sids, strict=True):
                group.create_task(call_tool(connection, sid, "pause", {"seconds": 1.0}))
        ended = time.monotonic()
        out, _ = await asyncio.wait_for(probe.communicate(b"stop\n"), 120)
    finally:
        if probe.returncode is None:
            probe.kill()
            await probe.wait()
    for connection in connections:
        await connection.__aexit__()
    meanwhile = [taken for at, taken in json.loads(out) if at <= ended and at + taken >= begun]
    return ended - begun, max(meanwhile) * 1e3
