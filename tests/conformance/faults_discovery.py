"""Faults in what a server tells of its environments, tools, splits and tasks."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

from .mutating import Exchange, Run, after, before, fault


def told(change: Callable[[Any], Any]) -> Callable[[Exchange], None]:
    """Change the JSON of answers that are 200."""

    def apply(x: Exchange) -> None:
        if x.status == 200:
            value = x.told
            changed = change(value)
            x.told = value if changed is None else changed

    return apply


def second(change: Callable[[Any], Any]) -> Callable[[Exchange], None]:
    """Change the JSON from the second answer on."""

    def apply(x: Exchange) -> None:
        x.state[x.path] = x.state.get(x.path, 0) + 1
        if x.state[x.path] > 1:
            told(change)(x)

    return apply


def asked(change: Callable[[dict[str, Any]], Any]) -> Callable[[Exchange], None]:
    """Change the JSON object that was sent."""

    def apply(x: Exchange) -> None:
        value = x.sent
        if isinstance(value, dict):
            changed = change(value)
            x.sent = value if changed is None else changed

    return apply


def becomes(status: int, to: int, detail: Any = None) -> Callable[[Exchange], None]:
    """Answer a status where the server has another."""

    def apply(x: Exchange) -> None:
        if x.status == status:
            x.answer(to, detail if detail is not None else {"detail": "something"})

    return apply


def plain_in_packing(x: Exchange) -> None:
    """Send what is packed as it was before, and say that it is packed."""
    if (b"content-encoding", b"gzip") in x.headers:
        x.out = gzip.decompress(x.out)


def known_already(x: Exchange) -> None:
    """Take every tag for the right one."""
    if any(name == b"if-none-match" for name, _ in x.scope["headers"]):
        x.status, x.out = 304, b""


def each(key: str | None, change: Callable[[dict[str, Any]], Any]) -> Callable[[Any], None]:
    def apply(value: Any) -> None:
        for one in value if key is None else value[key]:
            change(one)

    return apply


LIST = "list_environments"
after("ENV-001", LIST, "objects instead of names", told(lambda names: [{"name": name} for name in names]))
after("ENV-001", LIST, "an object around the array", told(lambda names: {"environments": names}))
after("ENV-002", LIST, "no environments", told(lambda names: []))
after("ENV-003", LIST, "one listed twice", told(lambda names: [*names, names[0].upper()]))
after("ENV-004", LIST, "another order each time", second(lambda names: names[::-1]))
after("ENV-005", LIST, "names that its routes do not have", told(lambda names: [f"{name}-v1" for name in names]))
before(
    "ENV-006",
    "splits",
    "an unknown environment is the first one",
    lambda x: setattr(x, "path", "/conformanceprobe/splits"),
)


@fault("ENV-006", "an unknown environment is redirected")
async def _(x: Exchange, run: Run) -> None:
    await run(x)
    if x.status == 404:
        x.status, x.headers = 308, [(b"location", b"/conformanceprobe" + x.path.encode())]


@fault("ENV-007", "case matters in a name")
async def _(x: Exchange, run: Run) -> None:
    if x.env != x.env.lower():
        x.answer(404, {"detail": "unknown environment"})
    else:
        await run(x)


TOOLS = "tools"
after("TOOL-001", TOOLS, "null where an array must be", told(lambda body: {**body, "tools": None}))
after("TOOL-001", TOOLS, "the array without its object", told(lambda body: body["tools"]))
after("TOOL-002", TOOLS, "a name that is a number", told(each("tools", lambda tool: tool.update(name=7))))
after("TOOL-003", TOOLS, "no description", told(each("tools", lambda tool: tool.update(description=None))))
after(
    "TOOL-004",
    TOOLS,
    "no schema where there are no parameters",
    told(each("tools", lambda tool: tool["input_schema"] or tool.pop("input_schema"))),
)
after("TOOL-004", TOOLS, "a schema as text", told(each("tools", lambda tool: tool.update(input_schema="{}"))))
after(
    "TOOL-005",
    TOOLS,
    "a schema with a type that there is not",
    told(each("tools", lambda tool: tool.update(input_schema={"type": "objekt"}))),
)
after(
    "TOOL-006",
    TOOLS,
    "a schema of an array",
    told(each("tools", lambda tool: tool.update(input_schema={"type": "array"}))),
)
after("TOOL-007", TOOLS, "a tool twice", told(lambda body: body["tools"].append(body["tools"][0])))
after("TOOL-008", TOOLS, "another key in a tool", told(each("tools", lambda tool: tool.update(strict=True))))
after(
    "TOOL-009",
    TOOLS,
    "an empty schema instead of null",
    told(
        each(
            "tools", lambda tool: tool.update(input_schema=tool["input_schema"] or {"type": "object", "properties": {}})
        )
    ),
)
before(
    "TOOL-010",
    "call",
    "a tool without parameters gets none",
    asked(lambda body: body["name"] == "nothing" and body.update(input={"input": {}})),
)
after(
    "TOOL-011",
    TOOLS,
    "names that a call does not know",
    told(each("tools", lambda tool: tool.update(name=f"env.{tool['name']}"))),
)
before(
    "TOOL-012",
    "call",
    "the nearest tool runs",
    asked(lambda body: body["name"] == "no_such_tool" and body.update(name="nothing")),
)
after("TOOL-013", "task_tools", "a tool is missing for the task", told(lambda body: body["tools"].pop()))
after("TOOL-014", TOOLS, "another order each time", second(lambda body: body["tools"].reverse()))
after(
    "TOOL-015",
    TOOLS,
    "a schema that nothing fits",
    told(
        each(
            "tools",
            lambda tool: tool.update(
                input_schema={"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]}
            ),
        )
    ),
)

SPLITS = "splits"
after("SPLIT-001", SPLITS, "bare names", told(lambda splits: [split["name"] for split in splits]))
after("SPLIT-001", SPLITS, "null where an array must be", told(lambda splits: {"splits": None}))
after("SPLIT-002", SPLITS, "an empty name", told(lambda splits: splits[-1].update(name="")))
after("SPLIT-003", SPLITS, "a type of its own", told(lambda splits: splits[-1].update(type="dev")))
after("SPLIT-003", SPLITS, "no type", told(each(None, lambda split: split.pop("type"))))
after("SPLIT-004", SPLITS, "a split twice", told(lambda splits: splits.append(splits[0])))
after(
    "SPLIT-005",
    SPLITS,
    "test has the type validation",
    told(each(None, lambda split: split["name"] == "test" and split.update(type="validation"))),
)
after(
    "SPLIT-006",
    SPLITS,
    "an unknown name has the type train",
    told(each(None, lambda split: split["name"] == "holdout" and split.update(type="train"))),
)
after(
    "SPLIT-007",
    SPLITS,
    "a type is lost",
    told(each(None, lambda split: split["name"] == "hard" and split.update(type="validation"))),
)
after("SPLIT-008", SPLITS, "no splits", told(lambda splits: []))
after("SPLIT-009", SPLITS, "another order each time", second(lambda splits: splits.reverse()))

after("TASK-001", "tasks", "the array without its object", told(lambda body: body["tasks"]))
after("TASK-001", "tasks", "null where an array must be", told(lambda body: body.update(tasks=None)))
after("TASK-002", "tasks", "a task that is null", told(lambda body: body["tasks"].append(None)))
after("TASK-003", "tasks", "another environment's name", told(lambda body: body.update(env_name="conformancecounted")))
after("TASK-003", "tasks", "no name of the environment", told(lambda body: body.pop("env_name") and None))
after("TASK-004", "num_tasks", "a number as text", told(lambda body: {"num_tasks": str(body["num_tasks"])}))
after("TASK-004", "num_tasks", "the bare number", told(lambda body: body["num_tasks"]))
after("TASK-005", "num_tasks", "one task too many", told(lambda body: {"num_tasks": body["num_tasks"] + 1}))
after("TASK-006", "task", "the task without its object", told(lambda body: body["task"]))
before("TASK-007", "task", "indices count from one", asked(lambda body: body.update(index=max(0, body["index"] - 1))))
after("TASK-008", "tasks", "404 for an unknown split", becomes(400, 404))
after(
    "TASK-008",
    "tasks",
    "no tasks in an unknown split",
    becomes(400, 200, {"tasks": [], "env_name": "conformanceprobe"}),
)
after("TASK-009", "num_tasks", "0 tasks in an unknown split", becomes(400, 200, {"num_tasks": 0}))
after("TASK-010", "task", "500 for an unknown split", becomes(400, 500))
before("TASK-011", "tasks", "a default for the split", asked(lambda body: {"split": "train", **body}))
before("TASK-012", "num_tasks", "a default for the split", asked(lambda body: {"split": "train", **body}))
before("TASK-013", "task", "a default for the split", asked(lambda body: {"split": "train", **body}))
before("TASK-014", "task", "a default for the index", asked(lambda body: {"index": 0, **body}))
before(
    "TASK-015",
    "num_tasks",
    "a split that is a number",
    asked(lambda body: body["split"] == 7 and body.update(split="train")),
)
before("TASK-016", "task", "an index that is null", asked(lambda body: body.update(index=body["index"] or 0)))
after("TASK-017", "task", "404 past the end", becomes(400, 404))
after("TASK-017", "task", "500 past the end", becomes(400, 500))
before("TASK-018", "task", "-1 is the last one", asked(lambda body: body.update(index=max(0, body["index"]))))
after("TASK-019", "get_task", "no such route", lambda x: x.answer(404, {"detail": "Not Found"}))
after("TASK-020", "task", "no name of the environment", told(lambda body: {"task": body["task"]}))
after("TASK-021", "task", "another task each time", second(lambda body: body["task"].update(number=99)))
after("TASK-021", "num_tasks", "one task less each time", second(lambda body: {"num_tasks": body["num_tasks"] - 1}))
after("TASK-022", "tasks", "another order each time", second(lambda body: body["tasks"].reverse()))
after("TASK-034", "tasks", "packed by its own word, and not in fact", lambda x: plain_in_packing(x))
after("TASK-035", "task", "304 whatever the tag", lambda x: known_already(x))
after("TASK-023", "tasks", "500 where tasks cannot be listed", becomes(501, 500))
after(
    "TASK-024",
    "splits",
    "splits of a session only",
    lambda x: x.sid or x.answer(400, {"detail": "X-Session-ID header is required"}),
)
before(
    "TASK-025",
    "num_tasks",
    "only the first split is known",
    lambda x: x.sent["split"] in ("train", "no-such-split") or x.answer(400, {"detail": "Invalid split"}),
)

RANGE = "task_range"
after("RANGE-001", RANGE, "null where an array must be", told(lambda body: body.update(tasks=None)))
before(
    "RANGE-002", RANGE, "`stop` is inclusive", asked(lambda body: "stop" in body and body.update(stop=body["stop"] + 1))
)
before("RANGE-003", RANGE, "`start` is 1 by default", asked(lambda body: {"start": 1, **body}))
before(
    "RANGE-004",
    RANGE,
    "`stop` is required",
    lambda x: "stop" in x.sent or x.answer(422, {"detail": "stop is required"}),
)
before("RANGE-005", RANGE, "a page of 10 by default", asked(lambda body: {"stop": 10, **body}))
before(
    "RANGE-006",
    RANGE,
    "past the end is an error",
    lambda x: x.sent.get("stop", 0) < 13 or x.answer(400, {"detail": "Invalid index range"}),
)
before("RANGE-007", RANGE, "below 0 is 0", asked(lambda body: body.update(start=max(0, body.get("start", 0)))))
before(
    "RANGE-008",
    RANGE,
    "an empty slice is an error",
    lambda x: (
        x.sent.get("start") != x.sent.get("stop")
        and None
        or "stop" not in x.sent
        or x.answer(400, {"detail": "Invalid index range"})
    ),
)
after("RANGE-009", RANGE, "no tasks in an unknown split", becomes(400, 200, {"tasks": []}))
before("RANGE-010", RANGE, "a default for the split", asked(lambda body: {"split": "train", **body}))
before(
    "RANGE-011",
    RANGE,
    "bounds of any type",
    asked(lambda body: {"split": body["split"], **{k: v for k, v in body.items() if isinstance(v, int)}}),
)
after("RANGE-012", "get_task_range", "no such route", lambda x: x.answer(404, {"detail": "Not Found"}))
after("RANGE-013", RANGE, "no name of the environment", told(lambda body: {"tasks": body["tasks"]}))

after("SERVER-001", "health", "another word", told(lambda body: {"status": "healthy"}))
after("SERVER-002", "splits", "JSON as plain text", lambda x: x.media_type("text/plain"))


@fault("SERVER-003", "NaN in a task")
async def _(x: Exchange, run: Run) -> None:
    await run(x)
    if x.route == "task":
        x.out = x.out.replace(b"0.5", b"NaN")


@fault("SERVER-003", "a key twice")
async def _(x: Exchange, run: Run) -> None:
    await run(x)
    if x.route == "num_tasks" and x.status == 200:
        x.out = b'{"num_tasks": 1, ' + x.out[1:]


after("SERVER-004", "num_tasks", "500 for what is no JSON", becomes(400, 500))
after(
    "SERVER-005",
    "num_tasks",
    "an error as plain text",
    lambda x: x.status == 400 and (setattr(x, "out", b"Invalid split"), x.media_type("text/plain")),
)
before("SERVER-006", "splits", "no bare paths", lambda x: x.env or x.answer(404, {"detail": "Not Found"}))
before(
    "SERVER-009",
    "num_tasks",
    "a body needs a content type",
    lambda x: b"content-type" in dict(x.scope["headers"]) or x.answer(422, {"detail": "no"}),
)
after("SERVER-007", "prompt", "500 for a prompt", becomes(200, 500))
