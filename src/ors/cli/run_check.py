"""Whether results of an earlier `ors run` are still about the tasks that stand at their places."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ors.client import AsyncEnvironment, AsyncORS
from ors.errors import ClientError
from ors.evaluation import Key, Result
from ors.tasks.keys import task_key

__all__ = ["changed"]

_PAGE = 500
_HASH = re.compile(r"[0-9a-f]{64}")


async def changed(client: AsyncORS, results: Iterable[Result]) -> set[Key]:
    """The results whose tasks are no longer what was played.

    Only keys that are hashes can be compared here; what an author's id means is the server's knowledge.
    """
    by_split: dict[tuple[str, str], dict[int, list[Result]]] = {}
    for result in results:
        _, env, split, place, _ = result.key
        if split is not None and isinstance(place, int) and _HASH.fullmatch(result.task_key or ""):
            by_split.setdefault((env, split), {}).setdefault(place, []).append(result)
    found: set[Key] = set()
    for (env, split), by_index in by_split.items():
        try:
            await _compare(client.environment(env), split, by_index, found)
        except ClientError:  # it may neither list nor pick its tasks; they can be played all the same
            continue
    return found


async def _compare(env: AsyncEnvironment, split: str, by_index: dict[int, list[Result]], found: set[Key]) -> None:
    left = sorted(by_index, reverse=True)
    while left:
        first = left[-1]
        tasks = await env.get_task_range(split, first, first + _PAGE)
        while left and left[-1] < first + _PAGE:
            index = left.pop()
            here = task_key(tasks[index - first].task_spec) if index - first < len(tasks) else None
            found.update(result.key for result in by_index[index] if result.task_key != here)
