"""An environment with tools of a FastMCP server, which runs unchanged on the existing `openenv` package and on ours."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any


def load(package: Any) -> SimpleNamespace:
    """The environments, over the names of a package."""
    from fastmcp import FastMCP

    Action, Observation, State = package.Action, package.Observation, package.State

    class Said(Observation):
        text: str = ""

    class Say(Action):
        text: str

    class Counter(package.MCPEnvironment):
        """Tools with a state, and an action that is none."""

        def __init__(self) -> None:
            server = FastMCP("counter")
            self.count = 0
            self._state = State(episode_id=None, step_count=0)

            @server.tool
            def add(by: int, twice: bool = False) -> int:
                """Add to the count."""
                self.count += by * (2 if twice else 1)
                return self.count

            @server.tool
            def fail(why: str) -> str:
                """Fail."""
                raise ValueError(why)

            @server.tool
            async def wait(seconds: float) -> str:
                """Wait."""
                await asyncio.sleep(seconds)
                return "waited"

            @server.tool
            def table() -> dict[str, Any]:
                """A table."""
                return {"rows": [1, 2], "name": "t"}

            super().__init__(server)

        def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Any:
            self.count = 0
            self._state = State(episode_id=episode_id, step_count=0)
            return Observation(metadata={"ready": True})

        def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
            self._state.step_count += 1
            return super().step(action, timeout_s=timeout_s, **kwargs)

        async def step_async(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
            self._state.step_count += 1
            return await super().step_async(action, timeout_s=timeout_s, **kwargs)

        def _step_impl(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
            return Said(text=f"no tool: {type(action).__name__}", reward=-1.0)

        @property
        def state(self) -> Any:
            return self._state

    class Own(Counter):
        """Its actions are a model of its own."""

        def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
            return package.MCPEnvironment.step(self, action, timeout_s=timeout_s, **kwargs)

        step_async = package.MCPEnvironment.step_async

    class Quoted(package.CallToolAction):
        """Its arguments may be text that holds JSON."""

        @classmethod
        def model_validate(cls, data: Any, **more: Any) -> Any:
            import json

            if isinstance(data.get("arguments"), str):
                data = {**data, "arguments": json.loads(data["arguments"])}
            return super().model_validate(data, **more)

    kinds = {
        "counter": (Counter, package.CallToolAction, package.CallToolObservation),
        "any_action": (Counter, Action, Observation),
        "own_action": (Own, Say, Said),
        "quoted": (Counter, Quoted, package.CallToolObservation),
    }
    return SimpleNamespace(kinds=kinds, Counter=Counter, Own=Own, Said=Said, Say=Say)
