"""Rubrics that know what an episode is worth when it is over."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ors.openenv.rubrics.base import Rubric

__all__ = ["ExponentialDiscountingTrajectoryRubric", "TrajectoryRubric"]

Trajectory = list[tuple[Any, Any]]


class TrajectoryRubric(Rubric):
    """Keeps the actions and observations of an episode, and scores them when `done` is observed.

    Until then each step scores `intermediate_reward`. What is kept stays until `reset`, so call `_reset_rubric()` in
    the environment's `reset`.
    """

    def __init__(self, intermediate_reward: float = 0.0) -> None:
        super().__init__()
        self.intermediate_reward = intermediate_reward
        self._trajectory: Trajectory = []

    def forward(self, action: Any, observation: Any) -> Any:
        self._trajectory.append((action, observation))
        if getattr(observation, "done", False):
            return self.score_trajectory(self._trajectory)
        return self.intermediate_reward

    @abstractmethod
    def score_trajectory(self, trajectory: Trajectory) -> Any:
        """The score of a whole episode."""

    @abstractmethod
    def compute_step_rewards(self) -> list[float]:
        """What of the score each step has earned."""

    def reset(self) -> None:
        self._trajectory = []

    @property
    def trajectory(self) -> Trajectory:
        """The actions of this episode, each with what was observed after it."""
        return list(self._trajectory)

    def state_dict(self) -> dict[str, Any]:
        return {"intermediate_reward": self.intermediate_reward}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.intermediate_reward = state.get("intermediate_reward", self.intermediate_reward)


class ExponentialDiscountingTrajectoryRubric(TrajectoryRubric):
    """The last step earns all of the score, and each one before it `gamma` times as much as the next."""

    def __init__(self, gamma: float = 0.99, intermediate_reward: float = 0.0) -> None:
        super().__init__(intermediate_reward)
        if not 0.0 <= gamma <= 1.0:
            raise ValueError(f"gamma must be in [0, 1], got {gamma}")
        self.gamma = gamma

    def compute_step_rewards(self) -> list[float]:
        if not self._trajectory:
            return []
        score = self.score_trajectory(self._trajectory)
        last = len(self._trajectory) - 1
        return [score * self.gamma ** (last - step) for step in range(last + 1)]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "gamma": self.gamma}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.gamma = state.get("gamma", self.gamma)
