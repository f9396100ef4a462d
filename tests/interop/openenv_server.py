"""Environments on the server of the `openenv` package: openenv_server.py PORT {counter|tools}."""

from __future__ import annotations

import sys
import time
from typing import Any
from uuid import uuid4

import uvicorn
from openenv.core.env_server import Environment, create_app
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Action, Observation, State


class Add(Action):
    number: int
    wait_s: float = 0.0
    reply: int = 0


class Total(Observation):
    total: int
    filling: str = ""


class Sums(State):
    total: int = 0


class Counter(Environment[Add, Total, Sums]):
    """Adds up; a number below zero is an error, and 10 is the end."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = Sums(episode_id=str(uuid4()))

    def reset(self, seed: int | None = None, episode_id: str | None = None, start: int = 0, **kwargs: Any) -> Total:
        self._state = Sums(episode_id=episode_id or str(uuid4()), total=start)
        return Total(total=start, reward=None, done=False)

    def step(self, action: Add, timeout_s: float | None = None, **kwargs: Any) -> Total:
        time.sleep(action.wait_s)
        if action.number < 0:
            raise ValueError("only numbers from 0 on are added")
        self._state.step_count += 1
        self._state.total += action.number
        total = self._state.total
        return Total(total=total, filling="é🙂" * action.reply, reward=total / 10, done=total >= 10)

    @property
    def state(self) -> Sums:
        return self._state

    def list_splits(self) -> list[Any]:
        return ["train", "holdout"]

    def num_tasks(self, split: str) -> int:
        return 3

    def get_task(self, split: str, index: int) -> Any:
        if not 0 <= index < 3:
            raise IndexError(index)
        return {"start": index}

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[Any]:
        return [{"start": index} for index in range(3)][start:stop]


def tools() -> Any:
    from fastmcp import FastMCP

    server = FastMCP("tools")

    @server.tool
    def double(number: int) -> int:
        """Twice a number."""
        return number * 2

    @server.tool
    def fail() -> str:
        """Fail."""
        raise ValueError("on purpose")

    class Tools(MCPEnvironment):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            super().__init__(server)
            self._state = State(episode_id="", step_count=0)

        def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Observation:
            self._state = State(episode_id=episode_id or "one", step_count=0)
            return Observation(done=False, reward=None, metadata={"ready": True})

        def _step_impl(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Observation:
            return Observation(done=False)

        @property
        def state(self) -> State:
            return self._state

    return create_app(Tools, CallToolAction, CallToolObservation, env_name="tools", max_concurrent_envs=8)


if __name__ == "__main__":
    made = (
        tools()
        if sys.argv[2] == "tools"
        else create_app(Counter, Add, Total, env_name="counter", max_concurrent_envs=16, state_cls=Sums)
    )
    uvicorn.run(made, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
