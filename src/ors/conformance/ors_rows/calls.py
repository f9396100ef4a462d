"""Calls of tools: what is answered, what is refused, and that what was sent arrives as it was."""

from __future__ import annotations

import asyncio

from ors.conformance.inputs import accepts, broken_inputs
from ors.conformance.judging import Call, NotApplicable, answered, refused, require
from ors.conformance.place import Place
from ors.conformance.table import Area

CALL = Area("ORS", "CALL")
row = CALL.row

ODD_TEXT = '  leading, ä\u2028\u3000\U0001f600 "quoted" \\ back\r\n\r\ndata: x\n\nevent: end\ttab\x7f end  '
"""What escapes, encodings and readers of lines trip over."""


@row("must", "data-types", "Episode Flow", "`POST /{env_name}/call` answers a stream of events")
async def _call_001(at: Place) -> None:
    (await at.a_call()).events()


@row(
    "must",
    "data-types",
    "RunToolOutput",
    "the data of the `end` event, with what came in pieces before it, is the result as a JSON object",
)
async def _call_002(at: Place) -> None:
    call = await at.a_call()
    require(isinstance(call.result(), dict), "the result is no JSON object", call.answer)


@row("must", "data-types", "RunToolOutput", "`ok` of a result is true or false")
async def _call_003(at: Place) -> None:
    call = await at.a_call()
    result = call.result()
    require(
        isinstance(result, dict) and isinstance(result.get("ok"), bool), "`ok` is neither true nor false", call.answer
    )


@row("must", "data-types", "RunToolSuccess", "a result that is ok has `output`, an object")
async def _call_004(at: Place) -> None:
    call = await at.a_call()
    result = call.result()
    if not isinstance(result, dict) or result.get("ok") is not True:
        raise NotApplicable("no call with an input of ours succeeded")
    require(isinstance(result.get("output"), dict), "`output` is no object", call.answer)


@row("must", "data-types", "RunToolError", "a result that is not ok has `error`, a string")
async def _call_005(at: Place) -> None:
    call = await at.once("unknown tool", lambda: _of_unknown_tool(at))
    call.must_not_succeed("there is no tool of this name")
    if call.stream is None or call.stream.first("error"):
        raise NotApplicable("an unknown tool is not refused with a result")
    require(isinstance(call.result().get("error"), str), "`error` is no string", call.answer)


@row("should", "data-types", "RunToolError", "a tool that there is not is refused with a result that is not ok")
async def _call_006(at: Place) -> None:
    call = await at.once("unknown tool", lambda: _of_unknown_tool(at))
    result = call.result()
    require(isinstance(result, dict) and result.get("ok") is False, "`ok` is not false", call.answer)


@row("should", "data-types", "Input Validation", "an input without a required field is refused")
async def _call_007(at: Place) -> None:
    await _refuses_input(at, "missing")


@row("should", "data-types", "Input Validation", "an input with a field of the wrong type is refused")
async def _call_008(at: Place) -> None:
    await _refuses_input(at, "type")


@row("must", "data-types", "ToolCall", "`name` is required in the body")
async def _call_009(at: Place) -> None:
    refused(await at.post("call", {"input": {}}, (await at.shared()).sid, headers={"Accept": "text/event-stream"}))


@row("must", "data-types", "ToolCall", "`input` is required in the body")
async def _call_010(at: Place) -> None:
    body = {"name": (await _a_tool(at))}
    refused(await at.post("call", body, (await at.shared()).sid, headers={"Accept": "text/event-stream"}))


@row(
    "should",
    "data-types",
    "Input Validation",
    "`input` that is no object, `name` that is no string and `task_id` that is no string are refused",
)
async def _call_011(at: Place) -> None:
    name, sid = await _a_tool(at), (await at.shared()).sid
    for body in ({"name": name, "input": [1]}, {"name": 7, "input": {}}, {"name": name, "input": {}, "task_id": {}}):
        refused(await at.post("call", body, sid, headers={"Accept": "text/event-stream"}))


@row("must", "data-types", "ToolCall", "`task_id` may be left out")
async def _call_012(at: Place) -> None:
    call = await at.a_call()
    require(call.stream is not None and call.stream.first("end") is not None, "the call has no result", call.answer)


