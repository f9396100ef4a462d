"""The probe for OpenEnv: an environment that does what a conformance check has to see.

Serve it alone: `python openenv_environment.py PORT`. A server in another language may offer the same under the same
names.
"""

import dataclasses
import sys
import time
from typing import Any
from uuid import uuid4

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_app
from pydantic import BaseModel


class Say(Action):
    """What to say; `reward` and `done` come back, `wait_s` is waited, `fail` raises."""

    text: str
    reward: bool | int | float | None = None
    done: bool = False
    wait_s: float = 0.0
    fail: bool = False


class Said(Observation):
    """What was said, the how many-eth it was, and what the reset was told."""

    text: str
    count: int
    told: dict[str, Any] = {}


class Model(BaseModel):
    """A task as a pydantic model."""

    number: int
    text: str


@dataclasses.dataclass
class Record:
    """A task as a dataclass."""

    number: int
    text: str


class Plain:
    """A task as an object."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.text = text


COUNT = 20


class Probe(Environment):
    """Says what it is told to."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State(episode_id=str(uuid4()), step_count=0)

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        split: str | None = None,
        index: int | None = None,
    ) -> Said:
        """Begin again."""
        self._state = State(episode_id=episode_id or str(uuid4()), step_count=0)
        return Said(text="", count=0, told={"seed": seed, "split": split, "index": index})

    def step(self, action: Say, timeout_s: float | None = None, **kwargs: Any) -> Said:
        """Say it."""
        if action.wait_s:
            time.sleep(action.wait_s)
        if action.fail:
            raise RuntimeError("failed on purpose")
        self._state.step_count += 1
        return Said(text=action.text, count=self._state.step_count, reward=action.reward, done=action.done)

    @property
    def state(self) -> State:
        """The state."""
        return self._state

    def list_splits(self) -> list[Any]:
        """Names of each kind, and a split whose type is said."""
        return ["train", "validation", "test", "own", {"name": "named", "type": "train"}]

    def num_tasks(self, split: str) -> int:
        """The same for each."""
        return COUNT

    def list_tasks(self, split: str) -> list[Any]:
        """All of them; the split `own` cannot be listed."""
        if split == "own":
            raise NotImplementedError("cannot be listed")
        return [self._task(index) for index in range(COUNT)]

    def get_task(self, split: str, index: int) -> Any:
        """One of them; the split `own` has no order."""
        if split == "own":
            raise NotImplementedError("has no order")
        if not 0 <= index < COUNT:
            raise IndexError(index)
        return self._task(index)

    async def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[Any]:
        """Some of them."""
        return [self._task(index) for index in range(COUNT)[start:stop]]

    def _task(self, index: int) -> Any:
        kind = [dict, Model, Record, Plain][index % 4]
        return kind(number=index, text=f"ä\u2028{index}")


app = create_app(Probe, Say, Said, env_name="conformanceprobe", max_concurrent_envs=64)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
