"""Environments for commands: one to play, one whose tools take all kinds of input, one that breaks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from ors import Environment, ImageBlock, Split, TextBlock, ToolError, ToolOutput, terminal, tool

# a PNG of two pixels by three
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000002000000030802000000368849d6"
    "0000001349444154789c63fccfc0c0c0c0c0c4804c010014400105dd23790e0000000049454e44ae426082"
)


def said(text: str, reward: float | None = None, finished: bool = False, **more: object) -> ToolOutput:
    return ToolOutput(blocks=[TextBlock(text=text)], reward=reward, finished=finished, **more)


class Base(Environment):
    @classmethod
    def list_splits(cls):
        return [Split(name="train", type="train"), Split(name="held out", type="test")]

    @classmethod
    def list_tasks(cls, split):
        return [{"number": number, "secret": f"answer {number}"} for number in range(1200 if split == "train" else 5)]

    def get_prompt(self):
        return f"What is {self.task_spec['number']} + 1?"

    def teardown(self):
        if place := os.environ.get("TEARDOWNS"):
            with Path(place).open("a") as file:
                file.write("torn down\n")


class Sums(Base):
    """Add one."""

    def __init__(self, task_spec={}, secrets={}):
        super().__init__(task_spec, secrets)
        self.secrets = secrets

    @tool
    def submit(self, answer: int) -> ToolOutput:
        """Submit the sum.

        Args:
            answer: The sum.
        """
        right = answer == self.task_spec["number"] + 1
        return said("Right." if right else "Wrong.", float(right), finished=True)

    @tool
    def hint(self) -> ToolOutput:
        """Ask for a hint, which costs."""
        return said("It is one more.", -0.25, metadata={"hints": 1})

    @tool
    def reveal(self) -> ToolOutput:
        """Say which secrets there are."""
        print("printed by the tool")
        return said(", ".join(f"{name}={len(value)}" for name, value in sorted(self.secrets.items())) or "none")

    @tool
    def fail(self) -> ToolOutput:
        """Fail on purpose."""
        raise ToolError("not today")

    @tool
    def explode(self) -> ToolOutput:
        """Break."""
        raise RuntimeError("out of order")

    @tool
    def rude(self) -> ToolOutput:
        """Send what a terminal obeys."""
        return said("\x1b[2J\x1b]0;owned\x07clean")


class Size(BaseModel):
    width: int = Field(ge=1, le=9)
    height: int = 2


class Forms(Base):
    """Every kind of input."""

    @tool
    def paint(
        self,
        title: str,
        colour: Literal["red", "green"],
        count: int = 3,
        ratio: float | None = None,
        loud: bool = False,
        size: Size | None = None,
        tags: list[str] = [],
    ) -> ToolOutput:
        """Paint something.

        Args:
            title: What it is called.
        """
        shown = f"{title!r} {colour} {count} {ratio} {loud} {size} {tags}"
        image = ImageBlock.from_image(PNG)
        return ToolOutput(blocks=[TextBlock(text=shown), image], reward=0.5)

    @terminal
    @tool
    def answer(self, text: str) -> ToolOutput:
        """Say the last word."""
        return said("Heard.", float(text == "over"), finished=True)

    def get_prompt(self):
        return ["Look:", ImageBlock.from_image(PNG)]
