"""Environments that nothing is wrong with. The faulty ones differ from them in one thing each."""

from __future__ import annotations

import tempfile
import threading
from typing import Any

from ors import Environment, ListToolsOutput, Split, TextBlock, ToolError, ToolOutput, tool
from ors.openenv import Action, Observation, State
from ors.openenv import Environment as Steps

SIZES = {"train": 30, "test": 5}


class Healthy(Environment):
    """A number to be doubled."""

    @classmethod
    def list_splits(cls) -> Any:
        return [Split(name="train", type="train"), Split(name="test", type="test")]

    @classmethod
    def num_tasks(cls, split: str) -> Any:
        return SIZES[split]

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        if index not in range(SIZES[split]):
            raise IndexError(f"index {index} is outside split {split!r}")
        return {"split": split, "number": 1000 + index}

    def __init__(self, task_spec: Any = {}, secrets: dict[str, str] = {}) -> None:
        super().__init__(task_spec, secrets)
        self._key = secrets.get("judge_key", "")

    def setup(self) -> Any:
        self.number = self.task_spec["number"]
        self.tried: list[int] = []

    def get_prompt(self) -> Any:
        return [TextBlock(text=f"Double {self.number}. You may look first.")]

    @tool
    def look(self) -> ToolOutput:
        """Look at what was tried."""
        return ToolOutput(blocks=[TextBlock(text=f"{self.number}: {self.tried}")])

    @tool
    def submit(self, number: int) -> ToolOutput:
        """Hand in the double.

        Args:
            number: The double.
        """
        if number < -(10**6):
            raise ToolError("too small")
        self.tried.append(number)
        right = number == 2 * self.number
        return ToolOutput(blocks=[TextBlock(text=f"{right}")], reward=float(right), finished=True)


class Busy(Healthy):
    """The same with all that an episode may take, and asynchronous: nothing is left, nothing is shared."""

    async def setup(self) -> None:
        super().setup()
        self.file = tempfile.TemporaryFile()  # noqa: SIM115
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.stop.wait, name="of the episode")
        self.thread.start()

    async def get_prompt(self) -> Any:
        return "Double the number."

    def list_task_tools(self) -> Any:
        return ListToolsOutput(tools=[])

    async def teardown(self) -> None:
        self.file.close()
        self.stop.set()
        self.thread.join(0)


class Move(Action):
    """A step to the right."""

    by: int = 1


class Seen(Observation):
    """Where one is."""

    place: int = 0


class Walk(Steps[Move, Seen, State]):
    """A walk to a door, which is somewhere at 3 to 9."""

    def __init__(self) -> None:
        super().__init__()
        self._state = State()
        self._place = 0
        self._door = 0

    def list_splits(self) -> Any:
        return ["train", "test"]

    def num_tasks(self, split: str) -> Any:
        return SIZES[split]

    def list_tasks(self, split: str) -> Any:
        return [{"index": index} for index in range(SIZES[split])]

    def get_task(self, split: str, index: int) -> Any:
        if index not in range(SIZES[split]):
            raise IndexError(f"index {index} is outside split {split!r}")
        return {"index": index, "split": split}

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> Any:
        return [self.get_task(split, index) for index in range(*slice(start, stop).indices(SIZES[split]))]

    def reset(self, seed: int | None = None, split: str = "train", index: int | None = None) -> Any:
        self._door = 3 + ((index if index is not None else seed or 0) + len(split)) % 7
        self._place = 0
        self._state = State(step_count=0)
        return Seen(place=0)

    def step(self, action: Move) -> Any:
        if self._place < self._door:
            self._place += max(1, action.by)
            self._state.step_count += 1
            return Seen(place=self._place, done=self._place >= self._door, reward=float(self._place >= self._door))
        return Seen(place=self._place, done=True)

    @property
    def state(self) -> State:
        return self._state

    def close(self) -> None:
        self._place = 0
