"""Slices of a split."""

from __future__ import annotations

from ors.conformance.judging import Failed, NotApplicable, array, object_of, refused, require
from ors.conformance.ors_rows.tasks import NO_SPLIT
from ors.conformance.place import Place
from ors.conformance.table import Area
from ors.conformance.wire import Answer

RANGE = Area("ORS", "RANGE")
row = RANGE.row


@row("must", "task-api", "HTTP Routes", "`POST /{env_name}/task_range` answers an object whose `tasks` is an array")
async def _range_001(at: Place) -> None:
    array(await _range(at, start=0, stop=2), "tasks")


@row("must", "tasks-and-splits", "Accessing Tasks", "a slice holds the tasks from `start` to before `stop`")
async def _range_002(at: Place) -> None:
    expected = await _some_tasks(at)
    if len(expected) < 2:
        raise NotApplicable("the split has fewer than two tasks")
    answer = await _range(at, start=1, stop=len(expected))
    require(array(answer, "tasks") == expected[1:], f"these are not the tasks 1 to {len(expected) - 1}", answer)


@row("must", "data-types", "GetTaskRange", "without `start` a slice begins with the first task")
async def _range_003(at: Place) -> None:
    expected = await _some_tasks(at)
    answer = await _range(at, stop=len(expected))
    require(array(answer, "tasks") == expected, f"these are not the first {len(expected)} tasks", answer)


@row("must", "data-types", "GetTaskRange", "without `stop` a slice goes to the last task")
async def _range_004(at: Place) -> None:
    count = await at.count()
    start = max(0, count - 2)
    answer = await _range(at, start=start)
    tasks = array(answer, "tasks")
    require(len(tasks) == count - start, f"{len(tasks)} tasks from {start} of {count}", answer)
    last = object_of(await at.task_answer(count - 1), "task")["task"]
    require(tasks[-1] == last, "the last of these is not the last task", answer)


@row("must", "tasks-and-splits", "Accessing Tasks", "without either a slice is the whole split")
async def _range_005(at: Place) -> None:
    count = await at.count()
    if count > 2000:
        raise NotApplicable(f"the split has {count} tasks, too many to ask for in a check")
    answer = await _range(at)
    require(len(array(answer, "tasks")) == count, f"these are not {count} tasks", answer)


@row("should", "task-api", "HTTP Routes", "a slice that goes past the end stops there, as Python's do")
async def _range_006(at: Place) -> None:
    count = await at.count()
    start = max(0, count - 2)
    answer = await _range(at, start=start, stop=count + 1000)
    require(len(array(answer, "tasks")) == count - start, f"these are not {count - start} tasks", answer)


@row("should", "task-api", "HTTP Routes", "bounds below 0 count from the end, as Python's do")
async def _range_007(at: Place) -> None:
    count = await at.count()
    answer = await _range(at, start=-1)
    last = object_of(await at.task_answer(count - 1), "task")["task"]
    require(array(answer, "tasks") == [last], "this is not the last task alone", answer)


@row("should", "task-api", "HTTP Routes", "a slice whose `stop` is not after its `start` is empty, as Python's are")
async def _range_008(at: Place) -> None:
    await at.count()
    answer = await _range(at, start=1, stop=1)
    require(array(answer, "tasks") == [], "the slice is not empty", answer)


@row("must", "tasks-and-splits", "Accessing Tasks", "`/task_range` answers 400 for a split that there is not")
async def _range_009(at: Place) -> None:
    refused(await at.post("task_range", {"split": NO_SPLIT, "start": 0, "stop": 1}), 400)


@row("must", "data-types", "GetTaskRange", "`split` is required in the body of `/task_range`")
async def _range_010(at: Place) -> None:
    refused(await at.post("task_range", {"start": 0, "stop": 1}))


@row("should", "data-types", "Input Validation", "bounds of another type than a number are refused")
async def _range_011(at: Place) -> None:
    split = await at.split()
    refused(await at.post("task_range", {"split": split, "start": "first", "stop": 1}))
    refused(await at.post("task_range", {"split": split, "start": 0, "stop": [1]}))


@row(
    "should",
    "tasks-and-splits",
    "Accessing Tasks",
    "`POST /{env_name}/get_task_range` answers as `/task_range` does (the two pages name it differently)",
)
async def _range_012(at: Place) -> None:
    await at.count()
    answer = await at.post("get_task_range", {"split": await at.split(), "start": 0, "stop": 2})
    require(
        array(answer, "tasks") == array(await _range(at, start=0, stop=2), "tasks"), "the two routes differ", answer
    )


@row(
    "should", "clients", "/task_range", "the answer of `/task_range` has `env_name`: the client of openreward needs it"
)
async def _range_013(at: Place) -> None:
    answer = await _range(at, start=0, stop=2)
    name = object_of(answer, "tasks", "env_name")["env_name"]
    require(isinstance(name, str) and name.lower() == at.env.lower(), f"`env_name` is {str(name)[:80]!r}", answer)


async def _range(at: Place, **bounds: int) -> Answer:
    split = await at.split()
    answer = await at.once(("range", *bounds.items()), lambda: at.post("task_range", {"split": split, **bounds}))
    if answer.status == 501:
        raise NotApplicable("the environment does not pick tasks by index")
    return answer


async def _some_tasks(at: Place) -> list[object]:
    """The first tasks, at most four, one by one."""
    found = []
    for index in range(min(4, await at.count())):
        try:
            found.append(object_of(await at.task_answer(index), "task")["task"])
        except Failed as exc:
            raise NotApplicable(f"it needs /task: {exc}") from None
    return found
