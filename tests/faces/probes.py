"""Environments that write down what is done with them and do what their task says, wherever their process is.

A task holds `folder`, a directory that test and environment share: words go into its file `notes`, and a file `open-x`
lets what waits at the gate `x` pass.
"""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ors import (
    Environment,
    ImageBlock,
    ListToolsOutput,
    Split,
    TextBlock,
    ToolError,
    ToolOutput,
    Toolset,
    ToolSpec,
    terminal,
    tool,
)

__all__ = ["Book", "Indexed", "Odd", "Other", "Probe", "Slow", "said"]

GATE_S = 30.0


def said(text: str, **more: Any) -> ToolOutput:
    """A result of one text."""
    return ToolOutput(blocks=[TextBlock(text=text)], **more)


class Book(Environment):
    """An environment with a folder, notes and gates."""

    def __init__(self, task_spec: Any = {}, secrets: dict[str, str] = {}) -> None:  # noqa: B006 - never changed
        super().__init__(task_spec)
        self.secrets = secrets
        self.note("made")
        self.fail_if_told("make")

    @classmethod
    def list_splits(cls) -> list[Any]:
        return ["train", Split(name="hard", type="test")]

    @classmethod
    def list_tasks(cls, split: str) -> list[Any]:
        return [{"number": number} for number in range({"train": 4, "hard": 2}[split])]

    def get_prompt(self) -> Any:
        self.note("prompt")
        self.fail_if_told("prompt")
        return self.task_spec.get("prompt", "Do something.")

    def note(self, word: str) -> None:
        """Write a word down; without a folder nobody wants to know."""
        if "folder" in self.task_spec:
            with Path(self.task_spec["folder"], "notes").open("a") as notes:
                notes.write(word + "\n")

    def fail_if_told(self, where: str) -> None:
        if self.task_spec.get("fail") == where:
            raise ValueError(f"{where} fails")

    def held(self, gate: str) -> bool:
        """Whether a gate is still shut. Raises TimeoutError when a test has forgotten it."""
        if time.monotonic() > self.__dict__.setdefault(f"until_{gate}", time.monotonic() + GATE_S):
            raise TimeoutError(f"nobody opens {gate}")
        return not Path(self.task_spec["folder"], f"open-{gate}").exists()

    async def pass_gate(self, gate: str) -> None:
        while self.held(gate):
            await asyncio.sleep(0.005)

    def pass_gate_blocking(self, gate: str) -> None:
        while self.held(gate):
            time.sleep(0.005)


class Message(BaseModel):
    message: str


class Probe(Book):
    """Asynchronous setup and teardown, held or failing where the task says so."""

    async def setup(self) -> None:
        self.note("setup")
        if "setup" in self.task_spec.get("hold", ()):
            await self.pass_gate("setup")
        self.fail_if_told("setup")
        if "fail_with_secret" in self.task_spec:
            raise ValueError(self.secrets[self.task_spec["fail_with_secret"]])
        self.note("ready")

    async def teardown(self) -> None:
        self.note("teardown")
        if "teardown" in self.task_spec.get("hold", ()):
            await self.pass_gate("teardown")
        self.fail_if_told("teardown")
        self.note("gone")

    def list_task_tools(self) -> ListToolsOutput:
        self.note("task_tools")
        tools = [ToolSpec(name=name, description="", input_schema=None) for name in self.task_spec.get("tools", ())]
        return ListToolsOutput(tools=tools)

    @tool
    async def echo(self, text: str) -> ToolOutput:
        """Say it again.

        Args:
            text: What to say.
        """
        self.note("ran echo")
        return said(text)

    @tool
    def count(self) -> ToolOutput:
        self.note("ran count")
        self.counted = getattr(self, "counted", 0) + 1
        return said(str(self.counted), reward=1.0)

    @tool
    async def wait(self, gate: str) -> ToolOutput:
        """End when the gate opens."""
        self.note(f"waits {gate}")
        try:
            await self.pass_gate(gate)
        except asyncio.CancelledError:
            self.note(f"cut {gate}")
            raise
        self.note(f"passed {gate}")
        return said(gate)

    @tool
    def block(self, gate: str) -> ToolOutput:
        """End when the gate opens, holding a thread."""
        self.note(f"waits {gate}")
        try:
            self.pass_gate_blocking(gate)
        except BaseException:
            self.note(f"cut {gate}")
            raise
        self.note(f"passed {gate}")
        return said(gate)

    @tool(concurrent=True)
    async def overlap(self, gate: str) -> ToolOutput:
        """Waits, and overlaps with itself."""
        return await self.wait(gate)

    @tool(exclusive=True)
    async def alone(self) -> ToolOutput:
        self.note("alone")
        return said("alone")

    @tool(timeout=0.2)
    async def brief(self, gate: str) -> ToolOutput:
        """Has little time."""
        await self.pass_gate(gate)
        return said(gate)

    @tool
    async def finish(self, reward: float = 1.0) -> ToolOutput:
        self.note("ran finish")
        return said("over", reward=reward, finished=True)

    @tool
    async def refuse(self, why: str) -> ToolOutput:
        raise ToolError(why)

    @tool
    async def fail(self, message: str) -> ToolOutput:
        self.note("ran fail")
        raise ValueError(message)

    @tool
    async def tell_secret(self, name: str) -> ToolOutput:
        """The length of a secret, and its last two characters."""
        value = self.secrets.get(name)
        return said("none" if value is None else f"{len(value)} {value[-2:]}", metadata={"names": sorted(self.secrets)})

    @tool
    async def betray(self, name: str) -> ToolOutput:
        """Raise with a secret in the words."""
        raise RuntimeError(f"the key {self.secrets[name]} is not accepted")

    @tool
    async def leak(self, name: str) -> ToolOutput:
        """Print a secret, log it, and raise it in every way that quotes it."""
        value = self.secrets[name]
        print("my key is", value, repr(value))
        logging.getLogger("of an author").info("the key %s", value, extra={"key": value, "keys": [value]})
        logging.getLogger("of an author").warning("%r", {"key": value})
        try:
            {}[value]
        except KeyError as exc:
            raise RuntimeError({"key": value}, [value]) from exc
        return said("never")

    @tool
    async def modelled(self, params: Message) -> ToolOutput:
        return said(params.message)

    @tool(shared=False)
    async def hidden(self) -> ToolOutput:
        self.note("ran hidden")
        return said("found")

    @terminal
    @tool
    async def answer(self, message: str) -> ToolOutput:
        self.note("ran answer")
        return said(f"heard {message}", reward=0.5, finished=True)

    async def not_a_tool(self) -> ToolOutput:
        self.note("ran not_a_tool")
        return said("no")

    @property
    def trap(self) -> str:
        self.note("ran trap")
        return "sprung"


