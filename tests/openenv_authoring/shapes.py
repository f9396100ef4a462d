"""Environments in the shapes of those that people have published, written here from scratch.

The module runs unchanged on the existing `openenv` package and, with its import paths, on ours: `load` gives it the
package of choice.
"""

from __future__ import annotations

import threading
from enum import Enum
from types import SimpleNamespace
from typing import Any
from uuid import uuid4


def load(package: Any) -> SimpleNamespace:
    """The environments, over the names of a package: `Environment`, `Action` and so on."""
    Action, Environment, Observation = package.Action, package.Environment, package.Observation
    State, Transform, CompositeTransform = package.State, package.Transform, package.CompositeTransform
    EnvironmentMetadata = package.EnvironmentMetadata
    RubricBase = package.ExponentialDiscountingTrajectoryRubric

    class Drop(Action):
        column: int

    class Board(Observation):
        board: list[list[int]] = []
        legal_actions: list[int] = []

    class GameState(State):
        board: list[list[int]] = []
        next_player: int = 1

    class Columns(Environment):
        """A board game: `reset` without parameters, which the constructor calls too; a state of its own."""

        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self, opponent: Any = None) -> None:
            super().__init__()
            self._opponent = opponent
            self.reset()

        def reset(self) -> Any:
            self._board = [[0] * 3 for _ in range(2)]
            self._player = 1
            self._state = GameState(episode_id=str(uuid4()), step_count=0, board=self._board)
            return self._observe()

        def step(self, action: Any) -> Any:
            filled = [row[action.column] for row in self._board]
            if 0 not in filled:
                raise ValueError("Invalid action")
            self._board[filled.index(0)][action.column] = self._player
            self._player = -self._player
            self._state = GameState(
                episode_id=self._state.episode_id,
                step_count=self._state.step_count + 1,
                board=self._board,
                next_player=self._player,
            )
            full = all(all(row) for row in self._board)
            return self._observe(reward=1 if full else 0, done=full)

        def _observe(self, reward: Any = 0.0, done: bool = False) -> Any:
            legal = [column for column in range(3) if self._board[1][column] == 0]
            return Board(
                board=self._board, legal_actions=legal, reward=reward, done=done, metadata={"turn": self._player}
            )

        @property
        def state(self) -> Any:
            return self._state

    class Way(str, Enum):  # noqa: UP042  as published ones are
        UP = "UP"
        DOWN = "DOWN"

    class Move(Action):
        action: Way

    class Place(Observation):
        y: int
        message: str

    class Ladder(Environment):
        """Its actions are an enum; it never calls `super().__init__()`."""

        def __init__(self) -> None:
            self._state = State()
            self.y = 0

        def reset(self) -> Any:
            self.y = 0
            self._state = State(episode_id="fixed", step_count=0)
            return Place(y=0, message="bottom")

        def step(self, action: Any) -> Any:
            self.y += 1 if action.action == Way.UP else -1
            self._state.step_count += 1
            return Place(y=self.y, message=action.action.value, reward=-0.1, done=self.y >= 2)

        @property
        def state(self) -> Any:
            return self._state

    class Say(Action):
        message: str

    class Echoed(Observation):
        message: str
        seen: dict[str, Any] = {}

    class Echo(Environment):
        """It says what it was asked with: `reset` takes some names, `step` any."""

        def __init__(self) -> None:
            super().__init__()
            self._state = State(episode_id=None, step_count=0)

        def reset(self, seed: int | None = None, episode_id: str | None = None, topic: str = "none") -> Any:
            self._state = State(episode_id=episode_id, step_count=0)
            return Echoed(message="ready", seen={"seed": seed, "episode_id": episode_id, "topic": topic})

        def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
            self._state.step_count += 1
            if action.message == "raise":
                raise RuntimeError("it broke")
            if action.message == "nan":
                return Echoed(message="nan", seen={"value": float("nan"), "values": [float("inf"), 1.5]})
            if action.message == "odd":
                return Echoed(message="odd", seen={"set": {1}, "tuple": (1, 2), "way": Way.UP, "raw": b"bytes"})
            if action.message == "invalid":
                Echoed(message=None)
            rewards = {"true": True, "three": 3, "half": 0.5, "none": None}
            return Echoed(message=action.message, reward=rewards.get(action.message, 0.0), metadata={"n": 1})

        @property
        def state(self) -> Any:
            return self._state

        def get_metadata(self) -> Any:
            return EnvironmentMetadata(name="Echo!", description="It echoes.", version="2.0", author="nobody")

    class Code(Action):
        code: str

    class Ran(Observation):
        stdout: str = ""
        exit_code: int = 0

    class Short(Transform):
        def __call__(self, observation: Any) -> Any:
            observation.reward = 1 if len(observation.stdout) < 5 else 0
            return observation

    class Noted(Transform):
        def __call__(self, observation: Any) -> Any:
            observation.metadata["noted"] = True
            return observation

    class Coder(Environment):
        """Rewards come from transforms, which it keeps itself; no `super().__init__()`."""

        def __init__(self) -> None:
            self.transform = CompositeTransform([Short(), Noted()])
            self._state = State()

        def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Any:
            self._state = State(episode_id=episode_id or "code", step_count=0)
            return self._apply_transform(Ran())

        def step(self, action: Any) -> Any:
            self._state.step_count += 1
            return self._apply_transform(Ran(stdout=action.code, exit_code=0))

        @property
        def state(self) -> Any:
            return self._state

    class Won(RubricBase):
        def score_trajectory(self, trajectory: Any) -> float:
            return float(trajectory[-1][1].exit_code == 0)

    class Judged(Environment):
        """Asynchronous, and its rewards come from a rubric."""

        def __init__(self) -> None:
            super().__init__(rubric=Won(gamma=0.5))
            self._state = State(episode_id="judged")

        def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Any:
            raise NotImplementedError

        async def reset_async(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Any:
            await self._reset_rubric_async()
            self._state = State(episode_id=episode_id, step_count=0, custom=[1, 2])
            return Ran(stdout=f"seed {seed}")

        def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
            raise NotImplementedError

        async def step_async(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> Any:
            self._state.step_count += 1
            observation = Ran(stdout=action.code, done=self._state.step_count == 3)
            observation.reward = await self._apply_rubric_async(action, observation)
            return observation

        @property
        def state(self) -> Any:
            return self._state

    class Threads(Observation):
        threads: list[str] = []

    class Bound(Environment):
        """It holds a resource that only the thread that made it may use."""

        SUPPORTS_CONCURRENT_SESSIONS = True
        seen: list[tuple[str, int]] = []

        def __init__(self) -> None:
            super().__init__()
            self._thread = threading.get_ident()
            self._count = 0
            self._note("init")

        def _note(self, what: str) -> None:
            self.seen.append((what, threading.get_ident()))
            if threading.get_ident() != self._thread:
                raise RuntimeError(f"{what}: cannot switch to a different thread")

        def reset(self, **kwargs: Any) -> Any:
            self._note("reset")
            return Threads()

        def step(self, action: Any) -> Any:
            self._note("step")
            self._count += 1
            return Threads(reward=float(self._count))

        @property
        def state(self) -> Any:
            self._note("state")
            return State(step_count=self._count)

        def close(self) -> None:
            self._note("close")

    def make_ladder() -> Any:
        """A factory, as a function."""
        return Ladder()

    kinds = {
        "columns": (Columns, Drop, Board),
        "ladder": (make_ladder, Move, Place),
        "echo": (Echo, Say, Echoed),
        "coder": (Coder, Code, Ran),
        "judged": (Judged, Code, Ran),
        "bound": (Bound, Say, Threads),
    }
    return SimpleNamespace(kinds=kinds, **{key: value for key, value in locals().items() if key[0].isupper()})
