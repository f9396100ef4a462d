"""OpenEnv over WebSockets: steps of many sessions, idle sockets, and the Task API where making one takes its time."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from cores import on_core
from failures import noting
from peers import clean_environ, peer_python
from servers import Running
from wire import Connection

HERE = Path(__file__).resolve().parent
IMPLEMENTATIONS = ("ors-kit", "openenv", "bare")
SESSIONS = (64, 1_000)
IDLE = 10_000
SLOW_S = 0.05
TASKS = 300


@dataclass(frozen=True)
class Steps:
    """What one run of the load counted."""

    rps: float
    p50_ms: float
    p99_ms: float


@dataclass
class StepCosts:
    """rounds: by implementation and number of sessions. idle_mib, idle_threads: by how much ten thousand idle sockets
    let a server grow. tasks: requests of the Task API in a second, one after another.
    """

    rounds: dict[str, dict[int, list[Steps]]] = field(default_factory=dict)
    idle_mib: float | None = None
    idle_threads: int = 0
    tasks: dict[str, float] = field(default_factory=dict)

    def middle(self, implementation: str, sessions: int, figure: str = "rps") -> float | None:
        """The median of a figure, None where it was not measured."""
        samples = self.rounds.get(implementation, {}).get(sessions)
        return median(getattr(sample, figure) for sample in samples) if samples else None


def measure_steps(rounds: int, seconds: float, quick: bool) -> StepCosts:
    """Everything, each sample on a server of its own; the implementations take turns."""
    costs = StepCosts()
    for sessions in SESSIONS:
        for _ in range(1 if quick else rounds):
            for name in IMPLEMENTATIONS:
                print(f"  steps of {sessions:,} sessions: {name}", flush=True)
                with noting(f"{name}: steps of {sessions} sessions"), steps_server(name) as server:
                    sample = _load(server, sessions, seconds)
                    costs.rounds.setdefault(name, {}).setdefault(sessions, []).append(sample)
    if not quick:
        print(f"  {IDLE:,} idle sockets: ors-kit", flush=True)
        with noting("ors-kit: idle sockets"), steps_server("ors-kit", "--any-thread") as server:
            costs.idle_mib, costs.idle_threads = asyncio.run(_idle(server))
    for name in ("ors-kit", "openenv"):
        print(f"  Task API of an environment that takes {SLOW_S * 1e3:.0f} ms to make: {name}", flush=True)
        with noting(f"{name}: Task API"), steps_server(name, "--slow", str(SLOW_S)) as server:
            costs.tasks[name] = asyncio.run(_tasks(server))
    return costs


@contextmanager
def steps_server(name: str, *arguments: str) -> Iterator[Running]:
    """A fresh server of `openenv_env.py`, on a core of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ours = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    python = peer_python("openenv") if name == "openenv" else Path(sys.executable)
    with tempfile.TemporaryDirectory(prefix="ors-bench-") as folder:
        log = Path(folder) / "server.log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [str(python), str(HERE / "openenv_env.py"), name, str(port), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env=clean_environ(**ours) if name != "openenv" else clean_environ(),
                preexec_fn=on_core(0),
            )
        server = Running(process, port, log)
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError(f"the server does not start: {server.log_tail()}") from None
                    time.sleep(0.05)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _load(server: Running, sessions: int, seconds: float) -> Steps:
    done = subprocess.run(
        [sys.executable, str(HERE / "steps_load.py"), str(server.port), str(sessions), str(seconds)],
        capture_output=True,
        text=True,
        timeout=120 + seconds,
        check=False,
        preexec_fn=on_core(1),
    )
    if done.returncode:
        raise RuntimeError(f"{done.stderr[-1500:]}\n{server.log_tail()}")
    counted = json.loads(done.stdout.splitlines()[-1])
    if counted["wrong"] or counted["lost"]:
        raise RuntimeError(f"{counted['wrong']} wrong answers, {counted['lost']} lost connections")
    return Steps(counted["rps"], counted["p50_ms"], counted["p99_ms"])


async def _idle(server: Running) -> tuple[float, int]:
    """By how many MiB and threads a server grows with sockets that have said nothing yet."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asked = (
        f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ).encode()
    limit = asyncio.Semaphore(64)
    writers: list[asyncio.StreamWriter] = []

    async def connect() -> None:
        async with limit:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(asked)
            await reader.readuntil(b"\r\n\r\n")
            writers.append(writer)

    await asyncio.gather(*(connect() for _ in range(50)))
    server.wait_until_idle()
    rss, threads = server.rss_kib(), server.threads()
    await asyncio.gather(*(connect() for _ in range(IDLE)))
    server.wait_until_idle()
    grown = (server.rss_kib() - rss) / 1024, server.threads() - threads
    for writer in writers:
        writer.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return grown


async def _tasks(server: Running) -> float:
    async with Connection(server.port) as connection:
        for _ in range(5):
            await _task(connection, 0)
        begun, count = time.perf_counter(), 0
        while count < TASKS and time.perf_counter() - begun < 5:
            await _task(connection, count)
            count += 1
        return count / (time.perf_counter() - begun)


async def _task(connection: Connection, index: int) -> None:
    answer = await connection.request("POST", "/sums/task", {"split": "train", "index": index})
    if answer.status != 200 or b"What is" not in answer.body:
        raise RuntimeError(f"/task answered {answer.status}: {answer.body[:300]!r}")
