"""An environment whose tools do what agents meet: pay, refuse, break, never end."""

from __future__ import annotations

import asyncio
import math

from ors import Environment, TextBlock, ToolError, ToolOutput, tool


def said(text: str, reward: float | None = None, finished: bool = False) -> ToolOutput:
    return ToolOutput(blocks=[TextBlock(text=text)], reward=reward, finished=finished)


class Ways(Environment):
    """Every way in which an episode can go."""

    @classmethod
    def list_splits(cls):
        return ["train", "test"]

    @classmethod
    def list_tasks(cls, split):
        return [{"number": number, "answer": "secret"} for number in range(30)]

    async def setup(self):
        if self.task_spec["number"] == 13:
            raise RuntimeError("no room")

    def get_prompt(self):
        return f"task {self.task_spec['number']}"

    @tool
    async def pay(self, amount: float) -> ToolOutput:
        """Pay, and go on."""
        return said("paid", amount)

    @tool
    async def end(self, amount: float | None = None) -> ToolOutput:
        """Pay, or do not, and end."""
        return said("ended", amount, finished=True)

    @tool
    async def refuse(self) -> ToolOutput:
        """Fail on purpose."""
        raise ToolError("not like this")

    @tool
    async def explode(self) -> ToolOutput:
        """Break."""
        raise RuntimeError("out of order")

    @tool
    async def wait(self) -> ToolOutput:
        """Never end."""
        await asyncio.sleep(math.inf)
        return said("never")
