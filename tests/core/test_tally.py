"""What came of the calls and steps of a session."""

from __future__ import annotations

import sys

from ors.core.failures import failure
from ors.core.ports import Latch, StepOutcome, ToolOutcome
from ors.core.tally import Tally


def test_steps_are_counted_and_the_last_says_whether_it_is_over() -> None:
    tally, latch = Tally(), Latch()
    for reward, done in ((None, False), (1, False), (True, True), (0.5, False)):
        tally.count(StepOutcome({}, reward, done), latch)
    tally.count(failure("tool_failed", "no"), latch)
    assert (tally.calls, tally.failed, tally.reward, tally.finished) == (5, 1, 2.5, False)
    assert not latch.closed  # an environment of steps says itself what comes after its end


def test_calls_end_an_episode_once() -> None:
    tally, latch = Tally(), Latch()
    tally.count(ToolOutcome(b"{}", 0.25), latch)
    assert tally.count(ToolOutcome(b"{}", 1.0, finished=True), latch) == ToolOutcome(b"{}", 1.0, finished=True)
    late = tally.count(ToolOutcome(b"{}", 1.0), latch)
    assert getattr(late, "kind", None) == "episode_finished"
    assert (tally.calls, tally.reward, tally.finished, latch.closed) == (3, 1.25, True, True)


def test_a_reward_that_no_float_holds_is_counted() -> None:
    for reward, total in ((10**400, sys.float_info.max), (-(10**400), -sys.float_info.max)):
        tally = Tally()
        outcome = StepOutcome({}, reward, False)
        assert tally.count(outcome, Latch()) is outcome
        assert tally.reward == total
        assert tally.count(outcome, Latch()) is outcome
