"""Code written once for what is synchronous and what is asynchronous: a source of an author's may be either."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Generator
from typing import Any, ParamSpec

__all__ = ["either"]

P = ParamSpec("P")


def either(function: Callable[P, Generator[Any, Any, Any]]) -> Callable[P, Any]:
    """Make a generator a function: `x = yield value` waits for `value` where it has to be awaited.

    As long as nothing has to be, the function returns its result; from the first that has to, it returns a coroutine.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> Any:
        steps = function(*args, **kwargs)
        try:
            value = next(steps)
            while not inspect.isawaitable(value):
                value = steps.send(value)
        except StopIteration as end:
            return end.value
        return _go_on(steps, value)

    return run


async def _go_on(steps: Generator[Any, Any, Any], value: Awaitable[Any]) -> Any:
    try:
        while True:
            try:
                found = (await value) if inspect.isawaitable(value) else value
            except Exception as exc:
                value = steps.throw(exc)
            else:
                value = steps.send(found)
    except StopIteration as end:
        return end.value
