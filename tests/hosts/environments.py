"""What the tests of hosts serve. A spawned process imports this module by name."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

from ors import Environment, TextBlock, ToolOutput, tool
from ors.adapters.ors_environment import ORSOffering
from ors.core.failures import Failure, failure
from ors.core.ports import Document, OfferingSpec, RunWork, Start, StepOutcome, TaskQuery, TaskRef, Work

LIMIT_S = 60.0


def said(text: Any, **rest: Any) -> ToolOutput:
    return ToolOutput(blocks=[TextBlock(text=str(text))], **rest)


def arrived(mark: str) -> bool:
    return Path(mark).exists()


def triple(number: int) -> int:
    """For a process that an author starts."""
    return 3 * number


def tell_and_sleep(connection: Any) -> None:
    """For a process that an author stops."""
    connection.send("here")
    time.sleep(LIMIT_S)


class Workshop(Environment):
    """Does what its tools say. Files are the signals between a test and a process that it cannot reach otherwise."""

    def __init__(self, task_spec: Any = {}, secrets: dict[str, str] = {}) -> None:  # noqa: B006 - never changed
        super().__init__(task_spec or {})
        self.secrets = secrets
        self.count = 0

    @classmethod
    def list_splits(cls) -> list[Any]:
        return ["train", "large"]

    @classmethod
    def list_tasks(cls, split: str) -> list[dict[str, Any]]:
        if split == "large":
            # 64 pieces of 256 KiB
            return [{"index": index, "text": "x" * (64 << 10)} for index in range(256)]
        return [{"index": index, "big": 10**4000 + index} for index in range(5)]

    def setup(self) -> None:
        if mark := self.task_spec.get("slow_setup"):
            wait_for(mark)
        if words := self.task_spec.get("setup_error"):
            raise RuntimeError(words)

    def teardown(self) -> None:
        if mark := self.task_spec.get("hang_teardown"):
            wait_for(mark)
        if mark := self.task_spec.get("torn_down"):
            Path(mark).write_text("torn down")

    def get_prompt(self) -> str:
        return f"task {self.task_spec.get('index')}"

    @tool
    async def echo(self, value: Any = None) -> ToolOutput:
        """Gives back what it gets."""
        self.count += 1
        return said(f"{type(value).__name__}", metadata={"value": value, "count": self.count})

    @tool
    def add(self, number: int) -> ToolOutput:
        """Counts in a plain function."""
        self.count += number
        return said(self.count, reward=float(number))

    @tool
    async def finish(self) -> ToolOutput:
        """Ends the episode."""
        return said("over", reward=1.0, finished=True)

    @tool
    async def big(self, size: int) -> ToolOutput:
        """A large result."""
        return said("é" * (size // 2))

    @tool(concurrent=True)
    async def hold(self, begun: str, go: str) -> ToolOutput:
        """Runs until there is a file."""
        self.count += 1
        Path(begun).write_text(str(os.getpid()))
        deadline = time.monotonic() + LIMIT_S
        while not arrived(go) and time.monotonic() < deadline:
            await asyncio.sleep(0.002)
        return said(f"held {self.count}")

    @tool(timeout=0.05)
    def ignore(self, go: str) -> ToolOutput:
        """Heeds no time limit until there is a file."""
        while not arrived(go):
            try:
                wait_for(go)
            except BaseException:
                pass
        return said("late")

    @tool
    async def pid(self) -> ToolOutput:
        """The process that this runs in."""
        return said(os.getpid())

    @tool
    def quit(self, code: int) -> ToolOutput:
        """Ends the process."""
        os._exit(code)

    @tool
    def fork_and_quit(self, child: str) -> ToolOutput:
        """Leaves a process behind that has everything open that this one had."""
        pid = os.fork()
        if pid == 0:
            time.sleep(LIMIT_S)
            os._exit(0)
        Path(child).write_text(str(pid))
        os._exit(5)

    @tool
    async def digest(self) -> ToolOutput:
        """What arrived as secrets, as a digest."""
        logging.getLogger("author").warning("my token is %s", self.secrets.get("token"), extra={"token": self.secrets})
        return said(hashlib.sha256(repr(sorted(self.secrets.items())).encode()).hexdigest())

    @tool
    async def fail_loudly(self) -> ToolOutput:
        """Logs with a traceback."""
        try:
            raise LookupError("nothing there")
        except LookupError:
            logging.getLogger("author").exception("it went wrong", extra={"place": "here", "count": 3})
        return said("logged")

    @tool
    def start_others(self) -> ToolOutput:
        """Starts processes as authors do, and stops one by a signal."""
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            trebled = pool.map(triple, [1, 2])
        child = subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"], stdout=-1)
        assert child.stdout is not None
        child.stdout.readline()
        child.terminate()
        code = child.wait(LIMIT_S)
        child.stdout.close()
        ours, theirs = multiprocessing.Pipe()
        forked = multiprocessing.get_context("fork").Process(target=tell_and_sleep, args=(theirs,))
        forked.start()
        ours.recv()
        forked.terminate()
        forked.join(LIMIT_S)
        return said(f"{trebled} {code} {forked.exitcode}")

    @tool
    def print(self, text: str) -> ToolOutput:
        """Prints."""
        print(text)
        return said("printed")


def wait_for(mark: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not arrived(mark) and time.monotonic() < deadline:
        time.sleep(0.002)


class Corridor:
    """A native step environment: walk to the end of a corridor."""

    def __init__(self) -> None:
        self.at, self.length, self.opened_with = 0, 0, Start()

    def open(self) -> Work:
        return Work(lambda: Document(b"{}"), label="open")

    def reset(self, start: Start) -> Work:
        def reset() -> StepOutcome:
            self.at, self.length = 0, (start.options or {}).get("length", 3)
            shown = {"at": 0, "seed": start.seed, "task": start.task, "secrets": len(start.secrets)}
            return StepOutcome(shown, None, False, {"options": dict(start.options)})

        return Work(reset, label="reset")

    def step(self, action: Any, timeout_s: float | None) -> Work:
        async def step() -> StepOutcome:
            if action == "break":
                return StepOutcome({"not": float("nan")})
            self.at += action
            done = self.at >= self.length
            return StepOutcome({"at": self.at, "limit": timeout_s}, done or 0, done)

        return Work(step, label="step", is_async=True)

    def state(self) -> Work:
        return Work(lambda: Document(b'{"at":%d}' % self.at), label="state")

    def close(self, why: str) -> Work:
        return Work(lambda: Document(b"{}"), label="close")


class NoTasks:
    """Has none; its stream breaks off."""

    async def query(self, query: TaskQuery, run: RunWork) -> Document | Failure:
        return failure("not_supported", "no tasks")

    async def resolve(self, ref: TaskRef, run: RunWork) -> Any:
        return failure("not_supported", "no tasks")

    async def stream(self, split: str, run: RunWork) -> AsyncIterator[bytes | Failure]:
        yield b"[1"
        raise RuntimeError("the disk is gone")


class CorridorOffering:
    """Offers the corridor."""

    spec = OfferingSpec("Corridor", "steps")
    tasks = NoTasks()
    affinity: Literal["any", "session", "class"] = "any"

    def episode(self, start: Start) -> Corridor:
        return Corridor()


def offerings() -> list[Any]:
    """What every host of these tests offers."""
    return [ORSOffering(Workshop, errors="exception"), CorridorOffering()]


def broken(how: str) -> list[Any]:
    """Cannot be made, in a process of their own."""
    if how == "exception":
        raise RuntimeError("no accelerator here \ud800")
    if how == "exit":
        sys.exit("not today")
    if how == "die":
        os._exit(9)
    if how == "hang":
        time.sleep(LIMIT_S)
    return []
