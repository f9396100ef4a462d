"""Thousands of episodes with everything that goes wrong leave nothing behind in the server's process.

`ORS_SOAK_EPISODES=20000` plays the full size; by default it is moderate. What is counted is printed (`pytest -s`).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from .driver import Driver

EPISODES = int(os.environ.get("ORS_SOAK_EPISODES", "1500"))
PHASES = 3 if EPISODES < 5000 else 10
TESTS = Path(__file__).resolve().parents[1]
MEGABYTE = 1 << 20


class Server:
    """The server's process, and what is left in it."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "soak.environments"], cwd=TESTS, stdout=log, stderr=subprocess.STDOUT
            )
        self.url = ""
        deadline = time.monotonic() + 30
        while not self.url:
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            if found := re.search(r"http://127\.0\.0\.1:\d+", self.log.read_text()):
                self.url = found[0]
            time.sleep(0.02)

    def counts(self) -> dict[str, Any]:
        """What there is, as the server says and as its process does; on a connection that is closed afterwards."""
        with httpx.Client(base_url=self.url, timeout=30, headers={"Connection": "close"}) as client:
            return client.get("/ready").json() | client.get("/soak").json()  # type: ignore[no-any-return]

    def settled(self, before: dict[str, Any] | None, within_s: float = 60) -> dict[str, Any]:
        """The counts when everything has ended that must; the last ones when it has not in time."""
        deadline = time.monotonic() + within_s
        while True:
            counts = self.counts()
            if not left_behind(before or counts, counts) or time.monotonic() > deadline:
                return counts
            time.sleep(0.2)


def left_behind(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """What is there now and should not be."""
    nothing = {"sessions": 0, "calls": 0, "running": 0, "zombies": [], "kept": {}, "untorn": 0, "result_bytes": 0}
    left = {name: now[name] for name, empty in nothing.items() if now[name] != empty}
    for name in ("tasks", "author_tasks", "threads", "descriptors", "author_loops", "lanes"):
        if now[name] > before[name]:
            left[name] = f"{before[name]} → {now[name]}"
    return left


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
        made.process.wait()


@pytest.mark.timeout(60 + EPISODES / 5)
def test_nothing_is_left_behind(server: Server) -> None:
    driver = Driver(server.url)
    # everything has happened once before the first count: modules are imported, threads and pools have their size
    asyncio.run(driver.play(max(250, EPISODES // 10)))
    assert not driver.surprises, driver.surprises
    before = server.settled(None)
    assert not left_behind(before, before), left_behind(before, before)

    sizes = [before["memory"]]
    began = time.monotonic()
    playing = 0.0
    for _ in range(PHASES):
        started = time.monotonic()
        asyncio.run(driver.play(EPISODES // PHASES))
        playing += time.monotonic() - started
        after = server.settled(before)
        sizes.append(after["memory"])
        assert not left_behind(before, after), left_behind(before, after)
    print(f"\n{EPISODES} episodes in {playing:.0f} s ({EPISODES / playing:.0f}/s)")
    print(f"with what was waited for: {time.monotonic() - began:.0f} s")
    print("memory in MiB:", " → ".join(f"{size / MEGABYTE:.1f}" for size in sizes))
    print("played:", dict(sorted(driver.played.items())))
    print("before:", {name: before[name] for name in sorted(before)})
    print("after:", {name: after[name] for name in sorted(after)})

    assert not driver.surprises, driver.surprises
    assert set(driver.played) == {*Driver.KINDS, "loop_blocked"}, "a kind of episode was not played"
    # results and their calls are kept for a minute, so it grows at first; after that it goes up and down a little
    assert sizes[-1] - sizes[1] < 10 * MEGABYTE, sizes

    log = server.log.read_text()
    assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:3000]
    ended = [line for line in log.splitlines() if '"episode ended"' in line]
    assert len(ended) == after["ended"] == after["opened"]
    assert {json.loads(line)["level"].lower() for line in log.splitlines()} <= {"info", "warning", "error"}
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(30) == 0
