"""Which episodes an evaluation plays."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Job", "Key", "jobs_of", "key_of_task", "seed_of"]


class Key(NamedTuple):
    """What tells one episode of an evaluation from all others. `task` is an index of the split, or a task's own key."""

    agent: str
    env: str
    split: str | None
    task: int | str
    repeat: int


@dataclass(frozen=True, slots=True)
class Job:
    """One episode to play. `task` is there where the task is given in full, and not by its place in a split."""

    key: Key
    seed: int
    task: Mapping[str, Any] | None = None


def key_of_task(task: Mapping[str, Any]) -> str:
    """The key of a task that is given in full: equal tasks have equal keys, however they are written."""
    text = json.dumps(task, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def seed_of(seed: int | None, env: str, split: str | None, task: int | str, repeat: int) -> int:
    """The seed of an episode: the same for every agent, another for each task and repeat."""
    text = json.dumps([seed or 0, env, split, task, repeat])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def jobs_of(
    agents: Sequence[str],
    env: str,
    split: str,
    count: int,
    *,
    limit: int | None = None,
    repeat: int = 1,
    seed: int | None = None,
) -> Iterator[Job]:
    """The episodes of a split of `count` tasks: the first `limit` of them or, with a seed, as many picked at random.

    The pick depends on the seed, the environment and the split alone, so it is the same for every agent and every time.
    """
    indices: Sequence[int] = range(count)
    if seed is not None:
        wanted = count if limit is None else min(limit, count)
        picks = random.Random(seed_of(seed, env, split, "which tasks", 0))  # noqa: S311 - no secret
        indices = picks.sample(indices, wanted)
    elif limit is not None:
        indices = indices[:limit]
    for agent in agents:
        for number in range(repeat):
            for index in indices:
                yield Job(Key(agent, env, split, index, number), seed_of(seed, env, split, index, number))