@row(
    "must",
    "data-types",
    "RunToolError",
    "a tool that breaks gives no output: its call is not ok, or ends in an `error` event",
    probe=True,
)
async def _call_013(at: Place) -> None:
    call = await at.probed("fail", text="broken on purpose")
    answered(call.answer)
    call.must_not_succeed("the tool raised an exception")


@row("should", "data-types", "RunToolError", "what a broken call answers says why", probe=True)
async def _call_014(at: Place) -> None:
    call = await at.probed("fail", text="broken on purpose")
    require(b"broken on purpose" in call.answer.body, "the message of the exception is not told", call.answer)


@row(
    "must",
    "data-types",
    "ToolCall",
    "the input reaches the tool as it was sent, and its output comes back as it was given",
    probe=True,
)
async def _call_015(at: Place) -> None:
    call = await at.call(await at.shared(), "echo", {"text": ODD_TEXT})
    require(call.text() == ODD_TEXT, "the text has changed on its way", call.answer)


@row("must", "data-types", "RunToolOutput", "a large result comes back as the tool gave it", probe=True)
async def _call_016(at: Place) -> None:
    call = await at.probed("big", lines=5000)
    expected = "".join(f"{' ' * 50}{line}\n" for line in range(5000))
    text = call.text()
    require(text == expected, f"{len(text)} characters came of {len(expected)}", call.answer)


@row(
    "should",
    "clients",
    "Result pieces",
    "a large result that is mostly blanks survives the clients, who drop blanks at the start of a piece",
    probe=True,
)
async def _call_017(at: Place) -> None:
    call = await at.probed("big", lines=5000)
    for event in call.events().named("chunk", "end"):
        require(
            not event.data or event.data[0] == event.data[0].lstrip(), "a piece starts with white space", call.answer
        )


@row("must", "data-types", "RunToolOutput", "calls at the same time get each its own result", probe=True)
async def _call_018(at: Place) -> None:
    async with at.session() as session:
        texts = [f"call {number}" for number in range(4)]
        calls = await asyncio.gather(*(at.call(session, "echo", {"text": text}) for text in texts))
        for text, call in zip(texts, calls, strict=True):
            require(call.text() == text, "this is the result of another call", call.answer)


@row("must", "data-types", "ToolCall", "a call runs its tool once", probe=True)
async def _call_019(at: Place) -> None:
    async with at.session() as session:
        for number in (1, 2):
            call = await at.call(session, "echo", {"text": "once"})
            metadata = call.output().get("metadata")
            ran = metadata.get("ran") if isinstance(metadata, dict) else None
            require(ran == number, f"{number} calls were made, and the tool ran {ran} times", call.answer)


CALL.said(
    20,
    "must",
    "client",
    "data-types",
    "ToolCall",
    "a call names its tool and has an input that is an object",
    "the tests of ors.client cover ours; ORS-CALL-009 to ORS-CALL-011 show that a server refuses others",
)


@row(
    "must",
    "data-types",
    "Tool Result Types",
    "a tool that breaks in whatever way is answered: nobody waits for it for ever",
    probe=True,
    background=True,
)
async def _call_021(at: Place) -> None:
    async with at.session() as session:
        call = await at.call(session, "cancel", {}, timeout_s=min(6.0, at.visit.speaker.timeout_s))
        call.must_not_succeed("the tool broke")


async def _of_unknown_tool(at: Place) -> Call:
    return await at.call(await at.shared(), "no_such_tool", {})


async def _a_tool(at: Place) -> str:
    tools = await at.tools()
    if not tools:
        raise NotApplicable("the environment has no tools")
    return str(next((spec["name"] for spec in tools if accepts(spec.get("input_schema"), {})), tools[0]["name"]))


async def _refuses_input(at: Place, how: str) -> None:
    for spec in await at.tools():
        broken = broken_inputs(spec.get("input_schema")).get(how)
        if broken is not None:
            call = await at.call(await at.shared(), spec["name"], broken)
            call.must_not_succeed(f"the schema of {spec['name']!r} does not accept this input")
            return
    raise NotApplicable("no tool has a schema that refuses such an input")
