"""What came of the calls and steps of a session."""

from __future__ import annotations

import sys

from ors.core.failures import Failure, failure
from ors.core.ports import Latch, Outcome, StepOutcome, ToolOutcome

__all__ = ["Tally"]


class Tally:
    """calls: how many ended. failed: of those. reward: the sum, None where nothing paid. finished: so the last said."""

    __slots__ = ("calls", "failed", "finished", "reward")

    def __init__(self) -> None:
        self.calls = self.failed = 0
        self.reward: float | None = None
        self.finished = False

    def count(self, outcome: Outcome, latch: Latch) -> Outcome:
        """Count an outcome, and close the latch with the call that ends the episode. What is returned stands."""
        self.calls += 1
        if isinstance(outcome, Failure):
            self.failed += 1
        elif isinstance(outcome, ToolOutcome):
            if self.finished:
                # it overlapped with the call that ended the episode: no reward may come after the end
                return failure("episode_finished", "the episode finished while this call was running", ran="yes")
            self._pay(outcome.reward)
            if outcome.finished:
                latch.closed = self.finished = True
        elif isinstance(outcome, StepOutcome):
            self._pay(outcome.reward)
            self.finished = outcome.done
        return outcome

    def _pay(self, reward: float | None) -> None:
        if reward is None:
            return
        try:
            self.reward = (self.reward or 0.0) + reward
        except OverflowError:
            # an integer that no float holds; whoever was paid gets it whole, and the sum is as large as a sum can be
            self.reward = sys.float_info.max if reward > 0 else -sys.float_info.max
