"""A healthy environment, and what authors do wrong: one class for each fault, derived from the healthy one.

RULE is the rule that finds it and METHOD the method that is named, WORDS a part of what is said.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import subprocess
import sys
import threading
import time
from time import sleep as nap
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from ors import Environment, ListToolsOutput, TextBlock, ToolError, ToolOutput, ToolSpec, tool

TASKS = [{"question": f"What is {n} + 1000?", "answer": str(n + 1000)} for n in range(30)]


class Healthy(Environment):
    """Asks for a sum."""

    RULE: ClassVar[str] = ""
    METHOD: ClassVar[str] = ""
    WORDS: ClassVar[str] = ""

    def __init__(self, task_spec: Any = {}, secrets: dict[str, str] = {}) -> None:
        super().__init__(task_spec, secrets)
        self.secrets = secrets
        self.tries: list[str] = []

    @classmethod
    def list_splits(cls) -> Any:
        return ["train", "test"]

    @classmethod
    def num_tasks(cls, split: str) -> Any:
        return 30

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        if not 0 <= index < 30:
            raise IndexError(f"index {index} is not below 30")
        return {**TASKS[index], "split": split}

    def get_prompt(self) -> Any:
        return [TextBlock(text=self.task_spec["question"])]

    @tool
    async def hint(self) -> ToolOutput:
        """Ask for a hint."""
        return ToolOutput(blocks=[TextBlock(text="Count on.")])

    @tool
    def submit(self, answer: str) -> ToolOutput:
        """Submit the answer.

        Args:
            answer: The sum.
        """
        self.tries.append(answer)
        right = answer == self.task_spec["answer"]
        return ToolOutput(blocks=[TextBlock(text=f"try {len(self.tries)}")], reward=float(right), finished=right)


class Listing(Healthy):
    """The same with all tasks in a list."""

    num_tasks = vars(Environment)["num_tasks"]
    get_task = vars(Environment)["get_task"]

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [{**task, "split": split} for task in TASKS]


# Splits and tasks


class SplitsRaise(Healthy):
    RULE, METHOD, WORDS = "splits", "list_splits", "FileNotFoundError"

    @classmethod
    def list_splits(cls) -> Any:
        return open("no-such-file").read().split()


class SplitTwice(Healthy):
    RULE, METHOD, WORDS = "splits", "list_splits", "twice"

    @classmethod
    def list_splits(cls) -> Any:
        return ["train", "train"]


class SplitsOfNumbers(Healthy):
    RULE, METHOD, WORDS = "splits", "list_splits", "no list of splits"

    @classmethod
    def list_splits(cls) -> Any:
        return [1, 2]


class NoSplits(Healthy):
    RULE, METHOD = "splits-none", "list_splits"

    @classmethod
    def list_splits(cls) -> Any:
        return []


class SplitsChange(Healthy):
    RULE, METHOD = "tasks-repeat", "list_splits"
    asked = 0

    @classmethod
    def list_splits(cls) -> Any:
        SplitsChange.asked += 1
        return ["train", f"split-{SplitsChange.asked}"]


class NoTasks(Healthy):
    RULE, METHOD = "tasks-none", ""
    get_task = vars(Environment)["get_task"]


class CountTooHigh(Healthy):
    RULE, METHOD, WORDS = "count", "num_tasks", "which has 40 tasks"

    @classmethod
    def num_tasks(cls, split: str) -> Any:
        return 40


class CountTooLow(Listing):
    RULE, METHOD, WORDS = "count", "num_tasks", "lists 30"

    @classmethod
    def num_tasks(cls, split: str) -> Any:
        return 20


class CountIsText(Healthy):
    RULE, METHOD, WORDS = "count", "num_tasks", "'30'"

    @classmethod
    def num_tasks(cls, split: str) -> Any:
        return "30"


class NegativeIndex(Healthy):
    RULE, METHOD, WORDS = "index-end", "get_task", "index -1"

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        return {**TASKS[index], "split": split}


class IndexIsKeyError(Healthy):
    RULE, METHOD, WORDS = "index-end", "get_task", "KeyError"

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        return dict(dict(enumerate(TASKS))[index])


class IndexWraps(Healthy):
    RULE, METHOD, WORDS = "index-end", "get_task", "gives a task"

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        return dict(TASKS[index % 30])


class TasksDrawn(Healthy):
    RULE, METHOD = "tasks-repeat", "get_task"

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        if not 0 <= index < 30:
            raise IndexError(index)
        return {"question": "?", "answer": str(random.random())}


class ListShuffled(Listing):
    RULE, METHOD = "tasks-repeat", "list_tasks"

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return random.sample(TASKS, len(TASKS))


class OrderDiffers(Listing):
    RULE, METHOD = "order", "get_task"

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        if not 0 <= index < 30:
            raise IndexError(index)
        return dict(TASKS[29 - index])


class RangeIsInclusive(Healthy):
    RULE, METHOD = "count", "get_task_range"

    @classmethod
    def get_task_range(cls, split: str, start: int | None = None, stop: int | None = None) -> Any:
        return [dict(task) for task in TASKS[start : stop + 1 if stop is not None else None]]


class OrderOfHashes(Listing):
    RULE, METHOD = "order-process", "list_tasks"

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return [{"question": word, "answer": word.upper()} for word in {f"word-{n}" for n in range(30)}]


class TaskIsText(Healthy):
    RULE, METHOD, WORDS = "task-json", "get_task", "str"

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        if not 0 <= index < 30:
            raise IndexError(index)
        return f"task {index}"


class TaskHoldsAnObject(Healthy):
    RULE, METHOD, WORDS = "task-json", "get_task", "no JSON"

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        return {**super().get_task(split, index), "lock": threading.Lock}


class TaskHoldsNaN(Healthy):
    RULE, METHOD, WORDS = "task-json", "get_task", "no JSON"

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        return {**super().get_task(split, index), "weight": float("nan")}


class KeysAreNumbers(Healthy):
    RULE, METHOD = "task-round-trip", "get_task"

    @classmethod
    def get_task(cls, split: str, index: int) -> Any:
        return {**super().get_task(split, index), "board": {1: "x"}}


class TaskChanges(Listing):
    RULE, METHOD = "tasks-changed", ""
    KEPT: ClassVar[list[dict[str, Any]]] = [{**task, "left": [1, 2, 3]} for task in TASKS]

    @classmethod
    def list_tasks(cls, split: str) -> Any:
        return cls.KEPT

    def setup(self) -> None:
        self.KEPT[0]["left"].append(0)


# Episodes


class OwnConstructor(Healthy):
    RULE, METHOD, WORDS = "constructor", "__init__", "TypeError"

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)


class SetupFails(Healthy):
    RULE, METHOD, WORDS = "setup", "setup", "KeyError"

    def setup(self) -> None:
        self.board = self.task_spec["board"]


class PromptIsNone(Healthy):
    RULE, METHOD = "prompt", "get_prompt"

    def get_prompt(self) -> Any:
        return None


class PromptRaises(Healthy):
    RULE, METHOD, WORDS = "prompt", "get_prompt", "AttributeError"

    def get_prompt(self) -> Any:
        return self.board


class PromptEmpty(Healthy):
    RULE, METHOD = "prompt-empty", "get_prompt"

    def get_prompt(self) -> Any:
        return "  "


class PromptDrawn(Healthy):
    RULE, METHOD = "prompt-repeat", "get_prompt"

    def get_prompt(self) -> Any:
        return f"{self.task_spec['question']} Hint: {random.random()}"


class AnswerInPrompt(Healthy):
    RULE, METHOD, WORDS = "prompt-answer", "get_prompt", "'answer'"

    def get_prompt(self) -> Any:
        return f"{self.task_spec['question']} It is one of 1, {self.task_spec['answer']}, 3."


class TeardownNeedsMore(Healthy):
    RULE, METHOD, WORDS = "teardown", "teardown", "AttributeError"

    async def teardown(self) -> None:
        self.connection.close()


class ThreadLeft(Healthy):
    RULE, METHOD, WORDS = "leak-threads", "setup", "left-behind"

    def setup(self) -> None:
        threading.Thread(target=time.sleep, args=(3,), name="left-behind", daemon=True).start()


class FileLeft(Healthy):
    RULE, METHOD, WORDS = "leak-files", "setup", "socket"
    KEPT: ClassVar[Any] = ()

    def setup(self) -> None:
        FileLeft.KEPT = (*FileLeft.KEPT, socket.socket())


class ProcessLeft(Healthy):
    RULE, METHOD, WORDS = "leak-processes", "setup", ""
    KEPT: ClassVar[Any] = ()

    def setup(self) -> None:
        command = [sys.executable, "-S", "-c", "import time; time.sleep(3)"]
        ProcessLeft.KEPT = (*ProcessLeft.KEPT, subprocess.Popen(command, stdin=subprocess.DEVNULL))


class StateOnTheClass(Healthy):
    RULE, METHOD, WORDS = "shared-state", "moves", "'moves'"
    moves: ClassVar[list[str]] = []

    @tool
    def move(self, to: str) -> ToolOutput:
        """Move.

        Args:
            to: Where.
        """
        self.moves.append(to)
        return ToolOutput(blocks=[TextBlock(text=f"{len(self.moves)} moves")])


class StateInTheModule(Healthy):
    RULE, METHOD = "shared-state", ""

    def setup(self) -> None:
        CURRENT["question"] = self.task_spec["question"]

    @tool
    def look(self) -> ToolOutput:
        """Look."""
        return ToolOutput(blocks=[TextBlock(text=CURRENT["question"])])


CURRENT: dict[str, str] = {}


class SecretInPrompt(Healthy):
    RULE, METHOD, WORDS = "secret-prompt", "get_prompt", "'token'"

    def get_prompt(self) -> Any:
        return f"{self.task_spec['question']} Your token is {self.secrets.get('token', 'missing')}"


class SecretInOutput(Healthy):
    RULE, METHOD, WORDS = "secret-output", "call", "'api_key'"

    @tool
    def call(self) -> ToolOutput:
        """Call somebody."""
        return ToolOutput(blocks=[TextBlock(text=f"401 for key {self.secrets.get('api_key')}")])


class SecretInLog(Healthy):
    RULE, METHOD, WORDS = "secret-log", "setup", "'api_key'"

    def setup(self) -> None:
        logging.getLogger("mine").debug("opened with %s", self.secrets.get("api_key"))


# Tools


class ToolCannotBe(Healthy):
    RULE, METHOD = "tools", "guess"

    @tool
    def guess(self, *words: str) -> ToolOutput:
        """Guess."""
        return ToolOutput(blocks=[])


class NoTools(Environment):
    """Has a prompt and nothing else."""

    RULE, METHOD, WORDS = "tools-none", "", "@tool"
    list_splits = vars(Healthy)["list_splits"]
    num_tasks = vars(Healthy)["num_tasks"]
    get_task = vars(Healthy)["get_task"]
    get_prompt = Healthy.get_prompt


class NoDocstring(Healthy):
    RULE, METHOD = "tool-doc", "skip"

    @tool
    def skip(self) -> ToolOutput:
        return ToolOutput(blocks=[TextBlock(text="skipped")])


class NothingSaid(Healthy):
    RULE, METHOD, WORDS = "parameter-doc", "go", "'steps'"

    @tool
    def go(self, steps: int) -> ToolOutput:
        """Go."""
        return ToolOutput(blocks=[TextBlock(text="gone")])


class Odd(BaseModel):
    """A parameter whose schema is none."""

    word: str = Field(description="A word.", json_schema_extra={"type": "word"})


class BadSchema(Healthy):
    RULE, METHOD = "tool-schema", "say"

    @tool
    def say(self, params: Odd) -> ToolOutput:
        """Say a word."""
        return ToolOutput(blocks=[TextBlock(text=params.word)])


class ReturnsText(Healthy):
    RULE, METHOD, WORDS = "tool-output", "read", "str"

    @tool
    def read(self) -> Any:
        """Read."""
        return "text"


class BlocksOfText(Healthy):
    RULE, METHOD, WORDS = "tool-output", "read", "blocks[0]"

    @tool
    def read(self) -> ToolOutput:
        """Read."""
        return ToolOutput.model_construct(blocks=["text"], metadata=None, reward=None, finished=False)


class RewardNaN(Healthy):
    RULE, METHOD, WORDS = "reward", "grade", "nan"

    @tool
    def grade(self) -> ToolOutput:
        """Grade."""
        output = ToolOutput(blocks=[TextBlock(text="graded")])
        output.reward = float("inf") - float("inf")
        return output


class ToolRaises(Healthy):
    RULE, METHOD, WORDS = "tool-raises", "divide", "ZeroDivisionError"

    @tool
    def divide(self, by: int = 0) -> ToolOutput:
        """Divide.

        Args:
            by: The divisor.
        """
        return ToolOutput(blocks=[TextBlock(text=str(1 // (by * 0)))])


class FinalWithoutTerminal(Healthy):
    RULE, METHOD = "terminal", "is_assistant_message_final"

    @classmethod
    def is_assistant_message_final(cls) -> bool:
        return True


class TaskToolMissing(Healthy):
    RULE, METHOD, WORDS = "task-tools", "list_task_tools", "'fly'"

    def list_task_tools(self) -> Any:
        return ListToolsOutput(tools=[ToolSpec(name="fly", description="Fly.", input_schema=None)])


class Sleeps(Healthy):
    RULE, METHOD, WORDS = "blocking", "wait", "time.sleep()"

    @tool
    async def wait(self) -> ToolOutput:
        """Wait."""
        time.sleep(0.001)
        return ToolOutput(blocks=[TextBlock(text="waited")])


class SleepsByItsOwnName(Healthy):
    RULE, METHOD, WORDS = "blocking", "wait", "time.sleep()"

    @tool
    async def wait(self) -> ToolOutput:
        """Wait."""
        nap(0.001)
        return ToolOutput(blocks=[TextBlock(text="waited")])


class AsksASocket(Healthy):
    RULE, METHOD, WORDS = "blocking", "ask", "a socket's"

    @tool
    async def ask(self) -> ToolOutput:
        """Ask."""
        one, other = socket.socketpair()
        with one, other:
            one.sendall(b"hello")
            return ToolOutput(blocks=[TextBlock(text=other.recv(5).decode())])


class RunsAProgram(Healthy):
    RULE, METHOD, WORDS = "blocking", "run", "blocks"

    @tool
    async def run(self) -> ToolOutput:
        """Run a program."""
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        return ToolOutput(blocks=[TextBlock(text="ran")])


class Computes(Healthy):
    RULE, METHOD, WORDS = "blocking", "compute", "held the event loop"

    @tool
    async def compute(self) -> ToolOutput:
        """Compute."""
        end = time.thread_time() + 0.3
        while time.thread_time() < end:
            pass
        return ToolOutput(blocks=[TextBlock(text="computed")])


class AwaitsWell(Healthy):
    """Nothing is wrong with it: it waits, reads a socket and fails on purpose, as it should."""

    async def setup(self) -> None:
        await asyncio.sleep(0.001)
        self.pair = socket.socketpair()
        for end in self.pair:
            end.setblocking(False)

    async def teardown(self) -> None:
        for end in self.pair:
            end.close()

    @tool
    async def talk(self) -> ToolOutput:
        """Talk."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.pair[0], b"hello")
        return ToolOutput(blocks=[TextBlock(text=(await loop.sock_recv(self.pair[1], 5)).decode())])

    @tool
    def nap(self) -> ToolOutput:
        """Sleep, where that blocks nobody."""
        time.sleep(0.001)
        return ToolOutput(blocks=[TextBlock(text="slept")])

    @tool
    def refuse(self) -> ToolOutput:
        """Refuse."""
        raise ToolError("on purpose")


FAULTS = [value for value in list(globals().values()) if isinstance(value, type) and vars(value).get("RULE")]
