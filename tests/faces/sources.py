"""Environments whose tasks are declared: files, streams, what has no end, and what waits until it is let go."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ors import Environment, ToolOutput, tool
from ors.errors import TaskFileError
from ors.tasks import Generated, InMemory, Jsonl, TaskSource

from .probes import said

__all__ = ["ALL", "FOLDER", "Stream"]

FOLDER = Path(os.environ.get("ORS_TEST_FOLDER", "/nonexistent"))


class Shown(Environment):
    """What all have in common."""

    def get_prompt(self) -> str:
        return "Go."

    @tool
    async def go(self) -> ToolOutput:
        return said("gone")


class Rows(Shown):
    """A file that the test writes."""

    tasks = Jsonl({"train": FOLDER / "rows.jsonl"}, cache=FOLDER / "cache")


class Memory(Shown):
    """Tasks with ids, some of which no header can hold as they are."""

    tasks = InMemory({"train": [{"id": "a b/ß"}, {"id": "plain"}], "test": []}, id="id")


class Large(Shown):
    """More than is packed at once."""

    tasks = InMemory({"train": lambda: [{"n": number, "text": f"text {number} " * 10} for number in range(5_000)]})


class Preview(Large):
    list_limit = 7


class Endless(Shown):
    tasks = Generated({"train": None}, lambda seed: {"seed": seed})


class EndlessPreview(Endless):
    list_limit = 3


class Stream(TaskSource):
    """Can only be read from its beginning."""

    def splits(self) -> Any:
        return ["train"]

    def count(self, split: str) -> None:
        return None

    def get(self, split: str, index: int) -> Any:
        raise NotImplementedError("a stream has no places; list its tasks")

    def range(self, split: str, start: int, stop: int) -> Any:
        raise NotImplementedError("a stream has no places; list its tasks")

    def iterate(self, split: str) -> Iterator[Any]:
        return ({"n": number} for number in range(1000))


class Streamed(Shown):
    tasks = Stream()


class Gated(TaskSource):
    """The second task waits for a file, and each that is asked for is noted."""

    def splits(self) -> Any:
        return ["train"]

    def count(self, split: str) -> int:
        return 100_000

    def get(self, split: str, index: int) -> Any:
        with (FOLDER / "asked").open("a") as notes:
            notes.write(f"{index}\n")
        while index > 0 and not (FOLDER / "gate").exists():
            time.sleep(0.005)
        return {"n": index}


class Waiting(Shown):
    tasks = Gated()


class Broken(TaskSource):
    """Fails as a whole after some of its tasks."""

    def splits(self) -> Any:
        return ["train"]

    def count(self, split: str) -> int:
        return 10_000

    def get(self, split: str, index: int) -> Any:
        return {"n": index}

    def texts(self, split: str, start: int, stop: int) -> Any:
        if start > 5000:
            raise TaskFileError("rows.bin", "the disk is gone")
        return super().texts(split, start, stop)


class Breaking(Shown):
    tasks = Broken()


ALL = [Breaking, Rows, Memory, Large, Preview, Endless, EndlessPreview, Streamed, Waiting]
