"""Faulty environments: each breaks one rule at the line that is marked with `# FAULT rule`."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import subprocess
import sys
import threading
import time
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ors import ListToolsOutput, TextBlock, ToolOutput, ToolSpec, terminal, tool
from ors.openenv import State

from .healthy import SIZES, Healthy, Move, Seen, Walk

logger = logging.getLogger("faults")


def said(text: str, **options: Any) -> ToolOutput:
    return ToolOutput(blocks=[TextBlock(text=text)], **options)


# The class


class Yielding(Healthy):
    @tool
    def count(self) -> Any:  # FAULT class-served
        """Count."""
        yield said("1")


class Named(Healthy):
    @classmethod
    def name(cls) -> str:  # FAULT class-name
        return "my env/2"


class Route(Healthy):
    @classmethod
    def name(cls) -> str:  # FAULT class-name
        return "Metrics"


class SharedList(Healthy):
    history: ClassVar[list[int]] = []  # FAULT class-apart

    def setup(self) -> None:
        super().setup()
        self.history.clear()

    @tool
    def remember(self) -> ToolOutput:
        """Remember the number."""
        self.history.append(self.number)
        return said(f"{self.history}")


CURRENT = {"number": 0}  # FAULT class-apart SharedGlobal.look


class SharedGlobal(Healthy):
    def setup(self) -> None:
        super().setup()
        CURRENT["number"] = self.task_spec["number"]

    @tool
    def look(self) -> ToolOutput:
        """Look."""
        return said(f"{CURRENT['number']}")


# Splits and tasks


class NoSplits(Healthy):
    @classmethod
    def list_splits(cls) -> Any:  # FAULT split-list
        return []


class SplitTwice(Healthy):
    @classmethod
    def list_splits(cls) -> Any:  # FAULT split-list
        return ["train", "train"]


class Overlapping(Healthy):
    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # FAULT split-overlap
        if index not in range(SIZES[split]):
            raise IndexError(index)
        return {"number": 1000 + index}


class NeedsAnInstance(Healthy):
    def num_tasks(self, split: str) -> Any:  # FAULT task-fresh
        return SIZES[split]


class Failing(Healthy):
    @classmethod
    def num_tasks(cls, split: str) -> Any:
        return {"train": 30}[split]  # FAULT task-fails


class Drawn(Healthy):
    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # FAULT task-same
        if index not in range(SIZES[split]):
            raise IndexError(index)
        return {"split": split, "number": random.SystemRandom().randrange(10**9)}


class Consumed(Healthy):
    stream: ClassVar[Any] = iter(range(10**9))

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # FAULT task-same
        if index not in range(SIZES[split]):
            raise IndexError(index)
        return {"split": split, "number": next(cls.stream)}


class Changing(Healthy):
    def setup(self) -> Any:  # FAULT task-kept
        super().setup()
        self.task_spec.pop("number")


class Flattering(Healthy):
    @classmethod
    def num_tasks(cls, split: str) -> Any:  # FAULT task-count
        return 10 * SIZES[split]


class TooFew(Healthy):
    @classmethod
    def num_tasks(cls, split: str) -> Any:  # FAULT task-count
        return 3

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [cls.get_task(split, index) for index in range(SIZES[split])]


class NoNumber(Healthy):
    @classmethod
    def num_tasks(cls, split: str) -> Any:  # FAULT task-count
        return f"{SIZES[split]}"


class Hole(Healthy):
    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        if index == 3:
            raise KeyError("row 3")  # FAULT task-index
        return super().get_task(split, index)


class Disagreeing(Healthy):
    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [{"split": split, "number": 1000 + index} for index in range(SIZES[split])]

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # FAULT task-agree
        if index not in range(SIZES[split]):
            raise IndexError(index)
        return {"split": split, "number": 1001 + index}


class KeyErrorAtTheEnd(Healthy):
    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        tasks = {i: {"split": split, "number": 1000 + i} for i in range(SIZES[split])}
        return tasks[index]  # FAULT task-end


class NoEnd(Healthy):
    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # FAULT task-end
        return {"split": split, "number": 1000 + index}


class WrongRange(Healthy):
    @classmethod
    def get_task_range(cls, split: str, start: int | None = None, stop: int | None = None) -> Any:  # FAULT task-range
        return [cls.get_task(split, index) for index in range(start or 0, min((stop or 10**6) + 1, SIZES[split]))]


class NoJSON(Healthy):
    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # FAULT task-json
        return {**super().get_task(split, index), "check": lambda answer: answer == 1}


class NotANumber(Healthy):
    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # FAULT task-json
        return {**super().get_task(split, index), "weight": float("nan")}


class NumberedKeys(Healthy):
    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # FAULT task-round-trip
        return {**super().get_task(split, index), "moves": {1: "up", 2: "down"}}


class Sets(Healthy):
    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # FAULT task-round-trip
        return {**super().get_task(split, index), "allowed": {"left", "right"}}


class Hashed(Healthy):
    WORDS: ClassVar[Any] = list({f"word{number}" for number in range(1000)})

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:  # FAULT task-order
        return {**super().get_task(split, index), "word": cls.WORDS[index]}


# The prompt


class PromptFails(Healthy):
    def get_prompt(self) -> Any:
        return [TextBlock(text=self.question)]  # FAULT prompt-fails


class PromptIsADict(Healthy):
    def get_prompt(self) -> Any:  # FAULT prompt-fails
        return {"role": "user", "content": "Double it."}


class PromptEmpty(Healthy):
    def get_prompt(self) -> Any:  # FAULT prompt-empty
        return [TextBlock(text="  ")]


class Answered(Healthy):
    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        return {**super().get_task(split, index), "answer": 2 * (1000 + index)}

    def get_prompt(self) -> Any:  # FAULT prompt-answer
        return f"Double {self.number}. Task: {self.task_spec}"


class Rolled(Healthy):
    def get_prompt(self) -> Any:  # FAULT prompt-same
        return f"Double {self.number}. Dice: {random.SystemRandom().randrange(10**9)}."


# The tools


class Silent(Healthy):
    @tool
    def wait(self) -> ToolOutput:  # FAULT tool-docstring
        return said("waited")


class Undescribed(Healthy):
    @tool
    def guess(self, number: int) -> ToolOutput:  # FAULT tool-parameters
        """Guess."""
        return said(f"{number}")


class Accented(Healthy):
    @tool
    def prüfe(self) -> ToolOutput:  # FAULT tool-name
        """Check."""
        return said("checked")


class BadSchema(Healthy):
    @classmethod
    def list_tools(cls) -> Any:  # FAULT tool-schema
        listed = super().list_tools().tools
        schema = {"type": "object", "properties": {"number": {"type": "integral"}}}
        return ListToolsOutput(tools=[*listed[:1], ToolSpec(name="submit", description="x", input_schema=schema)])


Colour = Annotated[str, Field(alias="the colour!", description="Which.")]


class Unsayable(Healthy):
    @tool
    def paint(self, colour: Colour) -> ToolOutput:  # FAULT tool-formats
        """Paint.

        Args:
            colour: Which.
        """
        return said(colour)


class Unlisted(Healthy):
    def list_task_tools(self) -> Any:  # FAULT tool-listed
        return ListToolsOutput(tools=[ToolSpec(name="fly", description="Fly.", input_schema=None)])


class Raising(Healthy):
    @tool
    def open_door(self, name: str) -> ToolOutput:
        """Open a door.

        Args:
            name: Of the door.
        """
        return said({"red": "opened"}[name])  # FAULT tool-raises


class ReturnsText(Healthy):
    @tool
    def wait(self) -> Any:  # FAULT tool-output
        """Wait."""
        return "waited"


class NoJSONMetadata(Healthy):
    @tool
    def wait(self) -> Any:  # FAULT tool-output
        """Wait."""
        return said("waited", metadata={"by": {1, object()}})


class NoBlocks(Healthy):
    @tool
    def wait(self) -> ToolOutput:  # FAULT tool-blocks
        """Wait."""
        return ToolOutput(blocks=[])


class NaNReward(Healthy):
    @tool
    def wait(self) -> ToolOutput:  # FAULT tool-reward
        """Wait."""
        return said("waited", reward=float("nan"))


class FinalWithoutATool(Healthy):
    @classmethod
    def is_assistant_message_final(cls) -> bool:  # FAULT tool-terminal
        return True


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
    def list_tools(cls) -> Any:  # FAULT tool-terminal
        spec = ToolSpec(name="say", description="Say.", input_schema=None)
        return ListToolsOutput(tools=[*super().list_tools().tools, spec])


# The episode


class WillNotOpen(Healthy):
    def setup(self) -> None:
        super().setup()
        self.level = self.task_spec["level"]  # FAULT episode-opens


class TeardownFails(Healthy):
    def teardown(self) -> None:
        self.browser.close()  # FAULT episode-teardown


class LeavesThreads(Healthy):
    def setup(self) -> None:
        super().setup()
        self.over = threading.Event()
        threading.Thread(target=self.over.wait, args=(30,), name="watcher", daemon=True).start()

    def teardown(self) -> None:  # FAULT episode-leaks
        self.tried = []


class LeavesFiles(Healthy):
    opened: ClassVar[dict[int, Any]] = {}

    def setup(self) -> None:  # FAULT episode-leaks
        super().setup()
        self.opened[len(self.opened)] = open(__file__)  # noqa: SIM115


class LeavesProcesses(Healthy):
    def setup(self) -> None:  # FAULT episode-leaks
        super().setup()
        LEFT.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))


LEFT: Any = [object()]


class LeavesTasks(Healthy):
    async def setup(self) -> None:  # FAULT episode-leaks
        super().setup()
        self.pings = asyncio.create_task(asyncio.sleep(60), name="pings")


class Hanging(Healthy):
    @tool
    def wait(self) -> ToolOutput:
        """Wait."""
        threading.Event().wait(GIVEN_UP_S)  # FAULT episode-hangs
        return said("waited")


GIVEN_UP_S = 20.0


# Asynchronous code


class Sleeping(Healthy):
    @tool
    async def wait(self) -> ToolOutput:
        """Wait."""
        time.sleep(0.001)  # FAULT async-blocking
        return said("waited")


class Running(Healthy):
    async def setup(self) -> None:
        super().setup()
        subprocess.run(["true"], check=True)  # FAULT async-blocking


class Dialling(Healthy):
    async def get_prompt(self) -> Any:
        left, right = socket.socketpair()
        with left, right:
            right.sendall(b"Double it.")  # FAULT async-blocking
        return "Double it."


class Waiting(Healthy):
    async def get_prompt(self) -> Any:
        done = threading.Event()
        threading.Timer(0.01, done.set).start()
        done.wait()  # FAULT async-blocking
        return "Double it."


class Computing(Healthy):
    @tool
    async def search(self) -> ToolOutput:
        """Search."""
        until = time.thread_time() + 0.4
        found = any(time.thread_time() > until for _ in iter(int, 1))  # FAULT async-busy
        return said(f"{found}")


class Opening(Healthy):
    async def get_prompt(self) -> Any:
        with open(__file__) as file:  # FAULT async-files
            return file.readline()


# Secrets


class ShowsSecret(Healthy):
    @tool
    def debug(self) -> ToolOutput:  # FAULT secret-shown
        """Say how it is set up."""
        return said(f"{vars(self)}")


class RaisesSecret(Healthy):
    @tool
    def judge(self) -> ToolOutput:
        """Ask the judge."""
        raise RuntimeError(f"401: the key {self._key} is not valid")  # FAULT secret-shown


class LogsSecret(Healthy):
    def setup(self) -> None:  # FAULT secret-logged
        super().setup()
        logger.debug("made with %s", self._key)


class PrintsSecret(Healthy):
    def get_prompt(self) -> Any:  # FAULT secret-logged
        print("key:", self._key)
        return "Double it."


# Steps


class NoTypes(Walk):
    def step(self, action: Any) -> Any:
        return super().step(action)


class NeedsReset(Walk):
    def num_tasks(self, split: str) -> Any:
        return self._sizes[split]  # FAULT task-fresh

    def reset(self, seed: Any = None, split: str = "train", index: Any = None) -> Any:
        self._sizes = SIZES
        return super().reset(seed, split, index)


class Partly(Walk):
    list_tasks = None  # type: ignore[assignment]
    get_task_range = None  # type: ignore[assignment]

    def get_task(self, split: str, index: int) -> Any:  # FAULT task-methods
        return super().get_task(split, index)


class NegativeIndex(Walk):
    def get_task(self, split: str, index: int) -> Any:  # FAULT task-end
        return [{"index": number, "split": split} for number in range(SIZES[split])][index]


class Ignoring(Walk):
    def reset(self, seed: int | None = None) -> Any:  # FAULT reset-selects
        return super().reset(seed)


class Unseeded(Walk):
    def reset(self, seed: Any = None, split: str = "train", index: Any = None) -> Any:  # FAULT reset-same
        super().reset(seed, split, index)
        return Seen(place=random.SystemRandom().randrange(10**9))


class Once(Walk):
    begun = False

    def reset(self, seed: Any = None, split: str = "train", index: Any = None) -> Any:
        if self.begun:
            raise RuntimeError("an episode is running")  # FAULT reset-twice
        self.begun = True
        return super().reset(seed, split, index)


class Remembering(Walk):
    steps = 0

    def reset(self, seed: Any = None, split: str = "train", index: Any = None) -> Any:  # FAULT reset-twice
        super().reset(seed, split, index)
        return Seen(place=self.steps)

    def step(self, action: Move) -> Any:
        self.steps += 1
        return super().step(action)


class OverAtOnce(Walk):
    def reset(self, seed: Any = None, split: str = "train", index: Any = None) -> Any:  # FAULT reset-done
        super().reset(seed, split, index)
        return Seen(done=True)


class NoObservation(Walk):
    def step(self, action: Move) -> Any:  # FAULT step-output
        return {"place": 1}, 0.0, True


class InfiniteReward(Walk):
    def step(self, action: Move) -> Any:  # FAULT step-reward
        return Seen(place=1, reward=float("inf"))


class StepRaises(Walk):
    def step(self, action: Move) -> Any:
        return Seen(place=[5][action.by + 7])  # FAULT step-raises


class BreaksAtTheEnd(Walk):
    def step(self, action: Move) -> Any:
        if self._place >= self._door:
            raise RuntimeError("the episode is over")  # FAULT step-after-done
        return super().step(action)


class PaysForEver(Walk):
    def step(self, action: Move) -> Any:  # FAULT step-after-done
        seen = super().step(action)
        seen.reward = 1.0
        return seen


class NoState(Walk):
    @property
    def state(self) -> State:
        return self._nothing  # FAULT state-fails


class OneBoard(Walk):
    board: ClassVar[list[int]] = [0]  # FAULT class-apart

    def reset(self, seed: Any = None, split: str = "train", index: Any = None) -> Any:
        self.board[0] = 0
        return super().reset(seed, split, index)

    def step(self, action: Move) -> Any:
        self.board[0] += 1
        super().step(action)
        return Seen(place=self.board[0])


class NeverCloses(Walk):
    opened: ClassVar[dict[int, Any]] = {}

    def __init__(self) -> None:  # FAULT episode-leaks
        super().__init__()
        self.opened[len(self.opened)] = open(__file__)  # noqa: SIM115

    close = None  # type: ignore[assignment]
