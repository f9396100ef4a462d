"""Sessions: their ids, their end, and that they do not see each other."""

from __future__ import annotations

import asyncio
import re
import uuid

from ors.conformance.events import read_stream
from ors.conformance.judging import NotApplicable, answered, array, object_of, refused, require
from ors.conformance.place import Place
from ors.conformance.table import Area
from ors.conformance.visit import sid_of

SESSION = Area("ORS", "SESSION")
row = SESSION.row


@row(
    "must",
    "data-types",
    "Episode Flow",
    "`POST /create_session` answers a JSON object whose `sid` is a string",
    once=True,
)
async def _session_001(at: Place) -> None:
    at.visit.room_for_a_session()
    answer = await at.visit.ask("POST", "/create_session")
    if (sid := sid_of(answer)) is not None:
        at.visit.may_be_open(sid)
    answered(answer)
    require(
        answer.media_type == "application/json",
        f"the content type is {answer.header('content-type')!r}, not JSON",
        answer,
    )
    sid = object_of(answer, "sid")["sid"]
    require(isinstance(sid, str) and sid, "`sid` is no string with characters", answer)


@row("must", "data-types", "Episode Invariants", "each id of a session is given once", once=True)
async def _session_002(at: Place) -> None:
    sids = []
    for _ in range(3):
        at.visit.room_for_a_session()
        answer = await at.visit.ask("POST", "/create_session")
        if (sid := sid_of(answer)) is None:
            raise NotApplicable("`/create_session` gives no ids")
        at.visit.may_be_open(sid)
        sids.append(sid)
        require(len(set(sids)) == len(sids), f"the id {sid!r} was given twice", answer)


@row(
    "should",
    "clients",
    "/create_session",
    "a request that accepts text/event-stream is answered with a stream: `task_id` with the id, then `end`",
    once=True,
)
async def _session_003(at: Place) -> None:
    at.visit.room_for_a_session()
    answer = await at.visit.ask("POST", "/create_session", headers={"Accept": "text/event-stream"})
    if (sid := sid_of(answer)) is not None:
        at.visit.may_be_open(sid)
    answered(answer)
    require(answer.media_type == "text/event-stream", f"the content type is {answer.header('content-type')!r}", answer)
    names = [event.name for event in read_stream(answer).events]
    require(names == ["task_id", "end"], f"the events are {', '.join(names) or 'none'}", answer)
    require(sid is not None, "`task_id` holds no id", answer)


@row("must", "data-types", "Episode Flow", "`POST /delete` answers an object whose `sid` is the id that was sent")
async def _session_004(at: Place) -> None:
    session = await at.open()
    answer = await at.visit.delete(session.sid)
    sid = object_of(answer, "sid")["sid"]
    require(sid == session.sid, f"`sid` is {str(sid)[:80]!r}, and {session.sid!r} was sent", answer)


@row(
    "should",
    "tasks-and-splits",
    "Task Lifecycle",
    "an episode that was deleted is gone: its prompt and its tools are refused",
)
async def _session_005(at: Place) -> None:
    session = await at.open()
    await at.visit.delete(session.sid)
    refused(await at.get("prompt", session.sid))
    (await at.call(session, await _some_tool(at), {})).must_not_succeed("the session was deleted")


@row("should", "data-types", "Episode Flow", "an id that has no episode is refused by prompt and call")
async def _session_006(at: Place) -> None:
    sid = uuid.uuid4().hex
    refused(await at.get("prompt", sid))
    refused((await at.call(sid, await _some_tool(at), {})).answer)


@row("should", "data-types", "Episode Flow", "a request about a session needs its id in `X-Session-ID`")
async def _session_007(at: Place) -> None:
    refused(await at.get("prompt"))
    refused(await at.post("call", {"name": await _some_tool(at), "input": {}}))


@row("must", "data-types", "Episode Invariants", "two sessions do not see each other", probe=True)
async def _session_008(at: Place) -> None:
    async with at.session(0) as one, at.session(1) as two:
        await at.call(one, "echo", {"text": "of one"})
        calls = await asyncio.gather(
            *(at.call(session, "echo", {"text": f"of {number}"}) for number, session in enumerate((one, two)))
        )
        for number, call in enumerate(calls):
            require(call.text() == f"of {number}", "this is the answer of another session's call", call.answer)
        for session, ran in ((one, "2"), (two, "1")):
            call = await at.call(session, "count", {})
            require(
                call.text() == ran, f"{ran} calls were made in this session, and {call.text()[:20]} ran", call.answer
            )


@row("must", "data-types", "Episode Invariants", "sessions of two tasks have each its own task", probe=True)
async def _session_009(at: Place) -> None:
    async with at.session(0) as one, at.session(1) as two:
        for number, session in ((0, one), (1, two)):
            answer = await at.get("prompt", session.sid)
            require(
                re.search(rf"Task {number}\b", str(array(answer)[:1])),
                f"this is not the prompt of task {number}",
                answer,
            )


@row(
    "should",
    "clients",
    "/ping",
    '`POST /ping` answers `{"status": "ok"}` for a session that there is, and refuses others',
)
async def _session_010(at: Place) -> None:
    answer = await at.visit.ask("POST", "/ping", headers={"X-Session-ID": (await at.shared()).sid})
    require(object_of(answer, "status")["status"] == "ok", "`status` is not ok", answer)
    refused(await at.visit.ask("POST", "/ping", headers={"X-Session-ID": uuid.uuid4().hex}))


@row(
    "should",
    "clients",
    "/delete_session",
    "`POST /delete_session` answers as `/delete` does: both clients send it last",
)
async def _session_011(at: Place) -> None:
    session = await at.open()
    await at.visit.delete(session.sid)
    answer = await at.visit.ask("POST", "/delete_session", headers={"X-Session-ID": session.sid})
    require(object_of(answer, "sid")["sid"] == session.sid, "`sid` is not the id that was sent", answer)


@row("should", "clients", "/delete", "deleting what is not there is no error: clients delete again after a lost answer")
async def _session_012(at: Place) -> None:
    sid = uuid.uuid4().hex
    answer = await at.visit.ask("POST", "/delete", headers={"X-Session-ID": sid})
    require(object_of(answer, "sid")["sid"] == sid, "`sid` is not the id that was sent", answer)


SESSION.said(
    13,
    "should",
    "agent",
    "data-types",
    "ToolOutput",
    "the agent's side deletes the session when the episode is complete",
    "it is what a client does; the tests of ors.client cover ours",
)
SESSION.said(
    14,
    "may",
    "client",
    "data-types",
    "Episode Flow",
    "a client asks in the order create_session, create, prompt, call, delete",
    "it is what a client does; the tests of ors.client cover ours",
)


async def _some_tool(at: Place) -> str:
    tools = await at.tools()
    if not tools:
        raise NotApplicable("the environment has no tools")
    return str(next((spec["name"] for spec in tools if spec.get("input_schema") is None), tools[0]["name"]))
