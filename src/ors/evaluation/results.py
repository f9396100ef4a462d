"""What came of an episode, as a line of JSON and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ors.evaluation.jobs import Job, Key

__all__ = ["Failure", "Result", "reduced"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an episode could not be played to a result. `kind` is what failures are counted by."""

    kind: str
    detail: str


@dataclass(slots=True)
class Result:
    """What came of one episode.

    rewards: those of its calls, in order. failure: set where it could not be played; then it counts for no mean.
    stopped: why it was ended before its time (`max_calls`). warning: what went wrong after its end. refused: the calls
    that were answered with `ok: false`. notes: what the agent left there. started: Unix time. task_key: what identifies
    the task wherever it stands: by it results of other runs, servers and orders of a split are the same task's.
    """

    key: Key
    rewards: list[float] = field(default_factory=list)
    finished: bool = False
    failure: Failure | None = None
    stopped: str | None = None
    warning: str | None = None
    refused: int = 0
    call_seconds: list[float] = field(default_factory=list)
    seconds: float = 0.0
    started: float = 0.0
    seed: int = 0
    session: str | None = None
    task_key: str | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job) -> Result:
        """A result of which nothing is known yet."""
        return cls(job.key, seed=job.seed)

    def reward(self, how: str) -> float | None:
        """The rewards as one number; None where there were none, or where the episode failed."""
        return None if self.failure else reduced(self.rewards, how)

    def line(self, how: str) -> bytes:
        """The result as a line of a file."""
        agent, env, split, task, repeat = self.key
        by_place = isinstance(task, int)
        said = {
            "env": env,
            "split": split,
            "index": task if by_place else None,
            "task_key": self.task_key if by_place else task,
            "repeat": repeat,
            "agent": agent,
            "reward": self.reward(how),
            "rewards": self.rewards,
            "finished": self.finished,
            "failure": {"kind": self.failure.kind, "detail": self.failure.detail} if self.failure else None,
            "stopped": self.stopped,
            "warning": self.warning,
            "refused": self.refused,
            "seconds": round(self.seconds, 6),
            "call_seconds": [round(seconds, 6) for seconds in self.call_seconds],
            "started": round(self.started, 3),
            "seed": self.seed,
            "session": self.session,
            "notes": self.notes,
        }
        try:
            text = json.dumps(said, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError):
            # the agent's notes are all that can be no JSON: they become text, and the result is kept
            said["notes"] = json.loads(json.dumps({"text": repr(self.notes)}))
            text = json.dumps(said, ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8", "backslashreplace") + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Result:
        """A line as a result. Raises ValueError for what is none."""
        said = json.loads(line)
        if not isinstance(said, Mapping):
            raise ValueError("a result is an object")
        try:
            task = said["index"] if said.get("index") is not None else said["task_key"]
            key = Key(said["agent"], said["env"], said["split"], task, said["repeat"])
            failure = said["failure"]
            result = cls(key, list(map(float, said["rewards"])), bool(said["finished"]))
            result.failure = Failure(failure["kind"], failure["detail"]) if failure else None
        except (KeyError, TypeError) as exc:
            raise ValueError(f"{type(exc).__name__}: {exc}") from None
        if isinstance(task, int):
            result.task_key = said.get("task_key")
        for name in ("stopped", "warning", "refused", "seconds", "call_seconds", "started", "seed", "session", "notes"):
            if name in said:
                setattr(result, name, said[name])
        return result


def reduced(rewards: Sequence[float], how: str) -> float | None:
    """One number of several rewards: the last, the sum, or the greatest."""
    if not rewards:
        return None
    return rewards[-1] if how == "last" else max(rewards) if how == "max" else math.fsum(rewards)
