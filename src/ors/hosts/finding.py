"""The task that an episode starts from, and its key: what identifies it wherever it stands."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from ors.core.failures import Failure, failure
from ors.core.ports import RunWork, Start, Tasks, Work
from ors.tasks.keys import task_key

__all__ = ["Found", "find"]

logger = logging.getLogger("ors.episode")

_SMALL = 2000


class Found(NamedTuple):
    """A task, the place where it was found (`train[3]`) if it was looked up, and its key if it has one."""

    task: Any
    place: str | None
    key: str | None


async def find(tasks: Tasks, start: Start, run: RunWork) -> Found | Failure:
    """The task that a start names, or the one that it holds."""
    try:
        if start.ref is None:
            return Found(start.task, None, await _key_of(tasks, start.task, run))
        place = f"{start.ref.split}[{start.ref.index}]"
        if (both := getattr(tasks, "find", None)) is not None:
            found = await both(start.ref, run)
            return found if isinstance(found, Failure) else Found(found[0], place, found[1])
        task = await tasks.resolve(start.ref, run)
        return task if isinstance(task, Failure) else Found(task, place, await _key_of(tasks, task, run))
    except Exception as exc:
        logger.exception("resolving a task failed")
        return failure("internal", f"{type(exc).__name__}: {exc}", ran="unknown")


async def _key_of(tasks: Tasks, task: Any, run: RunWork) -> str | None:
    if not isinstance(task, dict):
        return None
    key_of = getattr(tasks, "key_of", task_key)

    def key() -> str | None:
        try:
            return str(key_of(task))
        except Exception:  # what is wrong with the task is said by whoever uses it
            return None

    # an author's own function is asked away from the event loop, and so is a large task
    if getattr(tasks, "has_ids", False) or not _is_small(task):
        found = await run(Work(key, label="task key"))
        return found if isinstance(found, str) else None
    return key()


def _is_small(task: dict[str, Any]) -> bool:
    size = 0
    for value in task.values():
        size += 20 + (len(value) if isinstance(value, str) else 0)
        if size > _SMALL or isinstance(value, (dict, list)):
            return False
    return True
