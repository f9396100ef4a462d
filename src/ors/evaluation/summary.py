"""Many results as a few numbers: means with what is known of their error, shares, counts and times."""

from __future__ import annotations

import collections
import math
import statistics
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ors.evaluation.results import Result

__all__ = ["Summary", "Tally", "interval", "percentile"]

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Summary:
    """The numbers of some results. Means and shares are None where there is nothing to take them of.

    episodes: all of them. rewarded: those that the mean is taken of. mean, low, high: the mean reward and its 95 %
    confidence interval. unrewarded: played, but never paid. failed, failures: those that could not be played, and how
    many of each kind. finished: the share of the episodes that were played which the environment has ended.
    episodes_per_s: of those played now. call_p50_ms, call_p99_ms: how long calls took.
    """

    episodes: int
    rewarded: int
    mean: float | None
    low: float | None
    high: float | None
    unrewarded: int
    failed: int
    failures: dict[str, int]
    finished: float | None
    calls: int
    refused: int
    episodes_per_s: float | None
    call_p50_ms: float | None
    call_p99_ms: float | None

    def as_json(self) -> dict[str, Any]:
        """The numbers as a JSON object."""
        return asdict(self)


@dataclass(slots=True)
class Tally:
    """Counts results as they come. `how` makes one number of an episode's rewards; `unpaid` stands for none."""

    how: str = "sum"
    unpaid: float | None = None
    episodes: int = 0
    finished: int = 0
    unrewarded: int = 0
    refused: int = 0
    failures: collections.Counter[str] = field(default_factory=collections.Counter)
    rewards: dict[tuple[Any, ...], list[float]] = field(default_factory=dict)
    calls: array[float] = field(default_factory=lambda: array("d"))
    now: int = 0
    first: float = math.inf
    last: float = -math.inf

    def add(self, result: Result, *, now: bool = True) -> None:
        """Count a result. `now`: it was played by this process, so that it tells how fast that is."""
        self.episodes += 1
        self.calls.extend(result.call_seconds)
        self.refused += result.refused
        if now:
            self.now += 1
            self.first = min(self.first, result.started)
            self.last = max(self.last, result.started + result.seconds)
        if result.failure:
            self.failures[result.failure.kind] += 1
            return
        self.finished += result.finished
        reward = result.reward(self.how)
        if reward is None:
            self.unrewarded += 1
            reward = self.unpaid
        if reward is not None:
            self.rewards.setdefault((result.key.env, result.key.split, result.key.task), []).append(reward)

    def summary(self) -> Summary:
        """The numbers so far."""
        rewards = [reward for several in self.rewards.values() for reward in several]
        mean, low, high = interval(list(self.rewards.values()))
        failed = self.failures.total()
        played = self.episodes - failed
        calls = sorted(self.calls)
        seconds = self.last - self.first
        return Summary(
            episodes=self.episodes,
            rewarded=len(rewards),
            mean=mean,
            low=low,
            high=high,
            unrewarded=self.unrewarded,
            failed=failed,
            failures=dict(self.failures.most_common()),
            finished=self.finished / played if played else None,
            calls=len(calls),
            refused=self.refused,
            episodes_per_s=self.now / seconds if self.now and seconds > 0 else None,
            call_p50_ms=percentile(calls, 0.50) * 1000 if calls else None,
            call_p99_ms=percentile(calls, 0.99) * 1000 if calls else None,
        )


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def interval(tasks: Sequence[Sequence[float]]) -> tuple[float | None, float | None, float | None]:
    """The mean of all rewards and its confidence interval, given the rewards of each task.

    Episodes of one task are no independent samples of what an agent can do, so the tasks are what is sampled. Where
    all rewards are 0 or 1 and each task was played once, it is Wilson's interval, which is right near 0 and 1 too;
    else Student's over the tasks.
    """
    tasks = [rewards for rewards in tasks if rewards]
    if not tasks:
        return None, None, None
    count, total = len(tasks), sum(map(len, tasks))
    mean = math.fsum(reward for rewards in tasks for reward in rewards) / total
    binary = all(reward in (0.0, 1.0) for rewards in tasks for reward in rewards)
    spread = math.fsum((math.fsum(rewards) - mean * len(rewards)) ** 2 for rewards in tasks)
    if binary and (total == count or spread == 0):
        return mean, *_wilson(mean, count)
    if count < 2:
        return mean, None, None
    error = math.sqrt(spread * count / (count - 1)) / total
    half = _student(count - 1) * error
    return mean, mean - half, mean + half


def _wilson(mean: float, count: int) -> tuple[float, float]:
    z = statistics.NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
    centre = (mean + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(mean * (1 - mean) / count + z * z / (4 * count * count))
    return max(0.0, centre - half), min(1.0, centre + half)


def _student(freedom: int) -> float:
    """The quantile of Student's distribution: exact for 1 and 2 degrees of freedom, else a series."""
    p = 0.5 + CONFIDENCE / 2
    if freedom == 1:
        return math.tan(math.pi * (p - 0.5))
    if freedom == 2:
        return (2 * p - 1) * math.sqrt(2 / (4 * p * (1 - p)))
    z = statistics.NormalDist().inv_cdf(p)
    n = float(freedom)
    terms = (
        z,
        (z**3 + z) / (4 * n),
        (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2),
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3),
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * n**4),
    )
    return math.fsum(terms)
