"""Lights Out: many steps, a state that each of them changes, and a reward for each.

Pressing a cell switches it and its neighbours. The reward of a press is the share of the lights that it put out,
negative where it lit more; the rewards of an episode that puts out all lights add up to exactly 1.
"""

from __future__ import annotations

import random
from typing import Any

from ors import Environment, Server, Split, TextBlock, ToolError, ToolOutput, tool

SIZE = 5
PRESSES = 6
# The seeds of the boards; the ranges do not meet, so no board of `test` is trained on.
SEEDS = {"train": range(10_000), "test": range(10_000, 10_200)}


class LightsOut(Environment):
    """A board of lights that all have to go out."""

    @classmethod
    def list_splits(cls) -> list[Split]:
        return [Split(name="train", type="train"), Split(name="test", type="test")]

    @classmethod
    def list_tasks(cls, split: str) -> list[dict[str, Any]]:
        return [{"seed": seed} for seed in SEEDS[split]]

    def setup(self) -> None:
        self.lit: set[tuple[int, int]] = set()
        # A board made by pressing cells is one that pressing them again solves.
        cells = [(row, column) for row in range(SIZE) for column in range(SIZE)]
        for row, column in random.Random(self.task_spec["seed"]).sample(cells, PRESSES):
            self.switch(row, column)
        self.lit_at_start = len(self.lit)
        self.left = 3 * PRESSES

    def switch(self, row: int, column: int) -> None:
        for r, c in ((row, column), (row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            if r in range(SIZE) and c in range(SIZE):
                self.lit ^= {(r, c)}

    def board(self) -> str:
        rows = (" ".join("#" if (r, c) in self.lit else "." for c in range(SIZE)) for r in range(SIZE))
        return "\n".join(rows)

    def get_prompt(self) -> list[TextBlock]:
        return [
            TextBlock(
                text=f"Put out all lights (#) of this board. Pressing a cell switches it and the cells above, below, "
                f"left and right of it. Rows and columns count from 0; you have {self.left} presses.\n\n{self.board()}"
            )
        ]

    @tool
    def press(self, row: int, column: int) -> ToolOutput:
        """Press a cell: it and its neighbours switch.

        Args:
            row: From 0 at the top.
            column: From 0 at the left.
        """
        if row not in range(SIZE) or column not in range(SIZE):
            raise ToolError(f"the board has rows and columns 0 to {SIZE - 1}; nothing was pressed")
        before = len(self.lit)
        self.switch(row, column)
        self.left -= 1
        return ToolOutput(
            blocks=[TextBlock(text=f"{self.board()}\n\n{len(self.lit)} lit, {self.left} presses left")],
            metadata={"lit": len(self.lit), "left": self.left},
            reward=(before - len(self.lit)) / self.lit_at_start,
            finished=not self.lit or self.left == 0,
        )


if __name__ == "__main__":
    Server([LightsOut]).run(host="127.0.0.1", port=8080)
