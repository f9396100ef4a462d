"""Environments in the shapes of those that people have published, written here from scratch: what is said of each.

LIKE: where the shape is from. SAID: the rules that are broken by it, and rightly; the others hold.
"""

from __future__ import annotations

import asyncio
import functools
import random
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from ors import Environment, ListToolsOutput, Split, TextBlock, ToolError, ToolOutput, tool

JSONObject = dict[str, Any]


class Shape(Environment):
    """What all of them have."""

    LIKE: ClassVar[str]
    SAID: ClassVar[set[str]] = set()


# A list of questions from a data set, one tool with a model of parameters, a prompt that is one text.


class AnswerParams(BaseModel):
    """The answer to submit."""

    answer: str


class WordProblems(Shape):
    """Word problems, whose solutions end in the answer."""

    LIKE = "openrewardstandard/python-sdk: examples/gsm8k_server.py"
    SAID: ClassVar[set[str]] = {"parameter-doc"}

    ROWS: ClassVar[list[JSONObject]] = [
        {
            "id": f"{split}-{n}",
            "question": f"Ada has {n} boxes of {n + 7} pens. How many pens has she?",
            "answer": f"She has {n} * {n + 7} = <<{n}*{n + 7}={n * (n + 7)}>> pens.\n#### {n * (n + 7)}",
        }
        for split, start in (("train", 3), ("test", 70))
        for n in range(start, start + 20)
    ]

    @classmethod
    def list_splits(cls) -> list[Any]:
        return [Split(name="train", type="train"), Split(name="test", type="test")]

    @classmethod
    def list_tasks(cls, split: str) -> list[JSONObject]:
        return [row for row in cls.ROWS if row["id"].startswith(split)]

    def __init__(self, task_spec: JSONObject, secrets: dict[str, str] = {}) -> None:
        super().__init__(task_spec)

    async def get_prompt(self) -> list[TextBlock]:
        return [TextBlock(text=str(self.task_spec["question"]))]

    @tool
    async def submit(self, params: AnswerParams) -> ToolOutput:
        """Submit the final answer."""
        right = params.answer.strip() == str(self.task_spec["answer"]).rpartition("#### ")[2]
        text = "Correct!" if right else "Incorrect."
        return ToolOutput(blocks=[TextBlock(text=text)], reward=float(right), finished=True)


# Shared tools, and some that the task adds.


class EchoParams(BaseModel):
    text: str = Field(description="What to say again.")


class NoParams(BaseModel):
    """Nothing is needed."""


class Echo(Shape):
    """Says it again; some tasks may shout."""

    LIKE = "huggingface/trl: tests/experimental/_openreward_echo_env.py"

    @classmethod
    def list_splits(cls) -> list[str]:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> list[JSONObject]:
        return [{"id": str(n), "target": "hello", "loud": n % 2 == 0} for n in range(3)]

    def get_prompt(self) -> list[TextBlock]:
        return [TextBlock(text="Use the echo tool, then finish.")]

    @tool
    def echo(self, params: EchoParams) -> ToolOutput:
        """Say it again."""
        right = params.text == self.task_spec["target"]
        return ToolOutput(blocks=[TextBlock(text=params.text)], reward=1.0 if right else 0.0, finished=right)

    @tool(shared=False)
    def shout(self, params: EchoParams) -> ToolOutput:
        """Say it louder."""
        return ToolOutput(blocks=[TextBlock(text=params.text.upper())])

    @tool
    def finish(self, params: NoParams) -> ToolOutput:
        """End the episode."""
        return ToolOutput(blocks=[TextBlock(text="Done.")], finished=True)

    def list_task_tools(self) -> ListToolsOutput:
        specs = [entry for entry in _specs(type(self)) if entry.name == "shout" and self.task_spec["loud"]]
        return ListToolsOutput(tools=specs)


def _specs(cls: type) -> list[Any]:
    from ors.tools import tools_of

    return [entry.spec for entry in tools_of(cls).values()]


# Too many tasks to list: counted and picked, generated from the index, a nested solution.