class Other(Probe):
    """A second environment with the tools of the first and one more."""

    @tool
    async def extra(self) -> ToolOutput:
        return said("extra")


class Slow(Book):
    """Synchronous throughout."""

    def setup(self) -> None:
        self.note("setup")
        if "setup" in self.task_spec.get("hold", ()):
            self.pass_gate_blocking("setup")
        self.note("ready")

    def teardown(self) -> None:
        self.note("teardown")
        if "teardown" in self.task_spec.get("hold", ()):
            self.pass_gate_blocking("teardown")
        time.sleep(self.task_spec.get("teardown_s", 0))
        self.note("gone")

    @tool
    def block(self, gate: str) -> ToolOutput:
        self.note(f"waits {gate}")
        self.pass_gate_blocking(gate)
        self.note(f"passed {gate}")
        return said(gate)

    @tool
    def quick(self) -> ToolOutput:
        self.note("ran quick")
        return said("quick")


class Pieces(Toolset):
    """A tool that environments share."""

    @tool
    def borrowed(self) -> ToolOutput:
        return said(f"for {type(self.env).__name__}")


class Odd(Book):
    """Tools that do what no tool should, and results at the edges."""

    toolsets = (Pieces,)

    @tool
    async def raise_async(self, name: str) -> ToolOutput:
        raise _exceptions()[name]

    @tool
    def raise_sync(self, name: str) -> ToolOutput:
        raise _exceptions()[name]

    @tool
    async def recurse(self) -> ToolOutput:
        return await self.recurse()

    @tool
    async def give(self, what: str) -> ToolOutput:
        nan = float("nan")
        garbage: dict[str, Any] = {
            "text": "text",
            "nothing": None,
            "a dict": {"blocks": []},
            "nan reward": said("x").model_copy(update={"reward": nan}),
            "infinite reward": said("x").model_copy(update={"reward": float("-inf")}),
            "text reward": said("x").model_copy(update={"reward": "1"}),
            "nan metadata": said("x", metadata={"deep": [0.0, nan]}),
            "an object in metadata": said("x", metadata={"path": object()}),
            "a lone surrogate": said("\ud800"),
        }
        return garbage[what]  # type: ignore[no-any-return]

    @tool
    async def no_blocks(self) -> ToolOutput:
        return ToolOutput(blocks=[], reward=0.25)

    @tool
    async def image(self, size: int) -> ToolOutput:
        return ToolOutput(blocks=[ImageBlock(data="A" * size, mimeType="image/png")])

    @tool
    async def blanks(self, before: int, blanks: str, after: int) -> ToolOutput:
        """A text with blanks somewhere in its middle."""
        return said("a" * before + blanks + "b" * after)

    @tool
    async def big_error(self, size: int, char: str) -> ToolOutput:
        raise ValueError(char * size)

    @tool
    def shout(self, megabytes: int) -> ToolOutput:
        """Print without end."""
        for _ in range(megabytes):
            print("x" * (1 << 20))
        return said("done")

    @tool
    async def stall(self, seconds: float) -> ToolOutput:
        """Block the event loop."""
        time.sleep(seconds)
        return said("stalled")

    @tool
    async def integers(self, value: int) -> ToolOutput:
        return said("x", metadata={"value": value})


def _exceptions() -> dict[str, BaseException]:
    return {
        "CancelledError": asyncio.CancelledError("mine"),
        "SystemExit": SystemExit(3),
        "KeyboardInterrupt": KeyboardInterrupt(),
        "GeneratorExit": GeneratorExit(),
        "StopIteration": StopIteration(7),
        "StopAsyncIteration": StopAsyncIteration(),
        "RecursionError": RecursionError("deep"),
        "MemoryError": MemoryError(),
        "TimeoutError": TimeoutError(),
        "AssertionError": AssertionError(),
        "ExceptionGroup": ExceptionGroup("several", [ValueError("one"), KeyError("two")]),
    }


class Indexed(Environment):
    """Too many tasks to list: they are counted and picked."""

    SIZE = 1_000_000

    @classmethod
    def list_splits(cls) -> list[str]:
        return ["train"]

    @classmethod
    def num_tasks(cls, split: str) -> int:
        return cls.SIZE

    @classmethod
    def get_task(cls, split: str, index: int) -> dict[str, Any]:
        if index >= cls.SIZE:
            raise IndexError(index)
        return {"number": index}

    def get_prompt(self) -> str:
        return str(self.task_spec["number"])

    @tool
    async def go(self) -> ToolOutput:
        return said("gone", finished=True)
