"""Transforms that come with the library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ors.openenv.environment import Transform
from ors.openenv.models import Observation

__all__ = ["CompositeTransform", "NullTransform"]


class CompositeTransform(Transform[Any]):
    """Several transforms, one after another."""

    def __init__(self, transforms: Iterable[Transform[Any]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, observation: Observation) -> Observation:
        for transform in self.transforms:
            observation = transform(observation)
        return observation


class NullTransform(Transform[Any]):
    """Changes nothing."""

    def __call__(self, observation: Observation) -> Observation:
        return observation
