"""The probe: an environment that does what a conformance check has to see, for servers that host Python environments.

Serve it beside other environments, or alone: `python environment.py PORT`. A server in another language may offer the
same under the same names; docs/conformance.md lists them.
"""

import asyncio
import hashlib
import json
import sys
from typing import Any

from pydantic import BaseModel

from ors import Environment, ImageBlock, Server, Split, TextBlock, ToolOutput, tool

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
"""An image of one pixel."""


class Text(BaseModel):
    """A text."""

    text: str


class Seconds(BaseModel):
    """A time."""

    seconds: float


class Amount(BaseModel):
    """A number."""

    value: float


class Size(BaseModel):
    """A number of lines."""

    lines: int


def said(text: str) -> list[Any]:
    """One block of text."""
    return [TextBlock(text=text)]


def tasks_of(split: str, count: int) -> list[Any]:
    """The tasks of a split."""
    return [
        {"number": number, "split": split, "text": f"ä\u2028{number}", "deep": {"of": [None, 0.5]}}
        for number in range(count)
    ]


class ConformanceProbe(Environment):
    """Tools that echo, wait, fail and end."""

    def __init__(self, task_spec: Any = {}, secrets: Any = {}) -> None:  # noqa: B006 - never changed
        super().__init__(task_spec=task_spec, secrets=secrets)
        self.given = dict(secrets)
        self.ran = 0

    @classmethod
    def list_splits(cls) -> list[Any]:
        return ["train", "validation", "test", "holdout", Split(name="hard", type="test")]

    @classmethod
    def list_tasks(cls, split: str) -> list[Any]:
        return tasks_of(split, 12 if split == "train" else 3)

    def get_prompt(self) -> list[Any]:
        return [
            TextBlock(text=f"Task {self.task_spec.get('number')}.", detail={"level": 1}),
            ImageBlock(data=PNG, mimeType="image/png"),
        ]

    @tool
    async def echo(self, params: Text) -> ToolOutput:
        """Give the text back."""
        self.ran += 1
        return ToolOutput(blocks=said(params.text), metadata={"ran": self.ran})

    @tool
    async def nothing(self) -> ToolOutput:
        """Take nothing."""
        self.ran += 1
        return ToolOutput(blocks=said("nothing"))

    @tool
    async def count(self) -> ToolOutput:
        """Say how many of the other calls ran in this session."""
        return ToolOutput(blocks=said(str(self.ran)))

    @tool
    async def task(self) -> ToolOutput:
        """Give the task of this session as JSON."""
        return ToolOutput(blocks=said(json.dumps(self.task_spec)))

    @tool
    async def secrets(self) -> ToolOutput:
        """Give the SHA-256 of each secret as JSON."""
        digests = {name: hashlib.sha256(str(value).encode()).hexdigest() for name, value in self.given.items()}
        return ToolOutput(blocks=said(json.dumps(digests)))

    @tool
    async def slow(self, params: Seconds) -> ToolOutput:
        """Wait."""
        self.ran += 1
        await asyncio.sleep(params.seconds)
        return ToolOutput(blocks=said("done"))

    @tool
    async def score(self, params: Amount) -> ToolOutput:
        """Give a reward."""
        self.ran += 1
        return ToolOutput(blocks=said("scored"), reward=params.value)

    @tool
    async def fail(self, params: Text) -> ToolOutput:
        """Raise an exception with this message."""
        self.ran += 1
        raise RuntimeError(params.text)

    @tool
    async def cancel(self) -> ToolOutput:
        """Break as code does that was cancelled."""
        self.ran += 1
        raise asyncio.CancelledError

    @tool
    async def empty(self) -> ToolOutput:
        """Give no blocks."""
        self.ran += 1
        return ToolOutput(blocks=[])

    @tool
    async def nan(self) -> ToolOutput:
        """Give a reward that is no number."""
        self.ran += 1
        return ToolOutput(blocks=said("nan"), reward=float("nan"))

    @tool
    async def finish(self, params: Amount) -> ToolOutput:
        """End the episode with a reward."""
        self.ran += 1
        return ToolOutput(blocks=said("finished"), reward=params.value, finished=True)

    @tool
    async def image(self) -> ToolOutput:
        """Give a text and an image."""
        self.ran += 1
        return ToolOutput(
            blocks=[TextBlock(text="one", detail={"level": 1}), ImageBlock(data=PNG, mimeType="image/png")]
        )

    @tool
    async def big(self, params: Size) -> ToolOutput:
        """Give lines that are mostly blanks: each ends in its number, after 50 spaces."""
        self.ran += 1
        return ToolOutput(blocks=said("".join(f"{' ' * 50}{line}\n" for line in range(params.lines))))


class ConformanceCounted(Environment):
    """Counts and picks its tasks, and cannot list them."""

    @classmethod
    def list_splits(cls) -> list[Any]:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> list[Any]:
        raise NotImplementedError("too many to list")

    @classmethod
    async def num_tasks(cls, split: str) -> int:
        return 1_000_000

    @classmethod
    async def get_task(cls, split: str, index: int) -> Any:
        if not 0 <= index < 1_000_000:
            raise IndexError(index)
        return {"square": index * index}

    @classmethod
    async def get_task_range(cls, split: str, start: Any = None, stop: Any = None) -> Any:
        return [{"square": index * index} for index in range(1_000_000)[start:stop]]

    def get_prompt(self) -> list[Any]:
        return [TextBlock(text=f"The root of {self.task_spec['square']}?")]

    @tool
    async def answer(self, params: Amount) -> ToolOutput:
        """Answer."""
        return ToolOutput(
            blocks=said("thanks"), reward=float(params.value**2 == self.task_spec["square"]), finished=True
        )


if __name__ == "__main__":
    Server([ConformanceProbe, ConformanceCounted]).run(host="127.0.0.1", port=int(sys.argv[1]))
