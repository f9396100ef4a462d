"""Faults in sessions: how they are created, kept apart and ended, and in prompts and blocks."""

from __future__ import annotations

from typing import Any

from .faults_discovery import asked, becomes, second, told
from .mutating import Exchange, Run, after, before, fault

SSE = [(b"content-type", b"text/event-stream; charset=utf-8")]


def drop(*keys: str) -> Any:
    return asked(lambda body: {key: value for key, value in body.items() if key not in keys})


def lenient(x: Exchange) -> None:
    """Create what the body says, and anything else from the first task."""
    body = x.sent
    if not isinstance(body, dict):
        return
    spec = {"task_spec": body["task_spec"]} if isinstance(body.get("task_spec"), dict) else None
    pair = {
        "split": body["split"] if isinstance(body.get("split"), str) else "train",
        "index": body["index"] if isinstance(body.get("index"), int) else 0,
    }
    secrets = (
        {k: v for k, v in body["secrets"].items() if isinstance(v, str)}
        if isinstance(body.get("secrets"), dict)
        else {}
    )
    x.sent = {"env_name": body.get("env_name"), "secrets": secrets, **(spec or pair)}


CREATE = "create"
after("CREATE-001", CREATE, "another id", told(lambda body: {"sid": body["sid"][:-1] + "x"}))
after("CREATE-001", CREATE, "no id", told(lambda body: {"status": "created"}))
before(
    "CREATE-002",
    CREATE,
    "tasks by their place are not known",
    lambda x: "index" not in x.sent or x.answer(422, {"detail": "no"}),
)
before(
    "CREATE-003",
    CREATE,
    "tasks in full are not known",
    lambda x: "task_spec" not in x.sent or x.answer(422, {"detail": "no"}),
)
before(
    "CREATE-004", CREATE, "`env_name` is required", lambda x: "env_name" in x.sent or x.answer(422, {"detail": "no"})
)
before(
    "CREATE-004",
    CREATE,
    "the last environment is the default",
    asked(lambda body: {"env_name": "conformancecounted", **body}),
)
before("CREATE-005", CREATE, "`env_name` is overlooked", asked(lambda body: {**body, "env_name": "conformanceprobe"}))
before("CREATE-006", CREATE, "`secrets` is required", lambda x: "secrets" in x.sent or x.answer(422, {"detail": "no"}))
before(
    "CREATE-007",
    CREATE,
    "`secrets` is an unknown key",
    lambda x: "secrets" not in x.sent or x.answer(422, {"detail": "no"}),
)
before("CREATE-008", CREATE, "secrets are lost", drop("secrets"))
before("CREATE-009", CREATE, "the header of secrets is not read", lambda x: x.drop_header(b"x-secrets"))
before(
    "CREATE-010",
    CREATE,
    "a key of the task is lost",
    asked(lambda body: body.get("task_spec", {}).pop("odd", None) and None),
)
before("CREATE-011", CREATE, "always the first task", asked(lambda body: "index" in body and body.update(index=0)))
for number, name in (
    (12, "both"),
    (13, "neither"),
    (14, "`split` alone"),
    (15, "`index` alone"),
    (16, "half of the pair beside the task"),
    (21, "any type"),
):
    before(f"CREATE-{number:03d}", CREATE, f"{name} will do", lenient)
after("CREATE-017", CREATE, "404 for an unknown split", becomes(400, 404))
after("CREATE-018", CREATE, "500 past the end", becomes(400, 500))
before("CREATE-019", CREATE, "an unknown environment is the first one", drop("env_name"))


@fault("CREATE-020", "an id is made up")
async def _(x: Exchange, run: Run) -> None:
    if x.route == CREATE and not x.sid:
        x.answer(200, {"sid": "made-up"})
    else:
        await run(x)


after(
    "CREATE-022",
    CREATE,
    "a refusal repeats the body",
    lambda x: x.status == 422 and setattr(x, "told", {"detail": [{"input": x.sent}]}),
)


@fault("CREATE-023", "the second one wins")
async def _(x: Exchange, run: Run) -> None:
    await run(x)
    if x.route == CREATE and x.status == 400:
        x.answer(200, {"sid": x.sid})


before(
    "CREATE-024", CREATE, "only ids of its own", lambda x: "-" in x.sid and x.answer(404, {"detail": "unknown session"})
)

ID = "create_session"


@fault("SESSION-001", "a stream for everybody")
async def _(x: Exchange, run: Run) -> None:
    if x.route == ID:
        x.drop_header(b"accept")
        x.scope["headers"].append((b"accept", b"text/event-stream"))
    await run(x)


