"""The environments that the clients play; run as a program it serves them: `environments.py PORT [SETTING=JSON …]`.

Tools take one pydantic model and are annotated as existing environments are, so that this file can also be served by
the peers, to see what their clients make of their own servers.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from typing import Any, Literal

from pydantic import BaseModel, Field

from ors import (
    Environment,
    ImageBlock,
    ListToolsOutput,
    Server,
    Split,
    TextBlock,
    ToolError,
    ToolOutput,
    ToolSpec,
    terminal,
    tool,
)

try:
    from .texts import image_of, text_of, whole_plane
except ImportError:
    # as a program it is no part of a package
    from texts import image_of, text_of, whole_plane

PIXEL = base64.b64encode(image_of(58)).decode()


class Answer(BaseModel):
    answer: str


class Style(BaseModel):
    tone: Literal["plain", "formal"] = "plain"
    words: list[str] = Field(default_factory=list, description="What must occur.")


class Essay(BaseModel):
    """A schema with references, choices and what may be left out, for the providers' formats."""

    topic: str
    style: Style = Style()
    limit: int | None = Field(default=None, ge=1)


class Named(BaseModel):
    kind: str
    size: int = 0
    seed: int = 0


class Echoed(BaseModel):
    text: str
    value: Any = None


class Spoken(BaseModel):
    message: str


class Pause(BaseModel):
    seconds: float


class Token(BaseModel):
    token: str


def said(text: str, **rest: Any) -> ToolOutput:
    return ToolOutput(blocks=[TextBlock(text=text)], **rest)


class Probe(Environment):
    """Does what its task and its tools' inputs ask for."""

    lives: dict[str, list[str]] = {}
    """What happened to the episodes whose task has a token, for later episodes to ask about."""

    def __init__(self, task_spec: Any = {}, secrets: dict[str, str] = {}) -> None:  # noqa: B006 - never changed
        super().__init__(task_spec)
        self.secrets_given = secrets
        self.waits = 0
        self.prompts = 0
        self.note("made")

    def note(self, event: str) -> None:
        if token := self.task_spec.get("token"):
            Probe.lives.setdefault(str(token), []).append(event)

    async def setup(self) -> None:
        await asyncio.sleep(float(self.task_spec.get("setup_s", 0)))
        if message := self.task_spec.get("setup_error"):
            raise RuntimeError(str(message))
        self.note("ready")

    async def teardown(self) -> None:
        self.note("gone")

    @classmethod
    def list_splits(cls) -> list[Any]:
        return [Split(name="train", type="train"), "test", "odd"]

    @classmethod
    def list_tasks(cls, split: str) -> list[dict[str, Any]]:
        count = {"train": 20, "test": 1000, "odd": 3}[split]
        return [{"split": split, "index": index, "question": f"What is {index}+{index}?"} for index in range(count)]

    def get_prompt(self) -> list[Any]:
        self.prompts += 1
        question = f"  \u3000{self.task_spec.get('question', 'Nothing is asked.')}\n  (asked {self.prompts} time)\n"
        return [
            TextBlock(text=question, detail={"index": self.task_spec.get("index")}),
            ImageBlock(data=PIXEL, mimeType="image/bmp", detail={"alt": "a pixel"}),
        ]

    @tool
    async def submit(self, args: Answer) -> ToolOutput:
        """Submit the answer.

        It ends the episode.
        """
        right = args.answer == str(2 * int(self.task_spec.get("index", 0)))
        return said("right" if right else "wrong", reward=1.0 if right else 0.0, finished=True)

    @tool
    def guess(self, args: Answer) -> ToolOutput:
        """Guess without an end; this one is a plain function."""
        time.sleep(0.01)
        return said(f"  {args.answer}?", reward=-0.125)

    @tool
    async def hint(self) -> ToolOutput:
        """Takes nothing."""
        return said("Add the two numbers.")

    @tool
    async def write(self, args: Essay) -> ToolOutput:
        """Write an essay."""
        return said(args.model_dump_json())

    @tool
    async def text(self, args: Named) -> ToolOutput:
        """A text made from numbers."""
        if args.kind.startswith("whole:"):
            return said(whole_plane(int(args.kind.partition(":")[2])))
        return said(text_of(args.kind, args.size, args.seed))

    @tool
    async def image(self, args: Named) -> ToolOutput:
        """An image made from numbers."""
        data = base64.b64encode(image_of(args.size, args.seed)).decode()
        return ToolOutput(blocks=[ImageBlock(data=data, mimeType="image/bmp")])

    @tool
    async def mixed(self) -> ToolOutput:
        """Everything that a result can hold."""
        return ToolOutput(
            blocks=[
                TextBlock(text="\n first", detail={"level": 1, "of": [None, True, "\u2028", 0.1]}),
                ImageBlock(data=PIXEL, mimeType="image/bmp", detail={"wide": 1}),
                TextBlock(text=""),
            ],
            metadata={"big": 2**60, "deep": {"list": [[], {}, [1.5]]}, "text": "  \U0001f600"},
            reward=0.1 + 0.2,
            finished=False,
        )

    @tool
    async def echo(self, args: Echoed) -> ToolOutput:
        """What was sent comes back."""
        return said(args.text, metadata={"value": args.value})

    @tool
    async def refuse(self, args: Spoken) -> ToolOutput:
        """Fails on purpose."""
        raise ToolError(args.message)

    @tool
    async def explode(self, args: Spoken) -> ToolOutput:
        """Fails by accident."""
        raise RuntimeError(args.message)

    @tool
    def explode_plainly(self, args: Spoken) -> ToolOutput:
        """Fails by accident, in a plain function."""
        raise LookupError(args.message)

    @tool
    async def misreturn(self) -> ToolOutput:
        """Returns what no tool may return."""
        return "just text"  # type: ignore[return-value]

    @tool
    async def wait(self, args: Pause) -> ToolOutput:
        """Takes its time."""
        self.waits += 1
        await asyncio.sleep(args.seconds)
        return said(str(self.waits))

    @tool
    def wait_plainly(self, args: Pause) -> ToolOutput:
        """Takes its time in a plain function."""
        self.waits += 1
        time.sleep(args.seconds)
        return said(str(self.waits))

    @tool
    async def waited(self) -> ToolOutput:
        """How often this episode was made to wait."""
        return said(str(self.waits))

    @tool
    async def secrets(self) -> ToolOutput:
        """The secrets that arrived."""
        return said(json.dumps(dict(self.secrets_given), sort_keys=True))

    @tool
    async def lived(self, args: Token) -> ToolOutput:
        """What happened to the episode of another task."""
        return said(json.dumps(Probe.lives.get(args.token, [])))


