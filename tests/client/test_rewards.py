"""The rewards of an episode become one number in the ways that trainers use; none is not 0."""

from __future__ import annotations

import pytest

from ors.client.rewards import Rewards


def test_reductions() -> None:
    rewards = Rewards([0.5, 2.0, -1.0])
    assert [rewards.reduce(how) for how in ("last", "sum", "max")] == [-1.0, 1.5, 2.0]  # type: ignore[arg-type]
    assert rewards.reduce() == 1.5
    assert rewards.reduce("none") == [0.5, 2.0, -1.0]
    assert (rewards.last, rewards.sum, rewards.max) == (-1.0, 1.5, 2.0)


def test_no_reward_is_none_and_never_0() -> None:
    assert [Rewards().reduce(how) for how in ("last", "sum", "max")] == [None, None, None]  # type: ignore[arg-type]
    assert Rewards().reduce("none") == []


def test_other_words_are_refused() -> None:
    with pytest.raises(ValueError, match="last, sum, max or none"):
        Rewards([1.0]).reduce("mean")  # type: ignore[arg-type]
