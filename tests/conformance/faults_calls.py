"""Faults in calls: their results, their streams, and what happens when they are asked for again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .faults_discovery import asked
from .mutating import Exchange, Run, after, before, fault

CALL = "call"


def result(
    change: Callable[[dict[str, Any]], Any], *, tool: str | None = None, ok: bool = True
) -> Callable[[Exchange], None]:
    """Change the result of calls that are ok, or of those that are not."""

    def apply(x: Exchange) -> None:
        found = x.result
        if found is not None and found["ok"] is ok and tool in (None, x.sent["name"]):
            changed = change(found)
            x.result = found if changed is None else changed

    return apply


def output(change: Callable[[dict[str, Any]], Any], **which: Any) -> Callable[[Exchange], None]:
    """Change the output of a call that is ok."""
    return result(lambda found: change(found["output"]) and None, **which)


def events(change: Callable[[list[tuple[str, str]]], list[tuple[str, str]]]) -> Callable[[Exchange], None]:
    """Change the events of a stream."""

    def apply(x: Exchange) -> None:
        if x.streams:
            x.events = change(x.events)

    return apply


def raw(change: Callable[[bytes], bytes]) -> Callable[[Exchange], None]:
    """Change the bytes of a stream."""

    def apply(x: Exchange) -> None:
        if x.streams:
            x.out = change(x.out)

    return apply


def to_json(x: Exchange) -> None:
    if x.result is not None:
        x.answer(200, x.result)


def pieces(size: int) -> Callable[[list[tuple[str, str]]], list[tuple[str, str]]]:
    """Cut results wherever it falls, as the published servers do."""

    def cut(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
        text = "".join(data for name, data in found if name in ("chunk", "end"))
        if not text:
            return found
        parts = [text[at : at + size] for at in range(0, len(text), size)]
        return (
            [event for event in found if event[0] == "task_id"]
            + [("chunk", part) for part in parts[:-1]]
            + [("end", parts[-1])]
        )

    return cut


after("CALL-001", CALL, "JSON instead of a stream", to_json)
after(
    "CALL-002",
    CALL,
    "the end of a result is lost",
    events(lambda found: [(name, data[:-1] if name == "end" else data) for name, data in found]),
)
after("CALL-002", CALL, "a result in an array", result(lambda found: [found]))  # type: ignore[arg-type,return-value]
after("CALL-003", CALL, "`ok` as text", result(lambda found: {**found, "ok": "true"}))
after("CALL-003", CALL, "no `ok`", result(lambda found: {"output": found["output"]}))
after("CALL-004", CALL, "the output under another key", result(lambda found: {"ok": True, "result": found["output"]}))
after(
    "CALL-005",
    CALL,
    "`error` that is an object",
    result(lambda found: {"ok": False, "error": {"message": found["error"]}}, ok=False),
)
after("CALL-005", CALL, "no `error`", result(lambda found: {"ok": False}, ok=False))
after(
    "CALL-006",
    CALL,
    "404 for an unknown tool",
    lambda x: "no_such_tool" in str(x.sent) and x.answer(404, {"detail": "no"}),
)
GOOD = {
    "ok": True,
    "output": {"blocks": [{"type": "text", "text": "ok"}], "reward": None, "finished": False, "metadata": None},
}
after("CALL-007", CALL, "inputs are not checked", result(lambda found: GOOD, ok=False))
after("CALL-008", CALL, "inputs are not checked for types", result(lambda found: GOOD, ok=False))
after(
    "CALL-008",
    CALL,
    "500 for a wrong input",
    lambda x: (x.result or {}).get("reason") == "input_validation" and x.answer(500, {"detail": "no"}),
)
before("CALL-009", CALL, "a default for the tool", asked(lambda body: {"name": "nothing", **body}))
before("CALL-010", CALL, "a default for the input", asked(lambda body: {"input": {}, **body}))
before(
    "CALL-011", CALL, "any type of input", asked(lambda body: isinstance(body["input"], dict) or body.update(input={}))
)
before("CALL-012", CALL, "`task_id` is required", lambda x: "task_id" in x.sent or x.answer(422, {"detail": "no"}))
after("CALL-013", CALL, "an exception is a result", lambda x: x.sent["name"] == "fail" and setattr(x, "result", GOOD))
after(
    "CALL-013",
    CALL,
    "500 for an exception",
    lambda x: x.sent["name"] == "fail" and x.answer(500, {"detail": "broken on purpose"}),
)
after(
    "CALL-014",
    CALL,
    "an exception without its message",
    events(lambda found: [(name, "" if name == "error" else data) for name, data in found]),
)
after(
    "CALL-015",
    CALL,
    "texts are stripped",
    output(lambda out: out["blocks"][0].update(text=out["blocks"][0]["text"].strip())),
)
after(
    "CALL-015",
    CALL,
    "line ends are changed",
    output(lambda out: out["blocks"][0].update(text=out["blocks"][0]["text"].replace("\r\n", "\n"))),
)
after(
    "CALL-015",
    CALL,
    "what is not ASCII is lost",
    output(lambda out: out["blocks"][0].update(text=out["blocks"][0]["text"].encode("ascii", "replace").decode())),
)
after(
    "CALL-016",
    CALL,
    "large results are cut short",
    output(lambda out: out["blocks"][0].update(text=out["blocks"][0]["text"][:100_000])),
)
after(
    "CALL-016",
    CALL,
    "blanks are lost between pieces",
    events(lambda found: [(name, data.lstrip()) for name, data in pieces(4096)(found)]),
)
after("CALL-017", CALL, "pieces are cut anywhere", events(pieces(4096)))


@fault("CALL-018", "the result of another call")
async def _(x: Exchange, run: Run) -> None:
    await run(x)
    if x.route == CALL and x.sent["name"] == "echo":
        x.out = x.state.setdefault("first", x.out)


@fault("CALL-019", "a second run of a call")
async def _(x: Exchange, run: Run) -> None:
    await run(x)
    if x.route == CALL:
        await run(x)


after(
    "CALL-021",
    CALL,
    "a cancelled tool is never answered",
    lambda x: setattr(x, "hang", x.sent["name"] == "cancel"),
    timeout_s=0.5,
)
after("OUTPUT-017", CALL, "no blocks where a tool gave none", output(lambda out: out.update(blocks=[]), tool="empty"))
after("OUTPUT-018", CALL, "NaN is null", lambda x: x.sent["name"] == "nan" and setattr(x, "result", GOOD))


@fault("TOOL-012", "a tool that is not listed runs another")
async def _(x: Exchange, run: Run) -> None:
    await run(x)
    if x.route == CALL and "no_such_tool" in str(x.sent):
        x.result = GOOD


def is_mine(x: Exchange) -> bool:
    """Whether a call has an id that the client made: the server's begin as no client's do."""
    task_id = x.sent.get("task_id")
    return isinstance(task_id, str) and task_id not in x.state.get("issued", ())


def remember(x: Exchange) -> None:
    if x.streams:
        x.state.setdefault("issued", set()).update(data for name, data in x.events if name == "task_id")


@fault("REPLAY-001", "ids of clients are not known")
async def _(x: Exchange, run: Run) -> None:
    if x.route == CALL and is_mine(x):
        x.status, x.headers = 200, [(b"content-type", b"text/event-stream")]
        x.events = [("error", "unknown task_id")]
    else:
        await run(x)
        if x.route == CALL:
            remember(x)


def again(x: Exchange) -> bool:
    """Whether the id of a call was sent before."""
    task_id = x.sent.get("task_id") if x.route == CALL else None
    seen = x.state.setdefault("seen", set())
    was = task_id in seen
    if task_id is not None:
        seen.add(task_id)
    return was


@fault("REPLAY-002", "a result is forgotten once it was sent")
async def _(x: Exchange, run: Run) -> None:
    if again(x):
        x.status, x.headers = 200, [(b"content-type", b"text/event-stream")]
        x.events = [("error", "unknown task_id")]
    else:
        await run(x)


def anew(x: Exchange) -> None:
    """Run a call again whose id was sent before."""
    if x.route == CALL and isinstance(x.sent, dict) and "task_id" in x.sent:
        x.sent = {key: value for key, value in x.sent.items() if key != "task_id"}


for number in (3, 4, 6, 9):
    before(f"REPLAY-{number:03d}", CALL, "every request runs the tool", anew, **({"raw": "id"} if number == 6 else {}))


@fault("REPLAY-005", "an id of the server is unknown at once")
async def _(x: Exchange, run: Run) -> None:
    if x.route == CALL and "task_id" in x.sent:
        x.status, x.headers = 200, [(b"content-type", b"text/event-stream")]
        x.events = [("error", "unknown task_id")]
    else:
        await run(x)


@fault("REPLAY-008", "results are found in every session")
async def _(x: Exchange, run: Run) -> None:
    results = x.state.setdefault("results", {})
    if x.route == CALL and x.sent.get("task_id") in results:
        x.status, x.headers, x.out = results[x.sent["task_id"]]
        return
    await run(x)
    if x.route == CALL and x.streams:
        for name, data in x.events:
            if name == "task_id":
                results[data] = (x.status, x.headers, x.out)


before("REPLAY-010", CALL, "an id that is not known starts a call", anew)

after("STREAM-001", CALL, "no id", events(lambda found: [event for event in found if event[0] != "task_id"]))
after("STREAM-001", CALL, "the id last", events(lambda found: found[::-1]))
after("STREAM-002", CALL, "no end", events(lambda found: found[:1]))
after("STREAM-002", CALL, "two ends", events(lambda found: [*found, found[-1]]))
after("STREAM-002", CALL, "another event after the end", events(lambda found: [*found, ("chunk", "{}")]))
after("STREAM-003", CALL, "an event of its own", events(lambda found: [("progress", "1"), *found]))
after(
    "STREAM-004",
    CALL,
    "a piece that starts with a blank",
    events(lambda found: [(name, f" {data}" if name == "end" else data) for name, data in found]),
)
after("STREAM-005", CALL, "one long line", events(pieces(10_000_000)))
after(
    "STREAM-006",
    CALL,
    "another encoding",
    raw(lambda out: out.replace(b"nothing", b"nothing").replace(b"valid tool", b"valid t\xf6\xf6l")),
)
after(
    "STREAM-007",
    CALL,
    "a line without a colon",
    raw(lambda out: out.replace(b"event: end\r\n", b"retry\r\nevent: end\r\n")),
)
after("STREAM-008", CALL, "no empty line at the end", raw(lambda out: out.removesuffix(b"\r\n")))
after("STREAM-009", CALL, "the stream stays open", lambda x: setattr(x, "hang", x.streams), timeout_s=0.5)
after("STREAM-010", CALL, "nothing before the end", lambda x: None, slow=True)
after("STREAM-011", CALL, "no pings", lambda x: None, slow=True)
before(
    "STREAM-012",
    CALL,
    "calls are cut after a second",
    lambda x: x.sent["name"] == "slow" and x.answer(504, {"detail": "timeout"}),
    slow=True,
)
after(
    "STREAM-013",
    CALL,
    "another encoding is named",
    lambda x: x.streams and x.media_type("text/event-stream; charset=iso-8859-1"),
)

after("OUTPUT-001", CALL, "null where an array must be", output(lambda out: out.update(blocks=None)))
after("OUTPUT-002", CALL, "no blocks", output(lambda out: out.update(blocks=[])))
after("OUTPUT-003", CALL, "no `finished`", output(lambda out: out.pop("finished")))
after("OUTPUT-003", CALL, "`finished` that is null", output(lambda out: out.update(finished=None)))
after("OUTPUT-004", CALL, "a reward as text", output(lambda out: out.update(reward="1.0")))
after("OUTPUT-004", CALL, "a reward that is true", output(lambda out: out.update(reward=True)))
after("OUTPUT-005", CALL, "metadata in an array", output(lambda out: out.update(metadata=[])))
after(
    "OUTPUT-006",
    CALL,
    "what is null is left out",
    output(lambda out: [out.pop(key) for key in list(out) if out[key] is None]),
)
after("OUTPUT-007", CALL, "another key", output(lambda out: out.update(done=False)))
after("OUTPUT-008", CALL, "every call ends the episode", output(lambda out: out.update(finished=True)))
after("OUTPUT-009", CALL, "no call ends the episode", output(lambda out: out.update(finished=False)))
after(
    "OUTPUT-010",
    CALL,
    "rewards are rounded",
    output(lambda out: out["reward"] is not None and out.update(reward=round(out["reward"], 3))),
)
after("OUTPUT-010", CALL, "a penalty is 0", output(lambda out: out.update(reward=max(0.0, out["reward"] or 0.0))))
after("OUTPUT-011", CALL, "no reward is 0", output(lambda out: out.update(reward=out["reward"] or 0.0)))
after("OUTPUT-012", CALL, "metadata is lost", output(lambda out: out.update(metadata=None)))
after(
    "OUTPUT-013",
    CALL,
    "a finished episode pays again",
    lambda x: (x.result or {}).get("reason") == "episode_finished" and setattr(x, "result", GOOD),
)
after("BLOCK-007", CALL, "images first", output(lambda out: out["blocks"].reverse()))
after("BLOCK-008", CALL, "detail is lost", output(lambda out: [block.update(detail=None) for block in out["blocks"]]))
