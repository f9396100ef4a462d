"""The server of the soak: `python -m soak.environments`. Its environments do what their task says, well or badly.

Beside the server's own routes there is `/soak`, which counts what must not be left behind.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import threading
import time
from collections import Counter
from typing import Any

import psutil

from ors import Environment, Server, TextBlock, ToolOutput, terminal, tool
from ors.hosts.local import LocalHost

LEFT_BEHIND = ("Session", "Running", "Call", "EventStream", "ORSEpisode", "Worker", "Blocker")
LARGE = "large " * 60_000  # 360 KB: kept in a file


def said(text: Any, **more: Any) -> ToolOutput:
    """A result of one text."""
    return ToolOutput(blocks=[TextBlock(text=str(text))], **more)


class Worker(Environment):
    """Answers, waits, fails and hangs. `made` and `torn_down` count the instances of the whole process."""

    made = 0
    torn_down = 0
    lock = threading.Lock()

    @classmethod
    def list_splits(cls) -> Any:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [{"number": number} for number in range(100)]

    def __init__(self, task_spec: Any = {}, secrets: dict[str, str] = {}) -> None:  # noqa: B006 - never changed
        super().__init__(task_spec)
        if self.task_spec.get("fail") == "constructor":
            raise LookupError("no licence")
        with self.lock:
            Worker.made += 1
        self.runs: Counter[str] = Counter()

    async def setup(self) -> None:
        if self.task_spec.get("fail") == "setup":
            raise LookupError("no database")
        await asyncio.sleep(self.task_spec.get("setup_s", 0))

    def teardown(self) -> None:
        with self.lock:
            Worker.torn_down += 1

    def get_prompt(self) -> Any:
        return f"Task {self.task_spec.get('number')}."

    @tool
    async def look(self) -> ToolOutput:
        """Look."""
        return said("seen", reward=0.25)

    @tool
    def think(self, words: str) -> ToolOutput:
        """Think."""
        print("thinking of", words)
        return said(words[::-1], reward=0.5)

    @tool
    async def wait(self, seconds: float) -> ToolOutput:
        """Wait without a thread."""
        self.runs["wait"] += 1
        await asyncio.sleep(seconds)
        return said(f"ran {self.runs['wait']} times")

    @tool
    def block(self, seconds: float) -> ToolOutput:
        """Wait in a thread."""
        self.runs["block"] += 1
        time.sleep(seconds)
        return said(f"ran {self.runs['block']} times")

    @tool
    def large(self) -> ToolOutput:
        """Say much."""
        return said(LARGE)

    @tool
    def fail(self) -> ToolOutput:
        """Fail."""
        raise SystemExit("on purpose")

    @tool(timeout=0.1)
    async def too_long(self) -> ToolOutput:
        """Take longer than allowed."""
        await asyncio.sleep(30)
        return said("never")

    @tool(timeout=0.1)
    def hang(self, seconds: float) -> ToolOutput:
        """Ignore the cut, for a while."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                time.sleep(0.02)
            except BaseException:
                pass
        return said("too late", reward=100.0)

    @terminal
    @tool
    def submit(self, answer: str) -> ToolOutput:
        """Submit."""
        return said("right", reward=1.0, finished=True)


class Blocker(Environment):
    """Its `async def` blocks its event loop for longer than the server allows."""

    @classmethod
    def list_splits(cls) -> Any:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [{}]

    def get_prompt(self) -> Any:
        return "Block."

    @tool
    async def block(self, seconds: float) -> ToolOutput:
        """Block."""
        time.sleep(seconds)
        return said("blocked")


def counts(application: Any) -> dict[str, Any]:
    """What is there now, after everything that nobody refers to has gone."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):  # another C library
        pass
    kept = Counter(type(thing).__name__ for thing in gc.get_objects())
    process = psutil.Process()
    authors = list(application.host._runtime._authors.values())
    return {
        "tasks": len(asyncio.all_tasks()),
        "author_tasks": sum(len(asyncio.all_tasks(author.loop)) for author in authors),
        "threads": process.num_threads(),
        "descriptors": process.num_fds(),
        "memory": process.memory_info().rss,
        "kept": {name: kept[name] for name in LEFT_BEHIND if kept[name]},
        "untorn": Worker.made - Worker.torn_down,
    }


def main() -> None:
    """Serve on a port that the system chooses."""
    LocalHost.ENDED_KEPT = 1000  # the names of ended sessions, 100,000 of them, would hide what grows slowly
    server = Server(
        [Worker, Blocker],
        session_idle=2,
        cut_grace=1,
        blocked_warning=0.2,
        blocked_limit=1,
        shutdown_grace=1,
        log_format="json",
    )

    async def soak() -> dict[str, Any]:
        return counts(server.application)

    server.app.get("/soak")(soak)
    server.run("127.0.0.1", 0)


if __name__ == "__main__":
    main()
