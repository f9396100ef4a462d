"""The tasks: listed, counted and picked."""

from __future__ import annotations

from ors.conformance.judging import NotApplicable, array, object_of, refused, require
from ors.conformance.place import Place
from ors.conformance.table import Area

TASK = Area("ORS", "TASK")
row = TASK.row

NO_SPLIT = "no-such-split"


@row(
    "must",
    "tasks-and-splits",
    "Accessing Tasks",
    "`POST /{env_name}/tasks` answers an object whose `tasks` is an array",
)
async def _task_001(at: Place) -> None:
    array(await at.listing_answer(), "tasks")


@row("must", "data-types", "Task", "a task is a JSON object")
async def _task_002(at: Place) -> None:
    answer = await at.listing_answer()
    for index, task in enumerate(array(answer, "tasks")):
        require(isinstance(task, dict), f"task {index} is no object", answer)


@row("must", "data-types", "Discovery Flow", "the answer of `/tasks` has `env_name`, the environment that was asked")
async def _task_003(at: Place) -> None:
    answer = await at.listing_answer()
    name = object_of(answer, "env_name")["env_name"]
    require(isinstance(name, str) and name.lower() == at.env.lower(), f"`env_name` is {str(name)[:80]!r}", answer)


@row(
    "must",
    "task-api",
    "HTTP Routes",
    "`POST /{env_name}/num_tasks` answers an object whose `num_tasks` is a whole number from 0",
)
async def _task_004(at: Place) -> None:
    answer = await at.count_answer()
    if answer.status == 501:
        raise NotApplicable("the environment does not count its tasks")
    count = object_of(answer, "num_tasks")["num_tasks"]
    require(
        isinstance(count, int) and not isinstance(count, bool) and count >= 0,
        f"`num_tasks` is {str(count)[:80]}",
        answer,
    )


@row("must", "tasks-and-splits", "Accessing Tasks", "`num_tasks` is the number of tasks that the split has")
async def _task_005(at: Place) -> None:
    tasks, count = await at.listing(), await at.count()
    answer = await at.listing_answer()
    if object_of(answer).get("truncated") is True:
        require(len(tasks) <= count, f"`num_tasks` is {count}, and {len(tasks)} are listed", answer)
    else:
        require(len(tasks) == count, f"`num_tasks` is {count}, and {len(tasks)} are listed", answer)


@row("must", "data-types", "GetTask", "`POST /{env_name}/task` answers an object whose `task` is the task")
async def _task_006(at: Place) -> None:
    await at.count()
    answer = await at.task_answer(0)
    if answer.status == 501:
        raise NotApplicable("the environment does not pick tasks by index")
    require(isinstance(object_of(answer, "task")["task"], dict), "`task` is no object", answer)


