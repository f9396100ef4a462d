"""Which tasks of a split are meant: a slice of it, those that fit, and some of them picked at random."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from ors.cli.errors import CommandError
from ors.tasks.permutation import Permutation

if TYPE_CHECKING:
    from ors.client import Environment, SplitName

__all__ = ["bounds", "fitting", "paged", "picked"]

_PAGE = 500
_MISSING = object()

Found = Iterator[tuple[int, Any]]


def bounds(first: int | None, last: int | None, count: int | None, most: int | None) -> tuple[int, int]:
    """The slice that is meant, as two positions. Raises CommandError."""
    if count is not None:
        begin, end, _ = slice(first, last).indices(count)
    elif (first or 0) >= 0 and last is not None and last >= 0:
        begin, end = first or 0, last
    elif (first or 0) >= 0 and last is None and most is not None:
        begin, end = first or 0, (first or 0) + most
    else:
        raise CommandError("the split has no end: give a --range with both bounds, or a --limit")
    return begin, max(begin, end)


def fitting(wanted: Sequence[str]) -> Callable[[Any], bool]:
    """Whether a task has all of these values, `key=value`; a key with dots leads inside. Raises CommandError.

    A value fits that is written like this, as text or as JSON.
    """
    tests = []
    for words in wanted:
        key, equals, text = words.partition("=")
        if not equals or not key:
            raise CommandError(f"--where is key=value, like level=3 or meta.source=web, not '{words}'")
        try:
            value = json.loads(text)
        except ValueError:
            value = _MISSING
        tests.append((key, text, value))
    return lambda task: all(_fits(_inside(task, key), text, value) for key, text, value in tests)


def _inside(task: Any, key: str) -> Any:
    if isinstance(task, dict):
        if key in task:
            return task[key]
        first, dot, rest = key.partition(".")
        if dot and first in task:
            return _inside(task[first], rest)
    if isinstance(task, list):
        first, _, rest = key.partition(".")
        if first.isdigit() and int(first) < len(task):
            return _inside(task[int(first)], rest) if rest else task[int(first)]
    return _MISSING


def _fits(found: Any, text: str, value: Any) -> bool:
    if found is _MISSING:
        return False
    same = value is not _MISSING and found == value and isinstance(found, bool) == isinstance(value, bool)
    return same or (isinstance(found, str) and found == text)


def paged(environment: Environment, split: SplitName, begin: int, end: int) -> Found:
    """The tasks with their indices; a page at a time, since a split may have millions."""
    while begin < end:
        page = environment.get_task_range(split, begin, min(begin + _PAGE, end))
        if not page:
            return
        for place, task in enumerate(page):
            yield begin + place, task.task_spec
        begin += len(page)


def picked(
    environment: Environment, split: SplitName, begin: int, end: int, many: int, seed: int, fits: Callable[[Any], bool]
) -> Found:
    """So many of those that fit, each as likely as any other, in the order of the split; the same for the same seed."""
    order = Permutation(end - begin, seed)
    places = (begin + order[place] for place in range(len(order)))
    tries = ((place, environment.get_task(split, place).task_spec) for place in places)
    yield from sorted(islice((found for found in tries if fits(found[1])), many))