class Houses(Shape):
    """Puzzles about who lives where."""

    LIKE = "GeneralReasoning/env-zebra: zebra.py"

    NAMES: ClassVar[list[str]] = ["Alice", "Bertrand", "Chandra", "Dmitri"]

    @classmethod
    def list_splits(cls) -> list[Any]:
        return [{"name": "train", "type": "train"}, {"name": "test", "type": "test"}]

    @classmethod
    def list_tasks(cls, split: str) -> list[JSONObject]:
        raise NotImplementedError("there are too many; use num_tasks and get_task")

    @classmethod
    async def num_tasks(cls, split: str) -> int:
        return {"train": 10_000, "test": 500}[split]

    @classmethod
    async def get_task(cls, split: str, index: int) -> JSONObject:
        if not 0 <= index < await cls.num_tasks(split):
            raise IndexError(index)
        names = random.Random(f"{split} {index}").sample(cls.NAMES, 4)
        return {"id": f"{split}-{index}", "size": 4, "houses": dict(zip("1234", names, strict=True))}

    def get_prompt(self) -> list[TextBlock]:
        first = self.task_spec["houses"]["1"]
        return [TextBlock(text=f"{', '.join(self.NAMES)} live in four houses; {first} in the first. Who in which?")]

    @tool
    async def answer(self, houses: dict[str, str]) -> ToolOutput:
        """Say who lives where.

        Args:
            houses: Names by the number of the house.
        """
        share = sum(houses.get(key) == name for key, name in self.task_spec["houses"].items()) / 4
        return ToolOutput(blocks=[TextBlock(text=f"{share:.0%} are right.")], reward=share, finished=True)


# A game that begins in get_prompt, as many of them do; a checked task; tries that run out.


class WordTask(BaseModel):
    """What a task says."""

    word_id: int
    tries: int = 6


WORDS = ["crane", "pilot", "sugar", "money", "brick", "ghost", "flame", "dwarf"]


class GuessTheWord(Shape):
    """A word of five letters, to be guessed."""

    LIKE = "EnvCommons: wordle, sokoban, countdown and other games whose state begins in get_prompt"

    @classmethod
    def list_splits(cls) -> list[str]:
        return ["train", "test"]

    @classmethod
    def list_tasks(cls, split: str) -> list[JSONObject]:
        return [{"word_id": n, "tries": 6} for n in range(len(WORDS)) if (n % 4 == 3) == (split == "test")]

    def __init__(self, task_spec: JSONObject, secrets: dict[str, str] = {}) -> None:
        super().__init__(task_spec)
        self.task = WordTask.model_validate(task_spec)

    async def get_prompt(self) -> list[TextBlock]:
        self.word, self.left = WORDS[self.task.word_id], self.task.tries
        return [TextBlock(text=f"Guess a word of five letters; {self.left} tries.")]

    @tool
    async def guess(self, word: str) -> ToolOutput:
        """Guess.

        Args:
            word: Five letters.
        """
        if len(word) != 5:
            raise ToolError("a word has five letters")
        self.left -= 1
        marks = "".join("G" if a == b else "Y" if a in self.word else "-" for a, b in zip(word, self.word, strict=True))
        won = word == self.word
        done = won or self.left == 0
        return ToolOutput(blocks=[TextBlock(text=marks)], reward=float(won) if done else None, finished=done)


# Other players are models: a key comes as a secret.


class PublicGoods(Shape):
    """A game with players who are models, which need a key."""

    LIKE = "EnvCommons/public_goods_game: env.py"

    @classmethod
    def list_splits(cls) -> list[str]:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> list[JSONObject]:
        return [{"seed": seed, "rounds": 3} for seed in range(12)]

    def __init__(self, task_spec: JSONObject, secrets: dict[str, str] = {}) -> None:
        super().__init__(task_spec, secrets)
        self._key = secrets.get("openai_api_key")
        if not self._key:
            raise ValueError("openai_api_key is required")

    def setup(self) -> None:
        self.random = random.Random(self.task_spec["seed"])
        self.round = 0

    def get_prompt(self) -> str:
        return f"Each of {self.task_spec['rounds']} rounds you give 0 to 20 coins to the common pot."

    @tool
    async def contribute(self, coins: int) -> ToolOutput:
        """Give coins.

        Args:
            coins: From 0 to 20.
        """
        if coins not in range(21):
            raise ToolError("0 to 20 coins")
        await asyncio.sleep(0)  # here the others are asked
        self.round += 1
        share = (coins + sum(self.random.randrange(21) for _ in range(3))) * 0.4
        over = self.round == self.task_spec["rounds"]
        return ToolOutput(blocks=[TextBlock(text=f"Your share: {share:.1f}")], reward=share / 20, finished=over)


