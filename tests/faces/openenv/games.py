"""Environments written for OpenEnv, that do what their tests ask of them."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from typing import Any

from fastmcp import FastMCP

from ors.openenv import Action, Environment, Observation, State
from ors.openenv.mcp_environment import MCPEnvironment

LIVES: Counter[str] = Counter()
"""How many instances were made and closed, by `made` and `closed`."""
GATES: dict[str, threading.Event] = {}
ENTERED: dict[str, threading.Event] = {}


def gate(name: str) -> tuple[threading.Event, threading.Event]:
    """What says that a step waits, and what lets it go on."""
    ENTERED[name], GATES[name] = threading.Event(), threading.Event()
    return ENTERED[name], GATES[name]


class Move(Action):
    """do: what the step does. number: what is added. value: what it may need for that."""

    do: str = "add"
    number: int = 0
    value: Any = None


class Seen(Observation):
    total: int = 0
    filling: Any = None


class Sums(State):
    total: int = 0
    seed: int | None = None
    split: str | None = None


class Adder(Environment[Move, Seen, Sums]):
    """Adds up."""

    def __init__(self) -> None:
        super().__init__()
        LIVES["made"] += 1
        self._now = Sums()
        self._threads: set[int] = {threading.get_ident()}

    def reset(self, seed: int | None = None, episode_id: str | None = None, split: str | None = None) -> Seen:
        self._threads.add(threading.get_ident())
        self._now = Sums(episode_id=episode_id, step_count=0, seed=seed, split=split)
        return Seen(metadata={"begun": True} if split == "told" else {})

    def step(self, action: Move, timeout_s: float | None = None, hint: str | None = None) -> Seen:
        self._threads.add(threading.get_ident())
        self._now.step_count += 1
        self._now.total += action.number
        value = action.value
        match action.do:
            case "fail":
                raise RuntimeError("it fell over")
            case "wait":
                ENTERED[value].set()
                assert GATES[value].wait(30)
            case "sleep":
                time.sleep(value)
            case "reward":
                return Seen(total=self._now.total, reward=value)
            case "nan":
                return Seen(total=self._now.total, reward=math.nan)
            case "fill":
                return Seen(total=self._now.total, filling="x" * value)
            case "holes":
                return Seen(filling=[math.nan, math.inf, {1}])
            case "object":
                return Seen(filling=object())
            case "told":
                return Seen(filling={"timeout_s": timeout_s, "hint": hint}, metadata={"note": "seen"})
            case "threads":
                return Seen(total=len(self._threads))
            case "end":
                return Seen(total=self._now.total, done=True, reward=1.0)
        return Seen(total=self._now.total)

    @property
    def state(self) -> Sums:
        self._threads.add(threading.get_ident())
        return self._now

    def close(self) -> None:
        LIVES["closed"] += 1


class Alone(Adder):
    """For one session at a time."""

    SUPPORTS_CONCURRENT_SESSIONS = False


class Broken(Adder):
    """Cannot be made."""

    def __init__(self) -> None:
        raise OSError("no disk")


class Bare(Environment[Action, Observation, State]):
    """As many of the hub are written: nothing is called that need not be, and `reset` takes nothing."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        self.steps = 0

    def reset(self) -> Observation:  # type: ignore[override]
        self.steps = 0
        return Observation(metadata={"hello": "there"})

    def step(self, action: Action) -> Observation:  # type: ignore[override]
        self.steps += 1
        return Observation(done=self.steps > 2, reward=self.steps)

    @property
    def state(self) -> State:
        return State(episode_id="bare", step_count=self.steps)


class Rows(Adder):
    """Has tasks, as the guide describes them."""

    ROWS = {"train": 5, "test": 2, "holdout": 1}  # noqa: RUF012 - nobody changes it

    def list_splits(self) -> list[Any]:
        return ["train", "test", "holdout", {"name": "extra", "type": "train"}]

    def num_tasks(self, split: str) -> int:
        return self.ROWS[split]

    async def list_tasks(self, split: str) -> list[Any]:
        return [self.get_task(split, index) for index in range(self.ROWS[split])]

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        if not 0 <= index < self.ROWS[split]:
            raise IndexError(index)
        return {"id": f"{split}-{index}", "index": index}

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[Any]:
        return [self.get_task(split, index) for index in range(self.ROWS[split])[start:stop]]


class Streamed(Adder):
    """Has a stream, which cannot be counted."""

    def list_splits(self) -> list[str]:
        return ["train"]

    def num_tasks(self, split: str) -> int:
        raise NotImplementedError

    def get_task(self, split: str, index: int) -> Any:
        raise OSError("the stream broke")


class Toolbox(MCPEnvironment):
    """Has tools of its own, which count."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        server = FastMCP("tools")
        self.count = 0

        @server.tool
        def add(a: int, b: int = 1) -> int:
            """Add two numbers."""
            self.count += 1
            return a + b

        @server.tool
        def fail() -> str:
            """Fall over."""
            raise ValueError("it fell over")

        super().__init__(server)
        self._now = State(step_count=0)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Observation:
        self._now = State(episode_id=episode_id, step_count=0)
        return Observation(metadata={"ready": True})

    def step(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Observation:
        self._now.step_count += 1
        seen = super().step(action, timeout_s, **kwargs)
        seen.reward = self.count * 0.5
        return seen

    async def step_async(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Observation:
        self._now.step_count += 1
        seen = await super().step_async(action, timeout_s, **kwargs)
        seen.reward = self.count * 0.5
        return seen

    def _step_impl(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Observation:
        return Observation(metadata={"did": "nothing"})

    @property
    def state(self) -> State:
        return self._now
