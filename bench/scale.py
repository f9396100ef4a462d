"""A split of ten million rows in a file: opening it, one task of it, a hundred, and listing a million of them.

Peers read the whole file into memory; they get 100,000 rows, and a million in a whole run.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

import ors.tasks
from cores import on_core
from failures import noting
from peers import clean_environ
from rows import write_jsonl, write_parquet
from servers import HERE, OPENREWARD, ORS_SDK, OURS, Running, Subject, serving
from steps import OPENENV
from wire import KEY, Connection

BIG, LISTED, SMALL = "big", "listed", "small"
JSONL, PARQUET = "JSON Lines", "Parquet"
ALONE_S = 4.0
LIMIT_S = 60.0
"""What one request may take before it counts as one that does not end."""
BUDGET_S = 20.0

_OPEN = """
import sys, time, os, json
import ors.tasks
make = lambda: ors.tasks.Jsonl({"big": sys.argv[1]}, cache=sys.argv[2])
make()
times = []
for _ in range(1 + 5):
    begun = time.perf_counter()
    count = make().count("big")
    times.append(time.perf_counter() - begun)
assert count == int(sys.argv[3]), count
print(json.dumps({"build_s": times[0], "open_ms": [taken * 1e3 for taken in times[1:]]}))
"""


@dataclass(frozen=True)
class FileCost:
    """What it takes to open a file, without a server."""

    rows: int
    mib: float
    build_s: float
    open_ms: list[float]

    @property
    def mb_per_s(self) -> float:
        return self.mib * 1.048576 / self.build_s


@dataclass
class ScaleCost:
    """What requests cost at a server. What did not end in time is an empty list or None."""

    rows: int
    listed: int
    up_s: float
    rss_up_mib: float
    task_ms: list[float] = field(default_factory=list)
    small_ms: list[float] = field(default_factory=list)
    range_ms: list[float] = field(default_factory=list)
    rss_more_mib: float | None = None
    """Anonymous memory more than before the first request, after all but the listing."""
    listing_s: float | None = None
    rss_listed_mib: float | None = None
    """The same, after the listing."""
    alone_p99_ms: float | None = None
    beside_p99_ms: float | None = None
    """Calls of another session, while nothing else goes on, and while the split is listed."""


@dataclass
class Scale:
    """The file, and each server by name and kind of file."""

    file: FileCost | None = None
    servers: dict[str, ScaleCost] = field(default_factory=dict)


def measure_scale(subjects: Iterable[Subject], quick: bool) -> Scale:
    """Make the files, measure all servers on them, remove them."""
    found = Scale()
    rows, listed = (200_000, 100_000) if quick else (10_000_000, 1_000_000)
    theirs = [100_000] if quick else [100_000, listed]
    plan = {
        OURS: [(rows, listed)],
        **{peer: [(size, size) for size in theirs] for peer in (ORS_SDK, OPENREWARD, OPENENV)},
    }
    with tempfile.TemporaryDirectory(prefix="ors-bench-rows-") as name:
        folder = Path(name)
        with noting("opening a file"):
            found.file = _open_file(_made(folder, rows), folder / "cache", rows)
        for subject in [*subjects, OPENENV]:
            for big, long in plan.get(subject, []):
                with noting(f"{subject.name}: {big:,} rows of {JSONL}"):
                    _measure(found, subject, JSONL, big, long, folder)
        if OURS in subjects and hasattr(ors.tasks, "Parquet"):
            with noting(f"{OURS.name}: {rows:,} rows of {PARQUET}"):
                _measure(found, OURS, PARQUET, rows, listed, folder)
    return found


def _made(folder: Path, rows: int, suffix: str = ".jsonl") -> Path:
    path = folder / f"{rows}{suffix}"
    if not path.exists():
        print(f"  making a file of {rows:,} rows", flush=True)
        (write_jsonl if suffix == ".jsonl" else write_parquet)(path, rows)
    return path


def _open_file(path: Path, cache: Path, rows: int) -> FileCost:
    print(f"  building an index of {rows:,} rows, and opening it", flush=True)
    command = [sys.executable, "-c", _OPEN, str(path), str(cache), str(rows)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=clean_environ(), preexec_fn=on_core(0)
    )
    cost = json.loads(done.stdout)
    return FileCost(rows, path.stat().st_size / (1 << 20), cost["build_s"], cost["open_ms"])


def _measure(found: Scale, subject: Subject, form: str, rows: int, listed: int, folder: Path) -> None:
    suffix = ".jsonl" if form == JSONL else ".parquet"
    sizes = {BIG: rows, LISTED: listed, SMALL: 10}
    arguments = [f"{split}={_made(folder, size, suffix)}" for split, size in sizes.items()]
    if subject is OURS:
        arguments += ["--cache", str(folder / "cache")]
    name = f"{subject.name}, {rows:,} rows of {form}"
    print(f"  tasks of a file: {name}", flush=True)
    with serving(subject, *arguments, program="scale_env.py") as server:
        cost = found.servers[name] = ScaleCost(rows, listed, server.start_s, server.rss_kib() / 1024)
        asyncio.run(_ask(server, cost))
        _list(server, cost, calls=subject is not OPENENV)


async def _ask(server: Running, cost: ScaleCost) -> None:
    before = server.rss_kib("RssAnon")
    async with Connection(server.port) as connection:
        small = await _times(lambda at: _task(connection, SMALL, at % 10), 300)
        big = await _times(lambda at: _task(connection, BIG, at * 7919 % cost.rows), 300)
        # in turns, so that what slows the machine down slows both
        small += await _times(lambda at: _task(connection, SMALL, at % 10), 300)
        cost.small_ms, cost.task_ms = small, big
        span = cost.rows - 100
        cost.range_ms = await _times(lambda at: _range(connection, at * 104729 % span), 50)
    cost.rss_more_mib = (server.rss_kib("RssAnon") - before) / 1024


async def _times(ask: Callable[[int], Awaitable[None]], most: int) -> list[float]:
    """Milliseconds of up to so many requests, after one that is not counted."""
    times: list[float] = []
    deadline = time.perf_counter() + BUDGET_S
    for at in range(most + 1):
        begun = time.perf_counter()
        await asyncio.wait_for(ask(at), LIMIT_S)
        times.append((time.perf_counter() - begun) * 1e3)
        if len(times) > 3 and time.perf_counter() > deadline:
            break
    return times[1:]


async def _task(connection: Connection, split: str, index: int) -> None:
    answer = await connection.request("POST", "/mathenv/task", {"split": split, "index": index})
    if answer.status != 200 or answer.json()["task"]["answer"] != str(2 * index):
        raise RuntimeError(f"/task answered {answer.status}: {answer.body[:300]!r}")


async def _range(connection: Connection, start: int) -> None:
    wanted = {"split": BIG, "start": start, "stop": start + 100}
    answer = await connection.request("POST", "/mathenv/task_range", wanted)
    tasks = answer.json()["tasks"] if answer.status == 200 else []
    if [task["answer"] for task in tasks] != [str(2 * index) for index in range(start, start + 100)]:
        raise RuntimeError(f"/task_range answered {answer.status}: {answer.body[:300]!r}")


def _list(server: Running, cost: ScaleCost, *, calls: bool) -> None:
    """List a split while another session calls its tool, where the protocol has tools."""
    before = server.rss_kib("RssAnon")
    if not calls:
        begun = time.monotonic()
        _drain(server.port, cost.listed)
        cost.listing_s = time.monotonic() - begun
        cost.rss_listed_mib = (server.rss_kib("RssAnon") - before) / 1024
        return
    command = [sys.executable, str(HERE / "scale_calls.py"), str(server.port), SMALL]
    caller = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=on_core(1))
    assert caller.stdin is not None
    assert caller.stdout is not None
    try:
        if caller.stdout.readline() != "ready\n":
            raise RuntimeError("the calls beside the listing ended early")
        begun = time.monotonic()
        time.sleep(ALONE_S)
        listing = time.monotonic()
        _drain(server.port, cost.listed)
        ended = time.monotonic()
        cost.listing_s = ended - listing
        cost.rss_listed_mib = (server.rss_kib("RssAnon") - before) / 1024
        answer, _ = caller.communicate("stop\n", timeout=LIMIT_S)
    finally:
        caller.kill()
        caller.wait()
    taken = json.loads(answer.splitlines()[-1])
    cost.alone_p99_ms = _p99([took for at, took in taken if begun <= at < listing])
    cost.beside_p99_ms = _p99([took for at, took in taken if at < ended and at + took > listing])


def _p99(seconds: list[float]) -> float:
    return (quantiles(seconds, n=100)[-1] if len(seconds) > 1 else max(seconds)) * 1e3


def _drain(port: int, rows: int) -> None:
    """Read a whole listing without keeping it, and count its tasks."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    headers = {"X-API-Key": KEY, "Content-Type": "application/json"}
    connection.request("POST", "/mathenv/tasks", json.dumps({"split": LISTED}), headers)
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(f"/tasks answered {response.status}: {response.read()[:300]!r}")
    mark, found, kept = b'"task-', 0, b""
    while piece := response.read(1 << 18):
        piece = kept + piece
        found += piece.count(mark)
        kept = piece[-len(mark) + 1 :]
    connection.close()
    if found != rows:
        raise RuntimeError(f"/tasks listed {found:,} tasks of {rows:,}")
