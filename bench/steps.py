"""OpenEnv: steps over WebSocket, idle sockets, the Task API of a slow constructor, the largest batch that is served."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from cores import on_core
from failures import noting
from servers import BARE, Running, Subject, serving
from wire import Connection

OURS = Subject("ors-kit", "ors-kit")
OPENENV = Subject("openenv", "openenv")
LOAD = Path(__file__).resolve().parent / "steps_load.py"
PROGRAM = "openenv_env.py"
SIZES = (64, 1000)
IDLE = 10_000
BATCHES = (512, 1024, 2048, 4096, 8192, 12_000)
"""Descriptors and ports of one machine end above the last."""
SLOW_S = 0.05


@dataclass(frozen=True)
class StepRun:
    """One run of sessions that step as fast as they are answered."""

    per_s: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class IdleSockets:
    """Sockets that nothing was sent on yet."""

    sockets: int
    growth_mib: float
    threads: int


@dataclass
class Steps:
    """What was found of OpenEnv's protocol."""

    runs: dict[str, dict[int, list[StepRun]]] = field(default_factory=dict)
    idle: dict[str, IdleSockets] = field(default_factory=dict)
    tasks_per_s: dict[str, float] = field(default_factory=dict)
    batches: dict[str, dict[int, float]] = field(default_factory=dict)
    """The share of a batch that was served, by its size."""

    def middle(self, subject: str, sessions: int, metric: str) -> float | None:
        """The median of a figure over the rounds."""
        runs = self.runs.get(subject, {}).get(sessions)
        return float(median(getattr(run, metric) for run in runs)) if runs else None

    def largest(self, subject: str) -> int | None:
        """The largest batch of which 95 % was served."""
        served = [size for size, share in self.batches.get(subject, {}).items() if share >= 0.95]
        return max(served) if served else None


def measure_steps(rounds: int, seconds: float, quick: bool) -> Steps:
    """Every measure, on a fresh server each."""
    found = Steps()
    for turn in range(rounds):
        for subject in (OURS, BARE, OPENENV):
            print(f"  steps, round {turn + 1} of {rounds}: {subject.name}", flush=True)
            for size in SIZES:
                with noting(f"{subject.name}: steps of {size} sessions"), serving(subject, program=PROGRAM) as server:
                    told = _load(server, size, str(seconds))
                    run = StepRun(told["rps"], told["p50_ms"], told["p99_ms"])
                    found.runs.setdefault(subject.name, {}).setdefault(size, []).append(run)
    for subject in (OURS, BARE, OPENENV):
        count = IDLE // 10 if quick else IDLE
        with noting(f"{subject.name}: idle sockets"), serving(subject, program=PROGRAM) as server:
            found.idle[subject.name] = _idle(server, count)
    for subject in (OURS, OPENENV):
        with noting(f"{subject.name}: Task API"), serving(subject, "--slow", str(SLOW_S), program=PROGRAM) as server:
            found.tasks_per_s[subject.name] = asyncio.run(_tasks(server, min(seconds, 5.0)))
    if not quick:
        for subject in (OURS, OPENENV):
            for size in BATCHES:
                with noting(f"{subject.name}: a batch of {size}"), serving(subject, program=PROGRAM) as server:
                    print(f"  a batch of {size}: {subject.name}", flush=True)
                    share = float(_load(server, size, "batch")["ok"]) / size
                    found.batches.setdefault(subject.name, {})[size] = share
                    if share < 0.95:
                        break
    return found


def _load(server: Running, sessions: int, what: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(LOAD), str(server.port), str(sessions), what],
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=on_core(1),
    )
    if done.returncode:
        raise RuntimeError(f"the load failed: {done.stderr[-800:]}; the server's log ends in: {server.log_tail()}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if told.get("wrong") or told.get("lost"):
        raise RuntimeError(f"steps went wrong: {told}")
    return told


def _idle(server: Running, count: int) -> IdleSockets:
    server.wait_until_idle()
    before, threads = server.rss_kib(), server.threads()
    holder = subprocess.Popen(
        [sys.executable, str(LOAD), str(server.port), str(count), "idle"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=on_core(1),
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    try:
        line = holder.stdout.readline()
        if "connected" not in line:
            raise RuntimeError(f"the sockets were not opened: {line}")
        server.wait_until_idle()
        return IdleSockets(count, (server.rss_kib() - before) / 1024, server.threads() - threads)
    finally:
        holder.stdin.close()
        holder.wait(30)


async def _tasks(server: Running, seconds: float, at_once: int = 16) -> float:
    """Requests of the Task API in a second, `at_once` at a time."""
    done, over = 0, time.monotonic() + seconds

    async def ask() -> None:
        nonlocal done
        body = {"split": "train", "index": 7}
        async with Connection(server.port) as connection:
            while time.monotonic() < over:
                answer = await connection.request("POST", "/sums/task", body)
                if b"7+7" not in answer.body:
                    raise RuntimeError(f"another task: {answer.body!r}")
                done += 1

    await asyncio.gather(*(ask() for _ in range(at_once)))
    return done / seconds


def as_tables(found: Steps) -> Iterator[str]:
    """The figures as Markdown."""
    if found.runs:
        yield "| server | sessions | steps/s | p50 ms | p99 ms |"
        yield "| --- | --- | --- | --- | --- |"
        for name, sizes in found.runs.items():
            for size in sizes:
                figures = [found.middle(name, size, metric) or 0.0 for metric in ("per_s", "p50_ms", "p99_ms")]
                yield f"| {name} | {size:,} | {figures[0]:,.0f} | {figures[1]:.2f} | {figures[2]:.2f} |"
        yield ""
    if found.idle:
        yield "| server | idle sockets | memory, MiB | threads |"
        yield "| --- | --- | --- | --- |"
        for name, idle in found.idle.items():
            yield f"| {name} | {idle.sockets:,} | {idle.growth_mib:.0f} | {idle.threads} |"
        yield ""
    if found.tasks_per_s:
        yield "| server | Task API, constructor of 50 ms, 16 at once: requests/s |"
        yield "| --- | --- |"
        yield from (f"| {name} | {per_s:,.0f} |" for name, per_s in found.tasks_per_s.items())
        yield ""
    if found.batches:
        yield "| server | sessions at once: connect, reset, one step of 1 s | served |"
        yield "| --- | --- | --- |"
        for name, shares in found.batches.items():
            yield from (f"| {name} | {size:,} | {share:.1%} |" for size, share in shares.items())
        yield ""
