"""Procedurally generated reasoning tasks, made and scored by the package `reasoning-gym`.

Each data set is an environment of its own. The package makes an item from a seed, so a task is no more than a split
and an index: a million tasks cost nothing to list, and no answer is in any of them.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any, ClassVar

from ors import Environment, Server, Split, TextBlock, ToolOutput, tool

# This file has the name of the package it is about, and Python looks in a script's own folder first: look there last.
sys.path.sort(key=lambda entry: Path(entry).resolve() == Path(__file__).resolve().parent)

from reasoning_gym import create_dataset

# Item i of a data set with the seed s is made from the seed s + i: ranges that do not meet share no item.
SEEDS = {"train": range(1_000_000), "test": range(1_000_000, 1_010_000)}


@functools.cache
def items(data_set: str, split: str) -> Any:
    """The items of a split, each generated when it is asked for."""
    return create_dataset(data_set, seed=SEEDS[split].start, size=len(SEEDS[split]))


class ReasoningGym(Environment):
    """One question, one answer; the reward is what the data set's own verifier says of it, between 0 and 1."""

    data_set: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.data_set

    @classmethod
    def list_splits(cls) -> list[Split]:
        return [Split(name="train", type="train"), Split(name="test", type="test")]

    @classmethod
    async def num_tasks(cls, split: str) -> int:
        return len(SEEDS[split])

    @classmethod
    async def get_task(cls, split: str, index: int) -> dict[str, Any]:
        if index not in range(len(SEEDS[split])):
            raise IndexError(f"index {index} is outside split {split!r}, which has {len(SEEDS[split])} tasks")
        return {"split": split, "index": index}

    @classmethod
    def item(cls, split: str, index: int) -> dict[str, Any]:
        """The item behind a task, its answer included: for the verifier, and for whoever may know."""
        return items(cls.data_set, split)[index]

    def setup(self) -> None:
        self.verifier = items(self.data_set, self.task_spec["split"])
        self.entry = self.verifier[self.task_spec["index"]]

    def get_prompt(self) -> list[TextBlock]:
        return [TextBlock(text=self.entry["question"])]

    @tool
    def submit(self, answer: str) -> ToolOutput:
        """Hand in the answer; there is one try.

        Args:
            answer: The answer and nothing else, in the form that the question asks for.
        """
        reward = float(self.verifier.score_answer(answer, self.entry))
        verdict = "Right." if reward == 1.0 else "Not quite." if reward > 0.5 else "Wrong."
        return ToolOutput(blocks=[TextBlock(text=verdict)], reward=reward, finished=True)


class ChainSum(ReasoningGym):
    data_set = "chain_sum"


class Cryptarithm(ReasoningGym):
    data_set = "cryptarithm"


class FamilyRelationships(ReasoningGym):
    data_set = "family_relationships"


class KnightsKnaves(ReasoningGym):
    data_set = "knights_knaves"


class LetterCounting(ReasoningGym):
    data_set = "letter_counting"


class MiniSudoku(ReasoningGym):
    data_set = "mini_sudoku"


class ShortestPath(ReasoningGym):
    data_set = "shortest_path"


class SimpleEquations(ReasoningGym):
    data_set = "simple_equations"


class SimpleGeometry(ReasoningGym):
    data_set = "simple_geometry"


class Survo(ReasoningGym):
    data_set = "survo"


class Syllogism(ReasoningGym):
    data_set = "syllogism"


class TimeIntervals(ReasoningGym):
    data_set = "time_intervals"


ENVIRONMENTS = ReasoningGym.__subclasses__()

if __name__ == "__main__":
    Server(ENVIRONMENTS).run(host="127.0.0.1", port=8080)
