"""More of what authors do wrong: each class breaks one rule, at the line that is marked."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ors import ListToolsOutput, TextBlock, ToolOutput, ToolSpec, terminal, tool
from ors.openenv import Action, Environment, Observation, State

from .faults import TASKS, Healthy


def said(text: str, **options: Any) -> ToolOutput:
    return ToolOutput(blocks=[TextBlock(text=text)], **options)


# The class and its tasks


class Spaced(Healthy):
    @classmethod
    def name(cls) -> str:  # FAULT name
        return "my env/2"


class Route(Healthy):
    @classmethod
    def name(cls) -> str:  # FAULT name
        return "Metrics"


class Overlapping(Healthy):
    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # FAULT split-overlap
        if index not in range(30):
            raise IndexError(index)
        return dict(TASKS[index])


class NeedsAnInstance(Healthy):
    def num_tasks(self, split: str) -> Any:  # FAULT task-methods
        return 30


class Raising(Healthy):
    @classmethod
    def num_tasks(cls, split: str) -> Any:
        return {"train": 30}[split]  # FAULT task-methods


class Consumed(Healthy):
    stream: ClassVar[Any] = iter(range(10**9))

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # FAULT tasks-repeat
        if index not in range(30):
            raise IndexError(index)
        return {"question": f"{next(cls.stream)}?", "answer": "1", "split": split}


class Hole(Healthy):
    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        if index == 13:
            raise KeyError("row 13")  # FAULT index
        return super().get_task(split, index)


class RangeEndsEarly(Healthy):
    @classmethod
    def get_task_range(cls, split: str, start: Any = None, stop: Any = None) -> Any:
        return [cls.get_task(split, index) for index in range(start, stop)]  # FAULT task-methods


class RangeWraps(Healthy):
    @classmethod
    def get_task_range(cls, split: str, start: Any = None, stop: Any = None) -> Any:  # FAULT count
        return [cls.get_task(split, index % 30) for index in range(start or 0, 30 if stop is None else stop)]


class Changing(Healthy):
    def setup(self) -> Any:  # FAULT spec-changed
        self.task_spec["tries"] = 3


class Callable(Healthy):
    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # FAULT task-json
        return {**super().get_task(split, index), "check": lambda answer: answer == 1}


class Sets(Healthy):
    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # FAULT task-round-trip
        return {**super().get_task(split, index), "allowed": {"left", "right"}}


# The tools

Colour = Annotated[str, Field(alias="the colour!", description="Which.")]


class Unsayable(Healthy):
    @tool
    def paint(self, colour: Colour) -> ToolOutput:  # FAULT tool-format
        """Paint."""
        return said(colour)


class Accented(Healthy):
    @tool
    def prüfe(self) -> ToolOutput:  # FAULT tool-format
        """Check."""
        return said("checked")


class ListsAnotherSchema(Healthy):
    @classmethod
    def list_tools(cls) -> Any:  # FAULT tool-schema
        listed = super().list_tools().tools
        schema = {"type": "object", "properties": {"answer": {"type": "words", "description": "It."}}}
        return ListToolsOutput(tools=[*listed[:1], ToolSpec(name="submit", description="x", input_schema=schema)])


class ListsTwice(Healthy):
    @classmethod
    def list_tools(cls) -> Any:  # FAULT tools
        listed = super().list_tools().tools
        return ListToolsOutput(tools=[*listed, listed[0]])


class NoBlocks(Healthy):
    @tool
    def wait(self) -> ToolOutput:  # FAULT tool-blocks
        """Wait."""
        return ToolOutput(blocks=[])


class TerminalListed(Healthy):
    @terminal
    @tool
    def say(self, text: str) -> ToolOutput:
        """Say the last word.

        Args:
            text: The word.
        """
        return said(text, finished=True)

    @classmethod
    def list_tools(cls) -> Any:  # FAULT terminal
        spec = ToolSpec(name="say", description="Say.", input_schema=None)
        return ListToolsOutput(tools=[*super().list_tools().tools, spec])


# The episode


class LeavesTasks(Healthy):
    async def setup(self) -> None:  # FAULT leak-tasks
        self.pings = asyncio.create_task(asyncio.sleep(60), name="pings")


class Hanging(Healthy):
    @tool
    def wait(self) -> ToolOutput:
        """Wait."""
        HELD.wait(60)  # FAULT hangs
        return said("waited")


class HangingInALoop(Healthy):
    @tool
    async def spin(self) -> ToolOutput:
        """Spin."""
        while not HELD.is_set(): pass  # FAULT hangs  # noqa: E701  # fmt: skip
        return said("spun")


HELD = threading.Event()


class Joins(Healthy):
    @tool
    async def look(self) -> ToolOutput:
        """Look."""
        done = threading.Event()
        threading.Timer(0.01, done.set).start()
        done.wait()  # FAULT blocking
        return said("seen")


class Opens(Healthy):
    async def get_prompt(self) -> Any:
        with open(__file__) as file:  # FAULT blocking-file
            return file.readline()


class RaisesSecret(Healthy):
    @tool
    def judge(self) -> ToolOutput:  # FAULT secret-output
        """Ask the judge."""
        raise RuntimeError(f"401: the key {self.secrets.get('judge_key')} is not valid")


class PrintsSecret(Healthy):
    def get_prompt(self) -> Any:  # FAULT secret-log
        print("key:", self.secrets.get("judge_key"))
        return self.task_spec["question"]


# Nothing is wrong with these


class Drawing(Healthy):
    """It draws from the generator that all share, and keeps what it has made: so it is played twice in the same way."""

    made: ClassVar[dict[str, int]] = {}

    def setup(self) -> None:
        self.number = random.randrange(10**9)
        self.made[self.task_spec["answer"]] = self.made.get(self.task_spec["answer"], 0) + 1

    @tool
    def roll(self) -> ToolOutput:
        """Roll a die."""
        return said(f"{self.number} {random.randrange(10**9)}")


class Rolling(Drawing):
    """It draws from a generator of its own, so nobody knows whether what it keeps is seen by others."""

    def setup(self) -> None:
        super().setup()
        self.number = random.SystemRandom().randrange(10**9)


class Choosing(Healthy):
    """The answer is one of those that are shown."""

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        task = super().get_task(split, index)
        return {**task, "options": [f"{index + 999}", task["answer"], f"{index + 1999}"]}

    def get_prompt(self) -> Any:
        return f"{self.task_spec['question']} {', '.join(self.task_spec['options'])}"


# OpenEnv


class Move(Action):
    """A step to the right."""

    by: int = 1


class Seen(Observation):
    """Where one is."""

    place: int = 0


class Walk(Environment[Move, Seen, State]):
    """A walk to a door, which is somewhere at 3 to 9. Nothing is wrong with it."""

    def __init__(self) -> None:
        super().__init__()
        self._state = State()
        self._place = self._door = 0

    def list_splits(self) -> Any:
        return ["train", "test"]

    def num_tasks(self, split: str) -> Any:
        return 9

    def list_tasks(self, split: str) -> Any:
        return [{"index": index} for index in range(9)]

    def get_task(self, split: str, index: int) -> Any:
        if index not in range(9):
            raise IndexError(f"index {index} is outside split {split!r}")
        return {"index": index, "split": split}

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> Any:
        return [self.get_task(split, index) for index in range(*slice(start, stop).indices(9))]

    def reset(self, seed: Any = None, split: str = "train", index: Any = None) -> Any:
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


class AsksBeforeReset(Walk):
    def num_tasks(self, split: str) -> Any:
        return self._sizes[split]  # FAULT task-methods

    def reset(self, seed: Any = None, split: str = "train", index: Any = None) -> Any:
        self._sizes = {"train": 9, "test": 9}
        return super().reset(seed, split, index)


class Partly(Walk):
    get_task_range = None  # type: ignore[assignment]

    def list_splits(self) -> Any:  # FAULT tasks-partly
        return ["train", "test"]


class NegativeIndex(Walk):
    def get_task(self, split: str, index: int) -> Any:  # FAULT index-end
        return [{"index": number, "split": split} for number in range(9)][index]


class TakesNoTask(Walk):
    def reset(self, seed: Any = None) -> Any:  # FAULT reset-task
        return super().reset(seed)


class Unseeded(Walk):
    def reset(self, seed: Any = None, split: str = "train", index: Any = None) -> Any:  # FAULT reset-seed
        super().reset(seed, split, index)
        return Seen(place=random.SystemRandom().randrange(10**9))


class Once(Walk):
    begun = False

    def reset(self, seed: Any = None, split: str = "train", index: Any = None) -> Any:
        if self.begun:
            raise RuntimeError("an episode is running")  # FAULT reset
        self.begun = True
        return super().reset(seed, split, index)


class Remembering(Walk):
    steps = 0

    def reset(self, seed: Any = None, split: str = "train", index: Any = None) -> Any:  # FAULT reset-again
        super().reset(seed, split, index)
        return Seen(place=self.steps)

    def step(self, action: Move) -> Any:
        self.steps += 1
        return super().step(action)


class OverAtOnce(Walk):
    def reset(self, seed: Any = None, split: str = "train", index: Any = None) -> Any:  # FAULT reset-done
        super().reset(seed, split, index)
        return Seen(done=True)


class FromGymnasium(Walk):
    def step(self, action: Move) -> Any:  # FAULT step
        return Seen(), 0.0, True, False, {}


class InfiniteReward(Walk):
    def step(self, action: Move) -> Any:  # FAULT reward
        return Seen(place=1, reward=float("inf"))


class BreaksAfterTheEnd(Walk):
    def step(self, action: Move) -> Any:
        if self._place >= self._door:
            raise RuntimeError("the episode is over")  # FAULT step-after-done
        return super().step(action)


class PaysAfterTheEnd(Walk):
    def step(self, action: Move) -> Any:  # FAULT step-after-done
        seen = super().step(action)
        seen.reward = 1.0
        return seen


class OneBoard(Walk):
    board: ClassVar[list[int]] = [0]  # FAULT shared-state

    def reset(self, seed: Any = None, split: str = "train", index: Any = None) -> Any:
        self.board[0] = 0
        return super().reset(seed, split, index)

    def step(self, action: Move) -> Any:
        self.board[0] += 1
        seen = super().step(action)
        return Seen(place=self.board[0], done=seen.done)


class ForOneAtATime(OneBoard):
    """What it shares is not seen: no two sessions of it are open at once."""

    SUPPORTS_CONCURRENT_SESSIONS = False


class NeverCloses(Walk):
    opened: ClassVar[list[Any]] = []

    def __init__(self) -> None:  # FAULT leak-files
        super().__init__()
        self.opened.append(open(__file__))  # noqa: SIM115

    close = None  # type: ignore[assignment]
