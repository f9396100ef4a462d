"""The two kinds of environments that are checked, and how the task methods of each are called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ors.environment import Environment
from ors.tasks.source import is_source

__all__ = ["is_openenv", "subject_of"]


def is_openenv(cls: type[Any]) -> bool:
    """Whether a class is an environment of OpenEnv: by its methods, since its base may be of another package."""
    return not issubclass(cls, Environment) and all(callable(getattr(cls, name, None)) for name in ("reset", "step"))


def subject_of(cls: type[Any], make: Callable[[], Any]) -> tuple[Callable[..., Any], Callable[[str], bool]]:
    """How a task method is called, and whether the author has written it."""
    if is_openenv(cls):
        return lambda method, *args: _on_a_new_one(make, method, args), lambda method: callable(
            getattr(cls, method, None)
        )
    return lambda method, *args: getattr(cls, method)(*args), lambda method: _written(cls, method)


def _written(cls: type[Any], method: str) -> bool:
    if is_source(getattr(cls, "tasks", None)):
        return True  # a source that is declared gives every method
    return inspect.getattr_static(cls, method, None) is not inspect.getattr_static(Environment, method, None)


def _on_a_new_one(make: Callable[[], Any], method: str, args: tuple[Any, ...]) -> Any:
    # a short-lived instance for each question, as its server does
    env = make()

    async def finish(value: Any) -> Any:
        try:
            return await value
        finally:
            _close(env)

    value = None
    try:
        value = getattr(env, method)(*args)
    finally:
        if not inspect.isawaitable(value):
            _close(env)
    return finish(value) if inspect.isawaitable(value) else value


def _close(env: Any) -> None:
    close = getattr(env, "close", None)
    if callable(close):
        close()
