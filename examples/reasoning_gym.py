"""Procedurally generated reasoning tasks, made and scored by the package `reasoning-gym`.

Each data set is an environment of its own. The package makes an item from a seed, so a task is no more than a split
and an index: a million tasks cost nothing to list, and no answer is in any of them.
"""

from __future__ import annotations

import functools
import pkgutil
from typing import Any, ClassVar

from ors import Environment, Server, Split, TextBlock, ToolOutput, tool

# This file has the name of the package that it is about. Where Python finds the file in the package's place, because it
# looks in a script's own folder first, this leads on to what is in the package.
__path__ = pkgutil.extend_path([], "reasoning_gym")

# Each of the others registers its data sets with the factory.
from reasoning_gym import algebra, algorithmic, arithmetic, factory, games, geometry, graphs, logic  # noqa: F401

# Item i of a data set with the seed s is made from the seed s + i: ranges that do not meet share no item.
SEEDS = {"train": range(1_000_000), "test": range(1_000_000, 1_010_000)}


@functools.cache
def items(data_set: str, split: str) -> Any:
    """The items of a split, each generated when it is asked for."""
    return factory.create_dataset(data_set, seed=SEEDS[split].start, size=len(SEEDS[split]))


class _DataSet(Environment):
    """One question, one answer; the reward is what the data set's own verifier says of it, between 0 and 1.

    Its name starts with an underscore, since it is no environment by itself.
    """

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


class ChainSum(_DataSet):
    data_set = "chain_sum"


class Cryptarithm(_DataSet):
    data_set = "cryptarithm"


class FamilyRelationships(_DataSet):
    data_set = "family_relationships"


class KnightsKnaves(_DataSet):
    data_set = "knights_knaves"


class LetterCounting(_DataSet):
    data_set = "letter_counting"


class MiniSudoku(_DataSet):
    data_set = "mini_sudoku"


class ShortestPath(_DataSet):
    data_set = "shortest_path"


class SimpleEquations(_DataSet):
    data_set = "simple_equations"


class SimpleGeometry(_DataSet):
    data_set = "simple_geometry"


class Survo(_DataSet):
    data_set = "survo"


class Syllogism(_DataSet):
    data_set = "syllogism"


class TimeIntervals(_DataSet):
    data_set = "time_intervals"


ENVIRONMENTS = _DataSet.__subclasses__()

if __name__ == "__main__":
    Server(ENVIRONMENTS).run(host="127.0.0.1", port=8080)
