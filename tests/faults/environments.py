"""Environments in which the faults of existing servers would show. A spawned process imports them by name."""

from __future__ import annotations

import asyncio
import builtins
import os
import sys
import time
from pathlib import Path
from typing import Any

from faces.probes import Book, said
from ors import ToolOutput, tool

__all__ = ["Blocking", "Cancelling", "Child", "Counting", "Exiting", "Parent", "Steady"]


class Steady(Book):
    """Always answers at once."""

    @tool
    async def go(self) -> ToolOutput:
        return said("gone")

    @tool
    def go_on(self) -> ToolOutput:
        return said("gone on")


class Blocking(Book):
    """Synchronous code that waits at a gate wherever the task says so; `async def` code that never awaits."""

    def __init__(self, task_spec: Any = {}, secrets: dict[str, str] = {}) -> None:  # noqa: B006 - never changed
        super().__init__(task_spec)
        self.wait_if_told("constructor")

    @classmethod
    def list_splits(cls) -> list[str]:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> list[Any]:
        time.sleep(0.4)
        return [{"number": 0}]

    def wait_if_told(self, where: str) -> None:
        if self.task_spec.get("block") == where:
            self.note(f"blocks {where}")
            self.pass_gate_blocking("it")

    def setup(self) -> None:
        self.wait_if_told("setup")

    def get_prompt(self) -> str:
        self.wait_if_told("prompt")
        return "Wait."

    def teardown(self) -> None:
        self.wait_if_told("teardown")

    @tool
    def wait(self) -> ToolOutput:
        self.note("blocks tool")
        self.pass_gate_blocking("it")
        return said("over")

    @tool
    async def compute(self) -> ToolOutput:
        """Asynchronous by name only."""
        self.note("blocks loop")
        self.pass_gate_blocking("it")
        return said("over")


class Cancelling(Book):
    """Tools that end in a cancellation which nobody asked for."""

    @tool
    async def raises(self) -> ToolOutput:
        raise asyncio.CancelledError

    @tool
    async def cancels_itself(self) -> ToolOutput:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return said("never")

    @tool
    async def awaits_what_was_cancelled(self) -> ToolOutput:
        other = asyncio.ensure_future(asyncio.sleep(60))
        other.cancel()
        await other
        return said("never")

    @tool
    async def loses_its_group(self) -> ToolOutput:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(60)).cancel()
            raise asyncio.CancelledError
        return said("never")


class Exiting(Book):
    """Runs what a model wrote, as a read-eval-print loop does."""

    @tool
    def run(self, code: str) -> ToolOutput:
        exec(code, {"sys": sys, "exit": getattr(builtins, "exit", sys.exit)})
        return said("ran")

    @tool
    async def run_async(self, code: str) -> ToolOutput:
        exec(code, {"sys": sys, "exit": getattr(builtins, "exit", sys.exit)})
        return said("ran")

    @tool
    async def run_in_a_task(self, code: str) -> ToolOutput:
        async def inner() -> None:
            exec(code, {"sys": sys})

        await asyncio.ensure_future(inner())
        return said("ran")


class Parent(Book):
    @classmethod
    def list_splits(cls) -> list[Any]:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> list[Any]:
        return [{"of": "parent"}]

    @tool
    async def first(self) -> ToolOutput:
        return said("first")


class Child(Parent):
    @classmethod
    def list_splits(cls) -> list[Any]:
        return ["train", "more"]

    @classmethod
    def list_tasks(cls, split: str) -> list[Any]:
        return [{"of": "child"}, {"of": "child"}]

    @tool
    async def second(self) -> ToolOutput:
        return said("second")


class Counting(Book):
    """Writes down whenever its tasks are listed, in the file that a variable of the process names."""

    @classmethod
    def list_splits(cls) -> list[Any]:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> list[Any]:
        with Path(os.environ["TASKS_LISTED"]).open("a") as file:
            file.write("listed\n")
        return [{"number": number} for number in range(1000)]

    @tool
    async def go(self) -> ToolOutput:
        return said("gone")
