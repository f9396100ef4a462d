"""Numbers over results: against values that are known, and against simulation."""

from __future__ import annotations

import random

import pytest

from ors.evaluation import Failure, Key, Result, Tally
from ors.evaluation.summary import _student, interval, percentile


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (19, 2.093), (99, 1.984), (9999, 1.960)],
)
def test_student_s_quantiles_are_those_of_the_tables(freedom: int, quantile: float) -> None:
    assert _student(freedom) == pytest.approx(quantile, abs=0.012 if freedom == 3 else 0.002)


@pytest.mark.parametrize(
    ("right", "of", "low", "high"),
    [(10, 10, 0.722, 1.0), (0, 10, 0.0, 0.278), (5, 10, 0.237, 0.763), (81, 263, 0.255, 0.366)],
)
def test_rewards_of_one_or_zero_get_wilson_s_interval(right: int, of: int, low: float, high: float) -> None:
    tasks = [[1.0]] * right + [[0.0]] * (of - right)
    mean, *bounds = interval(tasks)
    assert mean == right / of
    assert bounds == pytest.approx([low, high], abs=0.0006)


def test_other_rewards_get_student_s_interval() -> None:
    mean, low, high = interval([[1.0], [2.0], [3.0], [4.0]])
    assert mean == 2.5
    assert (low, high) == pytest.approx((2.5 - 3.182 * 1.29099 / 2, 2.5 + 3.182 * 1.29099 / 2), abs=0.01)


def test_repeats_of_a_task_are_not_taken_for_more_tasks() -> None:
    """Four tasks played a hundred times each are four samples of what there is to do."""
    once = interval([[0.0], [0.2], [0.7], [0.9]])
    often = interval([[0.0] * 100, [0.2] * 100, [0.7] * 100, [0.9] * 100])
    assert often == pytest.approx(once)
    assert interval([[1.0] * 100] * 4)[1:] == interval([[1.0]] * 4)[1:]


def test_nothing_and_one() -> None:
    assert interval([]) == (None, None, None)
    assert interval([[]]) == (None, None, None)
    assert interval([[0.5]]) == (0.5, None, None)
    assert interval([[0.5, 0.7]]) == (0.6, None, None)


@pytest.mark.parametrize("kind", ["binary", "graded", "repeated"])
def test_the_interval_covers_the_truth_as_often_as_it_says(kind: str) -> None:
    luck = random.Random(5)
    covered = 0
    for _ in range(2000):
        if kind == "binary":
            truth = luck.random()
            tasks = [[float(luck.random() < truth)] for _ in range(40)]
        elif kind == "graded":
            truth, tasks = 0.5, [[luck.random()] for _ in range(12)]
        else:
            truth, tasks = 0.5, []
            for _ in range(30):
                hardness = luck.random()
                tasks.append([float(luck.random() < hardness) for _ in range(4)])
        _, low, high = interval(tasks)
        assert low is not None
        assert high is not None
        covered += low <= truth <= high
    assert 0.93 <= covered / 2000 <= 0.985


def test_percentiles() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.99, 1.0, 0.0)] == [50.0, 99.0, 100.0, 1.0]
    assert percentile([7.0], 0.99) == 7.0


def played(number: int, reward: float | None, **more: object) -> Result:
    result = Result(Key("a", "e", "test", number, 0), started=100.0 + number, seconds=2.0, finished=True)
    result.rewards = [] if reward is None else [reward]
    result.call_seconds = [0.001 * (number + 1)]
    for name, value in more.items():
        setattr(result, name, value)
    return result


def test_failures_and_what_was_never_paid_are_in_no_mean() -> None:
    tally = Tally()
    tally.add(played(0, 1.0))
    tally.add(played(1, 0.0))
    tally.add(played(2, None, finished=False))
    tally.add(played(3, 1.0, failure=Failure("tool_failed", "d")))
    tally.add(played(4, None, failure=Failure("tool_failed", "d")))
    tally.add(played(5, None, failure=Failure("agent_raised", "d")), now=False)
    summary = tally.summary()
    assert (summary.mean, summary.rewarded, summary.unrewarded) == (0.5, 2, 1)
    assert (summary.episodes, summary.failed, summary.failures) == (6, 3, {"tool_failed": 2, "agent_raised": 1})
    assert summary.finished == 2 / 3
    assert summary.episodes_per_s == 5 / 6.0  # what was played before says nothing of how fast this is
    assert (summary.call_p50_ms, summary.call_p99_ms) == (3.0, 6.0)


def test_what_was_never_paid_counts_as_what_one_says() -> None:
    tally = Tally(unpaid=0.0)
    tally.add(played(0, 1.0))
    tally.add(played(1, None))
    tally.add(played(2, None, failure=Failure("k", "d")))
    assert tally.summary().mean == 0.5
    assert tally.summary().unrewarded == 1


def test_rewards_become_one_number_as_one_says() -> None:
    for how, mean in (("sum", 3.0), ("last", 1.0), ("max", 2.0)):
        tally = Tally(how)
        tally.add(played(0, None, rewards=[2.0, 0.0, 1.0]))
        assert tally.summary().mean == mean


def test_nothing_was_played() -> None:
    summary = Tally().summary()
    assert (summary.mean, summary.finished, summary.episodes_per_s, summary.call_p50_ms) == (None, None, None, None)
