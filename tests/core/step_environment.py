"""A small native environment of steps: a walk through a corridor to a door, whose length the seed says.

It is no `ors.Environment`: it implements the ports, as an adapter of another kind of environment would.
"""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

from ors.core.failures import Failure, failure
from ors.core.ports import Document, OfferingSpec, Script, Start, StepOutcome, Work
from ors.jsontext import dump

__all__ = ["ACTION", "Corridor", "Dial", "corridor"]

ACTION = {
    "title": "Move",
    "type": "object",
    "properties": {"by": {"type": "integer", "minimum": -3, "maximum": 3}},
    "required": ["by"],
    "additionalProperties": False,
}
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()


class Corridor:
    """The offering."""

    affinity: Any = "any"
    tasks: Any = None
    action: Any = ACTION

    def __init__(self, name: str = "Corridor", folder: str | None = None) -> None:
        self.spec = OfferingSpec(name, "steps", action=dump(self.action), description="Walk to the door.")
        self.events: list[str] = []
        self.folder = folder

    def episode(self, start: Start) -> Any:
        return Walk(self)

    def note(self, event: str) -> None:
        """Write down what happens, also where another process can read it."""
        self.events.append(event)
        if self.folder is not None:
            with (Path(self.folder) / "events").open("a") as file:
                file.write(f"{event}\n")


class Walk:
    """An episode: made by `open`, begun by every `reset`."""

    def __init__(self, offering: Corridor) -> None:
        self.offering = offering
        self.position = 0
        self.length = 0
        self.steps = 0
        self.inside = 0

    def open(self) -> Work:
        return Work(lambda: self._note("open"), label="open")

    def _note(self, event: str) -> Document:
        self.offering.note(event)
        return Document(b"{}")

    def reset(self, start: Start) -> Work:
        return Work(lambda: self._reset(start), label="reset")

    def _reset(self, start: Start) -> Any:
        self.offering.note(f"reset {start.seed} {sorted(start.secrets)}")
        task = start.task or {}
        if task.get("fail"):
            return failure("setup_failed", "the corridor has collapsed", ran="yes")
        self.position, self.steps = 0, 0
        self.length = task.get("length", 2 + (start.seed or 0) % 5)
        if task.get("picture"):
            return StepOutcome({"image": PICTURE})
        return StepOutcome(f"The door is {self.length} steps away.", done=self.length == 0)

    def step(self, action: Any, timeout_s: float | None) -> Work | Script | Failure:
        by = action["by"]
        if by == -3:
            return failure("invalid_input", "nobody walks that far backwards")
        if by == -2:
            return self._script(by)
        return Work(lambda: self._step(by), label="step", timeout=timeout_s, is_async=False)

    def _script(self, by: int) -> Script:
        yield Work(lambda: self._note("looked back"), label="look")
        outcome: Any = yield Work(lambda: self._step(by), label="step")
        return outcome

    def _step(self, by: int) -> StepOutcome:
        assert not self.inside, "two steps at once"
        self.inside += 1
        time.sleep(0.005)
        self.inside -= 1
        self.offering.note(f"step {by}")
        self.steps += 1
        self.position += by
        done = self.position >= self.length
        seen = {"position": self.position, "door": self.length}
        return StepOutcome(seen, 1 if done else -0.1, done, {"steps": self.steps})

    def state(self) -> Document:
        return Document(dump({"episode_id": None, "step_count": self.steps, "position": self.position}))

    def close(self, why: str) -> Work:
        return Work(lambda: self._note(f"close {why}"), label="close")


class Dial(Corridor):
    """Its action is a number, and its steps are asynchronous and answer with whatever a test wants."""

    action = {"type": "integer", "description": "how far to turn", "$defs": {"unused": {}}}

    def __init__(self) -> None:
        super().__init__("Dial")
        self.answers: list[Any] = []

    def episode(self, start: Start) -> Any:
        return Turn(self)


class Turn(Walk):
    def step(self, action: Any, timeout_s: float | None) -> Work:
        offering: Any = self.offering

        async def step() -> Any:
            offering.note(f"turn {action!r}")
            return offering.answers.pop(0) if offering.answers else StepOutcome({"text": f"turned {action}"}, True)

        return Work(step, label="step", is_async=True)


def corridor(folder: str) -> list[Any]:
    """The offerings of a server, also of one whose sessions are in another process."""
    return [Corridor(folder=folder)]