class Other(Environment):
    """Another environment on the same server: a split with the first one's name, one of its own, tools for a task."""

    @classmethod
    def list_splits(cls) -> list[Any]:
        return ["test", Split(name="special", type="train")]

    @classmethod
    async def list_tasks(cls, split: str) -> list[dict[str, Any]]:
        return [{"other": index, "split": split} for index in range(5)]

    async def get_prompt(self) -> list[Any]:
        return [TextBlock(text=f"the other one, task {self.task_spec['other']}")]

    def list_task_tools(self) -> ListToolsOutput:
        if self.task_spec["split"] != "special":
            return ListToolsOutput(tools=[])
        spec = ToolSpec(name="special", description="Only for special tasks.", input_schema=Answer.model_json_schema())
        return ListToolsOutput(tools=[spec])

    @tool
    async def name_it(self) -> ToolOutput:
        """Names the environment."""
        return said("other", reward=2)

    @tool(shared=False)
    async def special(self, args: Answer) -> ToolOutput:
        """Not listed for every task."""
        return said(args.answer, metadata={"special": True})


class Closing(Environment):
    """Takes the agent's final message."""

    @classmethod
    def list_splits(cls) -> list[Any]:
        return ["test"]

    @classmethod
    def list_tasks(cls, split: str) -> list[dict[str, Any]]:
        return [{"closing": True}]

    def get_prompt(self) -> list[Any]:
        return [TextBlock(text="Say something.")]

    @tool
    async def look(self) -> ToolOutput:
        """Look around."""
        return said("nothing")

    @terminal
    @tool
    async def close_with(self, args: Spoken) -> ToolOutput:
        """Takes the last word."""
        return said(args.message, reward=float(len(args.message)), finished=True)


class Indexed(Environment):
    """Has too many tasks to list."""

    @classmethod
    def list_splits(cls) -> list[Any]:
        return ["train"]

    @classmethod
    def list_tasks(cls, split: str) -> list[dict[str, Any]]:
        raise NotImplementedError

    @classmethod
    async def num_tasks(cls, split: str) -> int:
        return 10_000_000

    @classmethod
    async def get_task(cls, split: str, index: int) -> dict[str, Any]:
        if not 0 <= index < 10_000_000:
            raise IndexError(index)
        return {"square": index * index}

    async def get_prompt(self) -> list[Any]:
        return [TextBlock(text=f"Root of {self.task_spec['square']}?")]

    @tool
    async def submit(self, args: Answer) -> ToolOutput:
        """Submit the root."""
        return said("thanks", reward=float(int(args.answer) ** 2 == self.task_spec["square"]), finished=True)


ENVIRONMENTS = [Probe, Other, Closing, Indexed]


if __name__ == "__main__":
    settings = {key: json.loads(value) for key, _, value in (item.partition("=") for item in sys.argv[2:])}
    Server(ENVIRONMENTS, **settings).run(host="127.0.0.1", port=int(sys.argv[1]))
