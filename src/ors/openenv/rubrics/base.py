"""`Rubric`: what an action and what was observed after it are worth."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

__all__ = ["Rubric"]

Hook = Callable[..., Any]


class Rubric(ABC):
    """Scores an action by what was observed after it.

    A subclass defines `forward`, synchronous or asynchronous, and calls `super().__init__()` before it sets attributes.
    Rubrics that are set as attributes are its children. Calling a rubric returns the score, or something to await for
    it if and only if it, one of its children that was asked, or one of its hooks is asynchronous; whether an event loop
    is running makes no difference.
    """

    _rubric_children: dict[str, Rubric]
    _forward_hooks: list[Hook]
    _forward_pre_hooks: list[Hook]
    last_score: float | None

    def __init__(self) -> None:
        object.__setattr__(self, "_rubric_children", {})
        object.__setattr__(self, "_forward_hooks", [])
        object.__setattr__(self, "_forward_pre_hooks", [])
        object.__setattr__(self, "last_score", None)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Rubric):
            self._rubric_children[name] = value
        object.__setattr__(self, name, value)

    @abstractmethod
    def forward(self, action: Any, observation: Any) -> Any:
        """The score; usually from 0 to 1."""

    def __call__(self, action: Any, observation: Any) -> Any:
        """Run the hooks before, `forward`, and the hooks after; the score is kept as `last_score`."""
        return _chain(
            _hooks(self._forward_pre_hooks, (self, action, observation)),
            lambda _: _chain(self.forward(action, observation), lambda score: self._scored(action, observation, score)),
        )

    def _scored(self, action: Any, observation: Any, score: Any) -> Any:
        self.last_score = score
        return _chain(_hooks(self._forward_hooks, (self, action, observation, score)), lambda _: score)

    def register_forward_hook(self, hook: Callable[[Rubric, Any, Any, float], Any]) -> None:
        """Call `hook(rubric, action, observation, score)` after each score."""
        self._forward_hooks.append(hook)

    def register_forward_pre_hook(self, hook: Callable[[Rubric, Any, Any], Any]) -> None:
        """Call `hook(rubric, action, observation)` before each score."""
        self._forward_pre_hooks.append(hook)

    def children(self) -> Iterator[Rubric]:
        """The rubrics that this one is made of."""
        yield from self._rubric_children.values()

    def named_children(self) -> Iterator[tuple[str, Rubric]]:
        """The same with their names."""
        yield from self._rubric_children.items()

    def rubrics(self) -> Iterator[Rubric]:
        """The rubrics below this one, at any depth."""
        for _, rubric in self.named_rubrics():
            yield rubric

    def named_rubrics(self, prefix: str = "") -> Iterator[tuple[str, Rubric]]:
        """The same with the path of each, as in `a.b`."""
        for name, child in self._rubric_children.items():
            path = f"{prefix}.{name}" if prefix else name
            yield path, child
            yield from child.named_rubrics(path)

    def get_rubric(self, path: str) -> Rubric:
        """The rubric at a path. Raises KeyError where there is none."""
        found = self
        for part in path.split("."):
            try:
                found = found._rubric_children[part]
            except KeyError:
                raise KeyError(f"there is no rubric at {path!r}: {part!r} is missing") from None
        return found

    def reset(self) -> None:
        """Forget the last episode."""

    def state_dict(self) -> dict[str, Any]:
        """What is to be kept of this rubric."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what was kept."""


def _chain(value: Any, then: Callable[[Any], Any]) -> Any:
    """What `then` makes of a value, or something to await for it where the value has to be awaited."""
    return _later(value, then) if _waits(value) else then(value)


def _waits(value: Any) -> bool:
    """Whether a value has to be awaited; a score that can be is a number already."""
    return inspect.isawaitable(value) and not isinstance(value, float)


async def _later(value: Awaitable[Any], then: Callable[[Any], Any]) -> Any:
    made = then(await value)
    return await made if _waits(made) else made


def _hooks(hooks: list[Hook], arguments: tuple[Any, ...], start: int = 0) -> Any:
    """Call hooks in order, each after the one before it has ended."""
    for place in range(start, len(hooks)):
        done = hooks[place](*arguments)
        if _waits(done):
            return _later(done, lambda _, following=place + 1: _hooks(hooks, arguments, following))  # type: ignore[misc]
    return None
