"""Calls that are asked for again by their `task_id`."""

from __future__ import annotations

import asyncio
import json
import uuid

from ors.conformance.events import read_stream
from ors.conformance.judging import Call, NotApplicable, require
from ors.conformance.place import Place, Session
from ors.conformance.table import Area
from ors.conformance.wire import Answer

REPLAY = Area("ORS", "REPLAY")
row = REPLAY.row


@row(
    "must",
    "data-types",
    "ToolCall",
    "a `task_id` of the client's own making is taken: the call runs, as in the text's own example",
)
async def _replay_001(at: Place) -> None:
    first, _ = await _twice(at)
    first.result()


@row("must", "data-types", "ToolCall", "the same `task_id` again gets the result of a call that has ended")
async def _replay_002(at: Place) -> None:
    first, again = await _twice(at)
    if first.stream is None or first.stream.first("end") is None:
        raise NotApplicable("it needs a call with a `task_id` of ours")
    require(again.result() == first.result(), "this is another result", again.answer)


@row("must", "data-types", "ToolCall", "asking again by `task_id` runs nothing again", probe=True)
async def _replay_003(at: Place) -> None:
    async with at.session() as session:
        task_id = uuid.uuid4().hex
        calls = [await at.call(session, "echo", {"text": "x"}, task_id) for _ in range(2)]
        if not calls[0].succeeded:
            raise NotApplicable("it needs a call with a `task_id` of ours")
        await _ran(at, session, 1, calls[1].answer)


@row(
    "must",
    "data-types",
    "ToolCall",
    "the same `task_id` again joins a call that still runs, and runs nothing again",
    probe=True,
)
async def _replay_004(at: Place) -> None:
    async with at.session() as session:
        task_id = uuid.uuid4().hex
        input = {"seconds": 1.0}
        first = asyncio.ensure_future(at.call(session, "slow", input, task_id, until=_has_id))
        await asyncio.wait({first})
        begun = first.result()
        if begun.id is None or begun.stream is None or begun.stream.first("error"):
            raise NotApplicable("it needs a running call with a `task_id` of ours")
        again = await at.call(session, "slow", input, task_id)
        require(again.text() == "done", "this is another result", again.answer)
        await _ran(at, session, 1, again.answer)


@row("should", "clients", "Reconnection", "the id that the server sends in `task_id` gets the result of the call again")
async def _replay_005(at: Place) -> None:
    call = await at.a_call()
    if call.id is None:
        raise NotApplicable("the server sends no id of the call")
    again = await at.call(await at.shared(), call.name, {}, call.id)
    require(again.result() == call.result(), "this is another result", again.answer)


@row(
    "must",
    "data-types",
    "ToolCall",
    "a client that lost its connection joins its call by the id that the server sent, and runs nothing again",
    probe=True,
)
async def _replay_006(at: Place) -> None:
    async with at.session() as session:
        input = {"seconds": 1.0}
        begun = await at.call(session, "slow", input, until=_has_id)
        if begun.id is None or not begun.answer.cut:
            raise NotApplicable("the server sends no id before the call has ended")
        again = await at.call(session, "slow", input, begun.id)
        require(again.text() == "done", "this is another result", again.answer)
        await _ran(at, session, 1, again.answer)


@row("must", "data-types", "ToolCall", "a result is kept for 60 seconds", probe=True, background=True)
async def _replay_007(at: Place) -> None:
    if not at.visit.patient:
        raise NotApplicable("it takes a minute; --patient checks it")
    async with at.session() as session:
        call = await at.call(session, "echo", {"text": "kept"})
        if call.id is None:
            raise NotApplicable("the server sends no id of the call")
        await asyncio.sleep(58)
        again = await at.call(session, "echo", {"text": "kept"}, call.id)
        require(again.result() == call.result(), "this is another result", again.answer)


@row("should", "data-types", "Episode Invariants", "the id of a call gets nothing in another session", probe=True)
async def _replay_008(at: Place) -> None:
    async with at.session(0) as one, at.session(1) as two:
        call = await at.call(one, "echo", {"text": "of one"})
        if call.id is None:
            raise NotApplicable("the server sends no id of the call")
        stolen = await at.call(two, "echo", {"text": "of two"}, call.id)
        require(b"of one" not in stolen.answer.body, "another session gets the result", stolen.answer)


@row("should", "data-types", "ToolCall", "two requests at once with one `task_id` run the tool once", probe=True)
async def _replay_009(at: Place) -> None:
    async with at.session() as session:
        task_id = uuid.uuid4().hex
        calls = await asyncio.gather(*(at.call(session, "slow", {"seconds": 0.3}, task_id) for _ in range(2)))
        if not any(call.succeeded for call in calls):
            raise NotApplicable("it needs a call with a `task_id` of ours")
        await _ran(at, session, 1, calls[1].answer)


@row(
    "should",
    "clients",
    "Reconnection",
    "an id that the server sent does not start its call anew after its session has ended",
    probe=True,
)
async def _replay_010(at: Place) -> None:
    session = await at.open()
    call = await at.call(session, "echo", {"text": "of before"})
    await at.visit.delete(session.sid)
    if call.id is None:
        raise NotApplicable("the server sends no id of the call")
    async with at.session() as other:
        again = await at.call(other, "echo", {"text": "of before"}, call.id)
        again.must_not_succeed("the id is of a session that has ended")
        await _ran(at, other, 0, again.answer)


REPLAY.said(
    11,
    "may",
    "client",
    "data-types",
    "ToolCall",
    "a client gives a `task_id` and asks again by it when its connection was lost",
    "it is what a client does; the tests of ors.client cover ours",
)


def _has_id(answer: Answer) -> bool:
    return read_stream(answer).first("task_id") is not None


async def _twice(at: Place) -> tuple[Call, Call]:
    """A call with an id of ours, twice: of the probe a tool that counts, else one that succeeded before."""

    async def make() -> tuple[Call, Call]:
        before = await at.a_call()
        task_id = f"trace-{uuid.uuid4().hex}"
        session = await at.shared()
        body = _sent_input(before)
        calls = [await at.call(session, before.name, body, task_id) for _ in range(2)]
        return calls[0], calls[1]

    return await at.once("twice", make)


def _sent_input(call: Call) -> object:
    return json.loads(call.answer.request.body)["input"]


async def _ran(at: Place, session: Session, times: int, answer: Answer) -> None:
    count = await at.call(session, "count", {})
    ran = count.text()
    require(ran == str(times), f"the tool ran {ran[:20]} times, not {times}", answer)
