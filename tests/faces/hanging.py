"""Environments whose code does not stop when it is asked to."""

from __future__ import annotations

import os
import time
from typing import Any

from ors import ToolOutput, tool

from .probes import Book, said

__all__ = ["Deaf", "Stalling"]


class Deaf(Book):
    """Its thread ignores every exception."""

    def teardown(self) -> None:
        self.note("teardown")

    @tool
    def ignore(self) -> ToolOutput:
        self.note("ignores")
        while True:
            try:
                if not self.held("end"):
                    return said("late")
                time.sleep(0.01)
            except BaseException:
                pass

    @tool(timeout=60)
    def after(self) -> ToolOutput:
        return said("never")


class Stalling(Book):
    """Its asynchronous code never awaits, and its one task takes its time."""

    @classmethod
    def list_splits(cls) -> list[Any]:
        return ["train"]

    @classmethod
    def num_tasks(cls, split: str) -> int:  # type: ignore[override]
        return 1

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # type: ignore[override]
        book = cls.__new__(cls)
        book.task_spec = {"folder": os.environ["SHARED_FOLDER"]}
        book.note("picks")
        book.pass_gate_blocking("pick")
        return book.task_spec

    @tool
    async def stall(self) -> ToolOutput:
        self.note("stalls")
        self.pass_gate_blocking("end")
        return said("late")

    @tool
    async def quick(self) -> ToolOutput:
        return said("quick")