# A sandbox for each session, and tools that are described anew.


class Repository(Shape):
    """A folder of files to mend, with a shell."""

    LIKE = "ApGa/SWE-rebench-V2-OpenRewardEnv: server.py, sandbox_backends.py"

    @classmethod
    def list_splits(cls) -> list[str]:
        return ["test"]

    @classmethod
    async def num_tasks(cls, split: str) -> int:
        return 40

    @classmethod
    async def get_task(cls, split: str, index: int) -> JSONObject:
        if not 0 <= index < 40:
            raise IndexError(index)
        return {"instance": f"demo__demo-{index}", "file": f"module_{index}.py", "timeout": 5.0}

    @classmethod
    @functools.cache
    def list_tools(cls) -> ListToolsOutput:
        listed = super().list_tools()
        return ListToolsOutput(
            tools=[
                spec.model_copy(update={"description": f"{spec.description} It runs in the repository."})
                if spec.name == "bash"
                else spec
                for spec in listed.tools
            ]
        )

    async def setup(self) -> None:
        self.folder = Path(await asyncio.to_thread(tempfile.mkdtemp))
        await asyncio.to_thread((self.folder / self.task_spec["file"]).write_text, "def answer():\n    return 41\n")

    async def teardown(self) -> None:
        if folder := getattr(self, "folder", None):
            await asyncio.to_thread(shutil.rmtree, folder)

    def get_prompt(self) -> list[TextBlock]:
        return [TextBlock(text=f"answer() in {self.task_spec['file']} must return 42.")]

    @tool
    async def bash(self, command: str) -> ToolOutput:
        """Run a command.

        Args:
            command: For the shell.
        """
        shell = await asyncio.create_subprocess_shell(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        out, _ = await asyncio.wait_for(shell.communicate(), self.task_spec["timeout"])
        return ToolOutput(blocks=[TextBlock(text=out.decode("utf-8", "replace") or "(nothing)")])

    @tool
    def submit(self) -> ToolOutput:
        """Have it tested."""
        right = "return 42" in (self.folder / self.task_spec["file"]).read_text()
        return ToolOutput(blocks=[TextBlock(text="Tested.")], reward=float(right), finished=True)


# A base with many subclasses, each a data set.


class _DataSet(Shape):
    """One of many data sets."""

    LIKE = "EnvCommons/ReasoningGym: base_env.py, server.py"
    generate: ClassVar[Any]

    @classmethod
    def list_splits(cls) -> list[str]:
        return ["train", "test"]

    @classmethod
    def list_tasks(cls, split: str) -> list[JSONObject]:
        first = 0 if split == "train" else 1_000_000
        return [{"seed": first + n} for n in range(200)]

    def setup(self) -> None:
        self.question, self.right = self.generate(random.Random(self.task_spec["seed"]))

    def get_prompt(self) -> str:
        return str(self.question)

    @tool
    def answer(self, answer: str) -> ToolOutput:
        """Answer.

        Args:
            answer: And nothing else.
        """
        right = answer.strip() == self.right
        return ToolOutput(blocks=[TextBlock(text="Right." if right else "Wrong.")], reward=float(right), finished=True)


class Sums(_DataSet):
    """Sums."""

    def generate(self, chance: random.Random) -> tuple[str, str]:  # type: ignore[override]
        one, other = chance.randrange(10**4), chance.randrange(10**4)
        return f"What is {one} + {other}?", str(one + other)


class Reversals(_DataSet):
    """Words from behind."""

    def generate(self, chance: random.Random) -> tuple[str, str]:  # type: ignore[override]
        word = "".join(chance.choices("abcdefgh", k=9))
        return f"Write {word} from behind.", word[::-1]


SHAPES = (WordProblems, Echo, Houses, GuessTheWord, PublicGoods, Repository, Sums, Reversals)
