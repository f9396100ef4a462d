"""Slices of a split."""

from __future__ import annotations

from typing import Any

from ors.conformance.judging import NotApplicable, array, refused, require
from ors.conformance.openenv_place import OpenEnvPlace as Place
from ors.conformance.table import Area
from ors.conformance.wire import Answer

RANGE = Area("OPENENV", "RANGE")
row = RANGE.row

_MOST = 5000


@row("must", "task-api", "HTTP Routes", "`POST /{env_name}/task_range` answers `tasks`, an array")
async def _range_001(at: Place) -> None:
    await _slice(at, start=0, stop=1)


@row("must", "task-api", "HTTP Routes", "`start` is inclusive and `stop` is exclusive")
async def _range_002(at: Place) -> None:
    count = min(await at.count(), 5)
    whole, answer = await _slice(at, start=0, stop=count)
    require(len(whole) == count, f"of 0 to {count} come {len(whole)} tasks", answer)
    for start in range(count):
        part, answer = await _slice(at, start=start, stop=count)
        require(part == whole[start:], f"of {start} to {count} come others than tasks {start} to {count - 1}", answer)


@row("must", "task-api", "HTTP Routes", "both ends may be left out")
async def _range_003(at: Place) -> None:
    count = await at.count()
    if count > _MOST:
        raise NotApplicable(f"the split has {count} tasks, too many to list in a check")
    whole, answer = await _slice(at)
    require(len(whole) == count, f"the whole split comes as {len(whole)} tasks, not {count}", answer)
    tail, answer = await _slice(at, start=count - 1)
    require(tail == whole[-1:], "without `stop` it does not end at the last task", answer)
    head, answer = await _slice(at, stop=1)
    require(head == whole[:1], "without `start` it does not begin at the first task", answer)


@row("must", "task-api", "HTTP Routes", "a slice that ends past the last task ends there")
async def _range_004(at: Place) -> None:
    count = await at.count()
    part, answer = await _slice(at, start=count - 1, stop=count + 10)
    require(len(part) == 1, f"the last task and what comes after are {len(part)}", answer)


@row("must", "task-api", "HTTP Routes", "`split` is required in the body of `/task_range`")
async def _range_005(at: Place) -> None:
    refused(await at.post("task_range", {"start": 0, "stop": 1}))


@row("must", "task-api", "HTTP Routes", "negative ends count from the end of the split", probe=True)
async def _range_006(at: Place) -> None:
    whole, _ = await _slice(at)
    part, answer = await _slice(at, start=-3, stop=-1)
    require(part == whole[-3:-1], "these are not the third and second last task", answer)


async def _slice(at: Place, **ends: int) -> tuple[list[Any], Answer]:
    answer = await at.post("task_range", {"split": await at.split(), **ends})
    if answer.status == 501:
        raise NotApplicable("the environment has no ranges")
    return array(answer, "tasks"), answer
