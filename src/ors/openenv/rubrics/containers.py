"""Rubrics that are made of others."""

from __future__ import annotations

import asyncio
from collections.abc import (
    Awaitable,
    Callable,
    Generator,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from typing import Any

from ors.openenv.rubrics.base import Rubric, _chain, _waits

__all__ = ["Gate", "RubricDict", "RubricList", "Sequential", "WeightedSum"]


class _AwaitableScore(float):
    """A score that may also be awaited: code exists that awaits every Sequential where an event loop is running."""

    def __await__(self) -> Generator[Any, None, float]:
        return float(self)
        yield


class Sequential(Rubric):
    """One after another: 0 as soon as one scores 0, else the score of the last; 1 where there is none."""

    def __init__(self, *rubrics: Rubric) -> None:
        super().__init__()
        self._rubric_list = list(rubrics)
        for place, rubric in enumerate(rubrics):
            setattr(self, f"rubric_{place}", rubric)

    def __call__(self, action: Any, observation: Any) -> Any:
        score = super().__call__(action, observation)
        if not _waits(score) and asyncio._get_running_loop() is not None:
            return _AwaitableScore(score)
        return score

    def forward(self, action: Any, observation: Any) -> Any:
        return self._from(0, 1.0, action, observation)

    def _from(self, place: int, score: Any, action: Any, observation: Any) -> Any:
        """Go on at a place, after this score."""
        while place < len(self._rubric_list):
            score = self._rubric_list[place](action, observation)
            place += 1
            if _waits(score):
                return _chain(score, self._after(place, action, observation))
            if score == 0.0:
                return 0.0
        return score

    def _after(self, place: int, action: Any, observation: Any) -> Callable[[Any], Any]:
        return lambda score: 0.0 if score == 0.0 else self._from(place, score, action, observation)

    def __len__(self) -> int:
        return len(self._rubric_list)

    def __getitem__(self, index: int) -> Rubric:
        return self._rubric_list[index]


class Gate(Rubric):
    """The score of a rubric where it reaches a threshold, else 0."""

    def __init__(self, rubric: Rubric, threshold: float = 1.0) -> None:
        super().__init__()
        self.rubric = rubric
        self.threshold = threshold

    def forward(self, action: Any, observation: Any) -> Any:
        return _chain(self.rubric(action, observation), lambda score: 0.0 if score < self.threshold else score)


class WeightedSum(Rubric):
    """The scores of several rubrics, weighted. Raises ValueError unless there is a weight for each and they sum to 1.

    Asynchronous rubrics are awaited side by side.
    """

    def __init__(self, rubrics: Sequence[Rubric], weights: Sequence[float]) -> None:
        super().__init__()
        if len(rubrics) != len(weights):
            raise ValueError(f"{len(rubrics)} rubrics must match {len(weights)} weights, one for each")
        if abs(sum(weights) - 1.0) > 1e-6:
            raise ValueError(f"Weights must sum to 1.0, and these sum to {sum(weights)}")
        self._rubric_list = list(rubrics)
        self._weights = list(weights)
        for place, rubric in enumerate(rubrics):
            setattr(self, f"rubric_{place}", rubric)

    def forward(self, action: Any, observation: Any) -> Any:
        scores = [rubric(action, observation) for rubric in self._rubric_list]
        if any(_waits(score) for score in scores):
            return _chain(_gathered(scores), self._sum)
        return self._sum(scores)

    def _sum(self, scores: Iterable[float]) -> float:
        # in this order and from 0.0, so that a sum is the same to the last bit as with the existing package
        total = 0.0
        for score, weight in zip(scores, self._weights, strict=True):
            total += score * weight
        return total

    @property
    def weights(self) -> list[float]:
        """The weights, in the order of the rubrics."""
        return list(self._weights)


async def _gathered(scores: list[Any]) -> list[Any]:
    return await asyncio.gather(*[_awaited(score) for score in scores])


async def _awaited(score: Any | Awaitable[Any]) -> Any:
    return await score if _waits(score) else score


class RubricList(Rubric):
    """Rubrics by number, for a rubric that chooses among them itself; it has no score of its own."""

    def __init__(self, rubrics: Iterable[Rubric] | None = None) -> None:
        super().__init__()
        self._rubrics: list[Rubric] = []
        self.extend(rubrics or ())

    def forward(self, action: Any, observation: Any) -> Any:
        raise NotImplementedError("a RubricList has no score; the rubric that holds it calls its members")

    def append(self, rubric: Rubric) -> None:
        """Add one at the end."""
        setattr(self, f"rubric_{len(self._rubrics)}", rubric)
        self._rubrics.append(rubric)

    def extend(self, rubrics: Iterable[Rubric]) -> None:
        """Add several at the end."""
        for rubric in rubrics:
            self.append(rubric)

    def __len__(self) -> int:
        return len(self._rubrics)

    def __getitem__(self, index: int) -> Rubric:
        return self._rubrics[index]

    def __iter__(self) -> Iterator[Rubric]:
        return iter(self._rubrics)


class RubricDict(Rubric):
    """Rubrics by name, for a rubric that chooses among them itself; it has no score of its own."""

    def __init__(self, rubrics: Mapping[str, Rubric] | None = None) -> None:
        super().__init__()
        self._rubric_dict: dict[str, Rubric] = {}
        self.update(rubrics or {})

    def forward(self, action: Any, observation: Any) -> Any:
        raise NotImplementedError("a RubricDict has no score; the rubric that holds it calls its members")

    def update(self, rubrics: Mapping[str, Rubric]) -> None:
        """Add several."""
        for name, rubric in rubrics.items():
            self[name] = rubric

    def __setitem__(self, key: str, rubric: Rubric) -> None:
        setattr(self, key, rubric)
        self._rubric_dict[key] = rubric

    def __getitem__(self, key: str) -> Rubric:
        return self._rubric_dict[key]

    def __contains__(self, key: str) -> bool:
        return key in self._rubric_dict

    def __len__(self) -> int:
        return len(self._rubric_dict)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rubric_dict)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._rubric_dict.keys()

    def values(self) -> ValuesView[Rubric]:
        """The rubrics."""
        return self._rubric_dict.values()

    def items(self) -> ItemsView[str, Rubric]:
        """Each name with its rubric."""
        return self._rubric_dict.items()
