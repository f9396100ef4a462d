"""Environments for the tests of faces. A spawned process imports them by name."""

from __future__ import annotations

from typing import Any

from ors import Environment, Split, TextBlock, ToolOutput, tool

__all__ = ["Sums"]


class Sums(Environment):
    """Asks for a sum; the smallest whole environment."""

    @classmethod
    def list_splits(cls) -> list[Any]:
        return [Split(name="train", type="train"), "test"]

    @classmethod
    def list_tasks(cls, split: str) -> list[dict[str, Any]]:
        count = {"train": 5, "test": 3}[split]
        return [{"question": f"{index} + {index}", "answer": 2 * index} for index in range(count)]

    def get_prompt(self) -> list[Any]:
        return [TextBlock(text=f"What is {self.task_spec['question']}?")]

    @tool
    async def submit(self, answer: int) -> ToolOutput:
        """Submit the answer; it ends the episode."""
        right = answer == self.task_spec["answer"]
        text = "right" if right else "wrong"
        return ToolOutput(blocks=[TextBlock(text=text)], reward=1.0 if right else 0.0, finished=True)

    @tool
    def guess(self, answer: int) -> ToolOutput:
        """Guess; nothing ends."""
        return ToolOutput(blocks=[TextBlock(text="warm" if answer == self.task_spec["answer"] else "cold")])
