"""The tasks: listed, counted and picked."""

from __future__ import annotations

from typing import Any

from ors.conformance.judging import NotApplicable, answered, array, object_of, refused, require
from ors.conformance.openenv_place import OpenEnvPlace as Place
from ors.conformance.table import Area
from ors.conformance.wire import Answer

TASK = Area("OPENENV", "TASK")
row = TASK.row


@row(
    "must",
    "task-api",
    "HTTP Routes",
    "`POST /{env_name}/tasks` answers `tasks`, an array, and `env_name`",
)
async def _task_001(at: Place) -> None:
    answer = await _supported(at.listing_answer())
    array(answer, "tasks")
    name = object_of(answer, "env_name")["env_name"]
    require(isinstance(name, str) and name.lower() == at.env.lower(), f"`env_name` is {str(name)[:80]!r}", answer)


@row("must", "task-api", "HTTP Routes", "`POST /{env_name}/num_tasks` answers `num_tasks`, a whole number from 0")
async def _task_002(at: Place) -> None:
    answer = await _supported(at.count_answer())
    count = object_of(answer, "num_tasks")["num_tasks"]
    whole = isinstance(count, int) and not isinstance(count, bool) and count >= 0
    require(whole, f"`num_tasks` is {str(count)[:80]}", answer)


@row("must", "task-api", "HTTP Routes", "`POST /{env_name}/task` answers `task`")
async def _task_003(at: Place) -> None:
    await at.count()
    object_of(await _supported(at.task_answer(0)), "task")


@row("must", "task-api", "Error semantics", "an index that the environment does not have answers 400")
async def _task_004(at: Place) -> None:
    count = await at.count()
    answer = await _supported(at.task_answer(count + 1000))
    refused(answer, 400)


@row("must", "task-api", "Error semantics", "what the environment cannot do answers 501", probe=True)
async def _task_005(at: Place) -> None:
    refused(await at.post("task", {"split": "own", "index": 0}), 501)
    refused(await at.post("tasks", {"split": "own"}), 501)


@row("must", "task-api", "HTTP Routes", "`split` is required in the bodies of `/tasks`, `/num_tasks` and `/task`")
async def _task_006(at: Place) -> None:
    for route, body in (("tasks", {}), ("num_tasks", {}), ("task", {"index": 0})):
        refused(await at.post(route, body))


@row("must", "task-api", "HTTP Routes", "`index` is required in the body of `/task`")
async def _task_007(at: Place) -> None:
    refused(await at.post("task", {"split": await at.split()}))


@row("should", "openenv", "Request bodies", "a body with a key that is none of the route's is refused with 422")
async def _task_008(at: Place) -> None:
    split = await at.split()
    refused(await at.post("num_tasks", {"split": split, "spilt": split}), 422)


@row("must", "task-api", "Two rules that are easy to miss", "asking for the tasks twice gives the same")
async def _task_009(at: Place) -> None:
    split = await at.split()
    for route, body, first in (
        ("num_tasks", {"split": split}, at.count_answer()),
        ("task", {"split": split, "index": 0}, at.task_answer(0)),
    ):
        before = await _supported(first)
        again = await at.post(route, body)
        require(object_of(again) == object_of(before), f"the second answer of /{route} is another", again)


@row(
    "must",
    "task-api",
    "The Protocol",
    "tasks that are pydantic models, dataclasses and plain objects become JSON objects",
    probe=True,
)
async def _task_010(at: Place) -> None:
    for index in range(4):
        answer = await at.task_answer(index)
        task = object_of(answer, "task")["task"]
        require(task == _probed(index), f"task {index} is {str(task)[:100]}", answer)


@row("must", "task-api", "Checklist", "`num_tasks` tells no fewer than `tasks` lists")
async def _task_011(at: Place) -> None:
    answer = await _supported(at.listing_answer())
    listed, count = len(array(answer, "tasks")), await at.count()
    require(listed <= count, f"`num_tasks` is {count}, and {listed} are listed", answer)


@row("must", "task-api", "The Short Answer", "discovery starts no episode: a session's state stays as it was")
async def _task_012(at: Place) -> None:
    async with at.socket() as socket:
        await socket.ask({"type": "reset", "data": {}})
        before = await socket.ask({"type": "state"})
        answered(await _supported(at.count_answer()))
        await at.post("task", {"split": await at.split(), "index": 0})
        after = await socket.ask({"type": "state"})
        require(after == before, "the state is another", socket.talk())


async def _supported(asking: Any) -> Answer:
    answer: Answer = await asking
    if answer.status == 501:
        raise NotApplicable("the environment does not define this method")
    return answer


def _probed(index: int) -> dict[str, Any]:
    return {"number": index, "text": f"ä\u2028{index}"}