after("SESSION-001", ID, "the id under another key", told(lambda body: {"session_id": body["sid"]}))
after("SESSION-001", ID, "201", becomes(200, 201, {"sid": "a"}))


@fault("SESSION-002", "one id for all")
async def _(x: Exchange, run: Run) -> None:
    await run(x)
    if x.route == ID:
        x.out = x.state.setdefault("first", x.out)


@fault("SESSION-003", "JSON for everybody")
async def _(x: Exchange, run: Run) -> None:
    if x.route == ID:
        x.drop_header(b"accept")
    await run(x)


after("SESSION-004", "delete", "another id", told(lambda body: {"sid": "gone"}))
after("SESSION-004", "delete", "204", becomes(200, 204, {}))


@fault("SESSION-005", "a deleted session goes on")
async def _(x: Exchange, run: Run) -> None:
    await run(x)
    if x.route == "prompt":
        if x.status == 200:
            x.state[x.sid] = x.out
        elif x.status == 410:
            x.answer(200, [{"type": "text", "text": "still there"}])


after("SESSION-006", "prompt", "an unknown session has a prompt", becomes(404, 200, []))
after("SESSION-006", "call", "500 for an unknown session", becomes(404, 500))
after("SESSION-007", "prompt", "500 without an id", becomes(400, 500))


@fault("SESSION-008", "the answer of another session")
async def _(x: Exchange, run: Run) -> None:
    await run(x)
    if x.route == "call" and x.sent["name"] == "echo":
        mine = x.out
        x.out = x.state.get("last", mine)
        x.state["last"] = mine


@fault("SESSION-008", "sessions share what tools count")
async def _(x: Exchange, run: Run) -> None:
    if x.route == "call" and x.sent["name"] == "count":
        x.sid = x.state.setdefault("sid", x.sid)
    await run(x)


@fault("SESSION-009", "the prompt of another session")
async def _(x: Exchange, run: Run) -> None:
    await run(x)
    if x.route == "prompt":
        x.out = x.state.setdefault("prompt", x.out)


after("SESSION-010", "ping", "another word", told(lambda body: {"pong": True}))
after("SESSION-010", "ping", "an unknown session is there", becomes(404, 200, {"status": "ok"}))
after("SESSION-011", "delete_session", "no such route", lambda x: x.answer(404, {"detail": "Not Found"}))


@fault("SESSION-012", "404 for what is not there")
async def _(x: Exchange, run: Run) -> None:
    known = x.state.setdefault("known", set())
    if x.route == CREATE:
        known.add(x.sid)
    if x.route == "delete" and x.sid not in known:
        x.answer(404, {"detail": "unknown session"})
    else:
        await run(x)


PROMPT = "prompt"
after("PROMPT-001", PROMPT, "bare text", told(lambda blocks: blocks[0]["text"]))
after("PROMPT-001", PROMPT, "an object around the array", told(lambda blocks: {"blocks": blocks}))
after("PROMPT-001", PROMPT, "texts instead of blocks", told(lambda blocks: ["one", "two"]))
after("PROMPT-002", PROMPT, "no blocks", told(lambda blocks: []))
after("PROMPT-003", PROMPT, "the prompt of the first task", told(lambda blocks: blocks[0].update(text="Task 0.")))
after("PROMPT-004", PROMPT, "another prompt each time", second(lambda blocks: blocks[0].update(text="Again: task 0.")))
after("PROMPT-005", PROMPT, "images are lost", told(lambda blocks: blocks[:1]))
after("BLOCK-001", PROMPT, "a type that there is not", told(lambda blocks: blocks[0].update(type="txt")))
after("BLOCK-002", PROMPT, "text that is null", told(lambda blocks: blocks[0].update(text=None)))
after("BLOCK-003", PROMPT, "a data URL", told(lambda blocks: blocks[1].update(data="data:image/png;base64,AA==")))
after(
    "BLOCK-004",
    PROMPT,
    "another spelling of mimeType",
    told(lambda blocks: blocks[1].update(mime_type=blocks[1].pop("mimeType"))),
)
after("BLOCK-005", PROMPT, "detail as text", told(lambda blocks: blocks[0].update(detail="level 1")))
after("BLOCK-006", PROMPT, "the type of another image", told(lambda blocks: blocks[1].update(mimeType="image/jpeg")))
after("BLOCK-009", PROMPT, "another key in a block", told(lambda blocks: blocks[0].update(id=1)))
