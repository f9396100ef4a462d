"""What a reset or a step comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

__all__ = ["StepResult"]

ObsT = TypeVar("ObsT")


@dataclass
class StepResult(Generic[ObsT]):
    """An observation, the reward of the last action (None: none was paid), and whether the episode is over."""

    observation: ObsT
    reward: bool | int | float | None = None
    done: bool = False
    metadata: dict[str, Any] | None = None
