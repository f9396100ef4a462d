"""An environment that counts, for servers of this process: tests hold its steps and see how often each ran."""

from __future__ import annotations

import threading
from collections import Counter as Counts
from typing import Any

from ors.openenv import Action, EnvClient, Environment, Observation, State
from ors.openenv.mcp_types import (
    CallToolAction,
    CallToolObservation,
    ListToolsAction,
    ListToolsObservation,
    Tool,
    ToolError,
)


class Add(Action):
    number: int = 1
    name: str = ""
    hold: bool = False
    filling: int = 0


class Total(Observation):
    total: int
    filling: str = ""


class Counter(Environment[Add, Total, State]):
    """Adds up; 10 is the end. RAN: how often the step of each name ran."""

    RAN: Counts[str] = Counts()
    HOLDING = threading.Event()
    RELEASED = threading.Event()

    def __init__(self) -> None:
        super().__init__()
        self.total = 0
        self.steps = 0

    def reset(self, seed: int | None = None, start: int = 0, fail: bool = False, **kwargs: Any) -> Total:
        if fail:
            raise ValueError("not this time")
        self.total, self.steps = start, 0
        return Total(total=start)

    def step(self, action: Add, timeout_s: float | None = None, **kwargs: Any) -> Total:
        self.RAN[action.name] += 1
        if action.hold:
            self.HOLDING.set()
            assert self.RELEASED.wait(30)
        if action.number < 0:
            raise ValueError("only numbers from 0 on are added")
        self.total += action.number
        self.steps += 1
        filling = "é🙂" * action.filling
        return Total(total=self.total, filling=filling, reward=self.total / 10, done=self.total >= 10)

    @property
    def state(self) -> State:
        return State(step_count=self.steps, episode_id=str(self.total))

    def list_splits(self) -> list[str]:
        return ["train"]

    def num_tasks(self, split: str) -> int:
        return 30

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        return {"start": index}


class Client(EnvClient[Add, Total, State]):
    """Its types are all that there is to say."""


class Doubles(Environment[Any, Any, State]):
    """One tool, called by steps, that is paid for what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self._state = State()

    def reset(self, seed: int | None = None, **kwargs: Any) -> Observation:
        self._state = State()
        return Observation(metadata={"ready": True})

    def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Observation:
        if isinstance(action, ListToolsAction):
            schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
            return ListToolsObservation(tools=[Tool(name="double", description="Twice.", input_schema=schema)])
        assert isinstance(action, CallToolAction)
        self._state.step_count += 1
        if action.tool_name != "double":
            error = ToolError(error_type="tool_not_found", message=f"there is no {action.tool_name}")
            return CallToolObservation(tool_name=action.tool_name, error=error)
        doubled = 2 * action.arguments["number"]
        result = {"content": [], "data": doubled, "is_error": False}
        return CallToolObservation(tool_name="double", result=result, reward=0.5, done=doubled > 10)

    @property
    def state(self) -> State:
        return self._state
