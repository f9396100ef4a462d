"""Load from wrk, on a core of its own, and what it cost the server."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from disturbance import CALM, children_s, core_busy_s
from servers import Running, on_core
from wire import KEY, Connection, call_tool, open_session

SCRIPT = Path(__file__).resolve().parent / "call.lua"
HOW_TO_INSTALL = "wrk is needed: on Debian and Ubuntu `apt-get install wrk`, elsewhere see https://github.com/wg/wrk"


@dataclass(frozen=True)
class Sample:
    """What one run of wrk measured."""

    requests: int
    seconds: float
    rps: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    cpu_us: float
    """Processor time of the server for each request, in microseconds."""
    others: float
    """Share of the server's or of the load's core that other programs took meanwhile, whichever is more; or of the time
    that the machine stood still."""


def require_wrk() -> str:
    """The path of wrk. Raises SystemExit saying how to install it."""
    found = shutil.which("wrk")
    if found is None:
        raise SystemExit(HOW_TO_INSTALL)
    return found


class Load:
    """Tool calls on some sessions of a running server."""

    def __init__(self, server: Running, tool: str, *, sessions: int = 1, bare: bool = False) -> None:
        self.server = server
        self.tool = tool
        self.sids = [str(uuid.uuid4()) for _ in range(sessions)]
        self.answer_size = asyncio.run(self._open(bare))

    def warm_up(self, seconds: int, connections: int) -> None:
        """Load the server without measuring. Raises RuntimeError when calls are refused."""
        self._wrk(seconds, connections)

    def run(self, seconds: int, connections: int) -> Sample:
        """Load the server for some seconds. Raises RuntimeError unless every call was answered in full."""
        before = self.server.cpu_s(), children_s(), core_busy_s(0), core_busy_s(1)
        told = self._wrk(seconds, connections)
        after = self.server.cpu_s(), children_s(), core_busy_s(0), core_busy_s(1)
        cpu, load_cpu, busy, load_busy = (now - then for now, then in zip(after, before, strict=True))
        if not told["requests"]:
            raise RuntimeError(f"no call of {self.tool} was answered in {seconds} s, {connections} connections: {told}")
        # a tool that fails answers 200 as well, but in another length; at the end each connection may be in mid-answer
        expected = told["requests"] * self.answer_size
        if abs(told["bytes"] - expected) > 0.03 * expected + connections * self.answer_size:
            raise RuntimeError(f"{told['bytes']} bytes came instead of {expected}: not all calls succeeded")
        elapsed = told["duration_us"] / 1e6
        return Sample(
            requests=told["requests"],
            seconds=elapsed,
            rps=told["requests"] / elapsed,
            p50_ms=told["p50_us"] / 1e3,
            p99_ms=told["p99_us"] / 1e3,
            max_ms=told["max_us"] / 1e3,
            cpu_us=cpu * 1e6 / told["requests"],
            # a virtual machine that stood still makes the run longer than asked for, beyond what wrk itself overshoots
            others=max(busy - cpu, load_busy - load_cpu, elapsed - seconds - 0.2, 0.0) / elapsed,
        )

    def run_calmly(self, seconds: int, connections: int, attempts: int) -> Sample:
        """The first run that other programs did not disturb, or the least disturbed of them all."""
        best: Sample | None = None
        for _ in range(attempts):
            sample = self.run(seconds, connections)
            if best is None or sample.others < best.others:
                best = sample
            if best.others <= CALM:
                break
        assert best is not None
        return best

    async def _open(self, bare: bool) -> int:
        async with Connection(self.server.port) as connection:
            for sid in self.sids:
                if not bare:
                    await open_session(connection, sid, 1)
                answer = await call_tool(connection, sid, self.tool, {"answer": "2"})
                if b'"reward":1.0' not in answer.body:
                    raise RuntimeError(f"the tool did not grade the answer: {answer.body!r}")
            return answer.size

    def _wrk(self, seconds: int, connections: int) -> dict[str, int]:
        command = [require_wrk(), "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(SCRIPT)]
        done = subprocess.run(
            [*command, f"http://127.0.0.1:{self.server.port}/mathenv/call"],
            env={**os.environ, "SIDS": ",".join(self.sids), "TOOL": self.tool, "KEY": KEY},
            capture_output=True,
            text=True,
            preexec_fn=on_core(1),
        )
        if done.returncode:
            raise RuntimeError(f"wrk failed: {done.stderr or done.stdout}")
        told: dict[str, int] = json.loads(done.stdout.strip().splitlines()[-1])
        if told["refused"] or told["broken"]:
            raise RuntimeError(f"{told['refused']} calls were refused and {told['broken']} connections broke: {told}")
        return told
