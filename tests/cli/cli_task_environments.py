"""Environments for `ors tasks`: tasks of different shapes, and tasks with many columns."""

from __future__ import annotations

from ors import Environment, TextBlock, ToolOutput, tool
from ors.tasks import InMemory


class Shown(Environment):
    def get_prompt(self):
        return "Go."

    @tool
    def go(self) -> ToolOutput:
        """Go."""
        return ToolOutput(blocks=[TextBlock(text="gone")], finished=True)


class Mixed(Shown):
    tasks = InMemory(
        {
            "train": [
                {"x": 1},
                {"x": "text", "none": None},
                {"flag": True},
                {"deep": {"list": [0, {"name": "x"}]}},
                {"flag": True},
                {"flag": 1},
            ]
        }
    )


class Wide(Shown):
    tasks = InMemory(
        {
            "train": [
                {
                    "id": f"t{number}",
                    "question": "How long is a piece of string, and who has to hold it?\n" * 3,
                    **{f"field{place}": f"value {place} of {number}" for place in range(6)},
                }
                for number in range(3)
            ]
        }
    )
