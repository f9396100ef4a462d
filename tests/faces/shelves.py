"""Environments whose tasks are listed, counted and picked in every way that authors have, or go wrong."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ors import Environment, Split, ToolOutput, tool

from .probes import said

__all__ = ["ALL"]


class Shelf(Environment):
    """What all have in common."""

    @classmethod
    def list_splits(cls) -> Any:
        return ["train"]

    def get_prompt(self) -> str:
        return "Go."

    @tool
    async def go(self) -> ToolOutput:
        return said("gone", finished=True)


class Plain(Shelf):
    """Lists its tasks; its splits are a name, a custom name, a Split and a mapping."""

    @classmethod
    def list_splits(cls) -> Any:
        return ["train", "curious", Split(name="exam", type="test"), {"name": "validation"}]

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [{"split": split, "number": number} for number in range(7)]


class Waiting(Plain):
    """The same, asynchronous."""

    @classmethod
    async def list_splits(cls) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        return ["train"]

    @classmethod
    async def list_tasks(cls, split: str) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        return [{"split": split, "number": number} for number in range(7)]


class Picked(Shelf):
    """Counted and picked, synchronously."""

    @classmethod
    def num_tasks(cls, split: str) -> int:  # type: ignore[override]
        return 7

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # type: ignore[override]
        if index >= 7:
            raise IndexError(index)
        return {"split": split, "number": index}


class PickedLater(Shelf):
    """Counted and picked, asynchronously."""

    @classmethod
    async def num_tasks(cls, split: str) -> int:
        return 7

    @classmethod
    async def get_task(cls, split: str, index: int) -> Any:
        if index >= 7:
            raise IndexError(index)
        return {"split": split, "number": index}


class Sliced(Picked):
    """Has slices of its own, synchronously."""

    @classmethod
    def get_task_range(cls, split: str, start: int | None = None, stop: int | None = None) -> Any:  # type: ignore[override]
        stop = 7 if stop is None else min(stop, 7)
        return [{"split": split, "number": number} for number in range(start or 0, stop)]


class SlicedLater(PickedLater):
    """Has slices of its own, asynchronously."""

    @classmethod
    async def get_task_range(cls, split: str, start: int | None = None, stop: int | None = None) -> Any:
        stop = 7 if stop is None else min(stop, 7)
        return [{"split": split, "number": number} for number in range(start or 0, stop)]


class Endless(Shelf):
    """Has tasks, but says neither how many nor which."""

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # type: ignore[override]
        return {"number": index}


class EndlessLater(Shelf):
    """The same, asynchronous, and it does end."""

    @classmethod
    async def get_task(cls, split: str, index: int) -> Any:
        if index >= 7:
            raise IndexError(index)
        return {"number": index}


class Many(Shelf):
    """More than fits into one piece of an answer."""

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [{"number": number, "text": "ß" * 50} for number in range(20_000)]


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Place:
    city: str


class Person(BaseModel):
    name: str


class Values(Shelf):
    """Tasks in the shapes that people have them in."""

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [
            {"day": datetime.date(2024, 2, 29), "price": decimal.Decimal("1.10"), "colour": Colour.RED},
            {"nested": Person(name="Ada"), "path": Path("a/b")},
            Person(name="Ada"),
            Place("Oslo"),
            {"tuple": (1, 2)},
        ]


class Broken(Shelf):
    """The second task cannot be JSON, the third is no object."""

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [{"number": 0}, {"score": float("nan")}, "three", {"number": 3}]


class Failing(Shelf):
    """Whatever is asked of its tasks raises."""

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        raise OSError("the disk is gone")

    @classmethod
    def num_tasks(cls, split: str) -> int:  # type: ignore[override]
        raise IndexError("not of the client's making")


class Splitless(Shelf):
    """Names no splits that can be used."""

    @classmethod
    def list_splits(cls) -> Any:
        return ["train", 7]

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return []


class Twice(Splitless):
    @classmethod
    def list_splits(cls) -> Any:
        return ["train", "train"]


class NoList(Shelf):
    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return {"a": 1}


ALL = [
    *(Plain, Waiting, Picked, PickedLater, Sliced, SlicedLater, Endless, EndlessLater, Many, Values),
    *(Broken, Failing, Splitless, Twice, NoList),
]
"""All of them, to be served together."""