@row("must", "tasks-and-splits", "Accessing Tasks", "the task at an index is the one at that place of the list")
async def _task_007(at: Place) -> None:
    tasks = await at.listing()
    if not tasks:
        raise NotApplicable("the split is empty")
    for index in sorted({0, len(tasks) // 2, len(tasks) - 1}):
        answer = await at.task_answer(index)
        if answer.status == 501:
            raise NotApplicable("the environment does not pick tasks by index")
        require(object_of(answer, "task")["task"] == tasks[index], f"this is not task {index} of the list", answer)


@row("must", "tasks-and-splits", "Accessing Tasks", "`/tasks` answers 400 for a split that there is not")
async def _task_008(at: Place) -> None:
    answer = await at.post("tasks", {"split": NO_SPLIT})
    refused(answer, 400)


@row("must", "tasks-and-splits", "Accessing Tasks", "`/num_tasks` answers 400 for a split that there is not")
async def _task_009(at: Place) -> None:
    refused(await at.post("num_tasks", {"split": NO_SPLIT}), 400)


@row("must", "tasks-and-splits", "Accessing Tasks", "`/task` answers 400 for a split that there is not")
async def _task_010(at: Place) -> None:
    refused(await at.post("task", {"split": NO_SPLIT, "index": 0}), 400)


@row("must", "data-types", "ListTasks", "`split` is required in the body of `/tasks`")
async def _task_011(at: Place) -> None:
    refused(await at.post("tasks", {}))


@row("must", "data-types", "NumTasks", "`split` is required in the body of `/num_tasks`")
async def _task_012(at: Place) -> None:
    refused(await at.post("num_tasks", {}))


@row("must", "data-types", "GetTask", "`split` is required in the body of `/task`")
async def _task_013(at: Place) -> None:
    refused(await at.post("task", {"index": 0}))


@row("must", "data-types", "GetTask", "`index` is required in the body of `/task`")
async def _task_014(at: Place) -> None:
    refused(await at.post("task", {"split": await at.split()}))


@row("should", "data-types", "Input Validation", "`split` of another type than a string is refused")
async def _task_015(at: Place) -> None:
    for route, more in (("tasks", {}), ("num_tasks", {}), ("task", {"index": 0})):
        refused(await at.post(route, {"split": 7, **more}))


@row("should", "data-types", "Input Validation", "`index` of another type than a number is refused")
async def _task_016(at: Place) -> None:
    split = await at.split()
    refused(await at.post("task", {"split": split, "index": "first"}))
    refused(await at.post("task", {"split": split, "index": "0"}))
    refused(await at.post("task", {"split": split, "index": None}))
    refused(await at.post("task", {"split": split, "index": 0.5}))


@row("should", "task-api", "Error semantics", "an index past the end is answered with 400")
async def _task_017(at: Place) -> None:
    answer = await at.post("task", {"split": await at.split(), "index": await at.count()})
    if answer.status == 501:
        raise NotApplicable("the environment does not pick tasks by index")
    refused(answer, 400)


@row("should", "task-api", "Implementing It", "an index below 0 is answered with 400")
async def _task_018(at: Place) -> None:
    await at.count()
    answer = await at.post("task", {"split": await at.split(), "index": -1})
    if answer.status == 501:
        raise NotApplicable("the environment does not pick tasks by index")
    refused(answer, 400)


@row(
    "should",
    "tasks-and-splits",
    "Accessing Tasks",
    "`POST /{env_name}/get_task` answers as `/task` does (the two pages name it differently)",
)
async def _task_019(at: Place) -> None:
    await at.count()
    answer = await at.post("get_task", {"split": await at.split(), "index": 0})
    require(
        object_of(answer, "task")["task"] == object_of(await at.task_answer(0), "task")["task"],
        "the two routes differ",
        answer,
    )


@row("should", "clients", "/task", "the answer of `/task` has `env_name`: the client of openreward needs it")
async def _task_020(at: Place) -> None:
    await at.count()
    answer = await at.task_answer(0)
    name = object_of(answer, "task", "env_name")["env_name"]
    require(isinstance(name, str) and name.lower() == at.env.lower(), f"`env_name` is {str(name)[:80]!r}", answer)


@row(
    "should", "task-api", "Two rules that are easy to miss", "asking for a task or for the count again changes neither"
)
async def _task_021(at: Place) -> None:
    split, count = await at.split(), await at.count()
    first = object_of(await at.task_answer(0), "task")["task"]
    again = await at.post("task", {"split": split, "index": 0})
    require(object_of(again, "task")["task"] == first, "task 0 has changed", again)
    answer = await at.post("num_tasks", {"split": split})
    require(object_of(answer, "num_tasks")["num_tasks"] == count, "the count has changed", answer)


@row(
    "should",
    "task-api",
    "Two rules that are easy to miss",
    "the list has the same tasks in the same order when asked for again",
)
async def _task_022(at: Place) -> None:
    tasks = await at.listing()
    again = await at.post("tasks", {"split": await at.split()})
    require(array(again, "tasks") == tasks, "the list has changed", again)


@row("should", "task-api", "Error semantics", "what an environment cannot do with its tasks is answered with 501")
async def _task_023(at: Place) -> None:
    split = await at.split()
    answers = [await at.count_answer(), await at.task_answer(0)]
    if all(answer.status == 200 for answer in answers):
        count = object_of(answers[0], "num_tasks")["num_tasks"]
        if not isinstance(count, int) or count <= 5000 or at.env.lower() == "conformancecounted":
            answers.append(await at.once("tasks", lambda: at.post("tasks", {"split": split})))
    not_done = [answer for answer in answers if answer.status != 200]
    if not not_done:
        raise NotApplicable("the environment can list, count and pick its tasks")
    for answer in not_done:
        refused_as = answer.status
        require(refused_as == 501, f"the status is {refused_as}, not 501", answer)


@row(
    "must",
    "task-api",
    "The Short Answer",
    "tasks are found without a session: no request about them needs a session's id",
)
async def _task_024(at: Place) -> None:
    for ask in (at.splits_answer, at.count_answer, lambda: at.task_answer(0)):
        answer = await ask()
        require(answer.problem is None, str(answer.problem), answer)
        needs = answer.status in (400, 401, 403, 409, 422) and b"session" in answer.body.lower()
        require(not needs, "the request is refused for want of a session", answer)


@row("must", "tasks-and-splits", "Accessing Tasks", "tasks of every split are told, not only of the first")
async def _task_025(at: Place) -> None:
    for split in (await at.splits())[1:4]:
        answer = await at.post("num_tasks", {"split": split})
        if answer.status == 501:
            continue
        require(answer.status == 200, f"the split {split!r} is listed, and `/num_tasks` says {answer.status}", answer)


TASK.said(
    26,
    "must",
    "author",
    "task-api",
    "Two rules that are easy to miss",
    "methods that tell of tasks have no side effects: no state changes, no stream is consumed, no cursor moves on",
    "check_environment, rule `tasks-repeat`; ORS-TASK-021 and ORS-TASK-022 ask twice over the network",
)
TASK.said(
    27,
    "must",
    "author",
    "task-api",
    "Two rules that are easy to miss",
    "methods that tell of tasks work on an instance that was just made",
    "check_environment, rule `task-methods`; a server makes its own instances",
)
TASK.said(
    28,
    "should",
    "author",
    "task-api",
    "Error semantics",
    "`get_task` raises IndexError for an index that there is not",
    "check_environment, rule `index-end`; ORS-TASK-017 shows what a client sees of it",
)
TASK.said(
    29,
    "should",
    "author",
    "task-api",
    "Streaming and very large splits",
    "`num_tasks` tells the true total, even where the list is cut short",
    "check_environment, rule `count`; ORS-TASK-005 compares the two over the network",
)
TASK.said(
    30,
    "should",
    "author",
    "task-api",
    "The Protocol",
    "all five methods are there, or say that they are not implemented",
    "check_environment, rules `tasks-none` and `tasks-partly`; ORS-TASK-023 shows what a client sees of it",
)
TASK.said(
    31,
    "may",
    "author",
    "data-types",
    "Task",
    "a task has whatever fields the environment likes",
    "there is nothing that could be wrong",
)
TASK.said(
    32,
    "should",
    "author",
    "tasks-and-splits",
    "Key Takeaway",
    "tasks are clear, checked, and split so that evaluation is fair",
    "check_environment, rules `prompt-answer` and `split-overlap`; the rest is the author's judgement",
)
TASK.said(
    33,
    "should",
    "author",
    "task-api",
    "Selecting a task in `reset()`",
    "`reset` takes `split` and `index` by these names, and chooses by `seed` without `index`",
    "it is about environments of steps; check_environment, rules `reset-task` and `reset-seed`",
)


@row(
    "must",
    "http",
    "Accept-Encoding",
    "a list that is asked for with `Accept-Encoding: gzip` holds the same tasks, packed or not",
)
async def _task_034(at: Place) -> None:
    tasks = await at.listing()
    answer = await at.post("tasks", {"split": await at.split()}, headers={"Accept-Encoding": "gzip"})
    coding = answer.header("content-encoding").lower()
    require(coding in ("", "identity", "gzip"), f"`Content-Encoding` is {coding[:80]!r}", answer)
    require(array(answer, "tasks") == tasks, "these are other tasks", answer)


@row(
    "must",
    "http",
    "If-None-Match",
    "a request with a tag in `If-None-Match` that is of no answer is answered as one without",
)
async def _task_035(at: Place) -> None:
    await at.count()
    body = {"split": await at.split(), "index": 0}
    answer = await at.post("task", body, headers={"If-None-Match": '"of-no-answer"'})
    if answer.status == 501:
        raise NotApplicable("the environment does not pick tasks by index")
    first = object_of(await at.task_answer(0), "task")["task"]
    require(object_of(answer, "task")["task"] == first, "this is another task", answer)
