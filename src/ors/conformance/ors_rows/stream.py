"""The stream of a call, line by line: what the standard of server-sent events and the existing readers ask of it."""

from __future__ import annotations

import itertools

from ors.conformance.events import Stream
from ors.conformance.judging import Call, NotApplicable, require
from ors.conformance.place import Place
from ors.conformance.table import Area

STREAM = Area("ORS", "STREAM")
row = STREAM.row

MAX_LINE = 128 * 1024
SILENCE_S = 11.0
"""Seconds: both servers send something every 10, and both clients give up after 30."""


@row("should", "clients", "Order of events", "the first event is `task_id`, once")
async def _stream_001(at: Place) -> None:
    for call, stream in await _streams(at):
        names = [event.name for event in stream.events]
        require(
            names[:1] == ["task_id"] and names.count("task_id") == 1, f"the events are {_shown(names)}", call.answer
        )


@row("must", "data-types", "RunToolOutput", "there is one `end` or one `error`, and nothing after it")
async def _stream_002(at: Place) -> None:
    for call, stream in await _streams(at):
        names = [event.name for event in stream.events]
        lasts = [name for name in names if name in ("end", "error")]
        require(len(lasts) == 1 and names[-1] == lasts[0], f"the events are {_shown(names)}", call.answer)


@row(
    "should", "clients", "Order of events", "events are named `task_id`, `chunk`, `end` and `error`, and no others come"
)
async def _stream_003(at: Place) -> None:
    for call, stream in await _streams(at):
        names = [event.name for event in stream.events if event.name not in ("task_id", "chunk", "end", "error")]
        require(not names, f"there are events named {_shown(names)}", call.answer)


@row("should", "clients", "Result pieces", "no piece of a result starts with white space: both clients drop it there")
async def _stream_004(at: Place) -> None:
    for call, stream in await _streams(at):
        for event in stream.named("chunk", "end"):
            for line in event.data:
                require(line == line.lstrip(), "a piece starts with white space", call.answer)


@row("should", "clients", "Result pieces", "no line is longer than 128 KiB, where the reader of both clients gives up")
async def _stream_005(at: Place) -> None:
    for call, stream in await _streams(at):
        require(stream.longest_line < MAX_LINE, f"a line has {stream.longest_line} bytes", call.answer)


@row("must", "events", "9.2.5 Parsing an event stream", "the stream is UTF-8")
async def _stream_006(at: Place) -> None:
    for call, stream in await _streams(at):
        require(not stream.not_utf8, "a line is no UTF-8", call.answer)


@row(
    "should",
    "events",
    "9.2.5 Parsing an event stream",
    "each line is a known field with a colon, or a comment: both clients fail on others",
)
async def _stream_007(at: Place) -> None:
    for call, stream in await _streams(at):
        require(not stream.odd_lines, f"there is a line {(stream.odd_lines or [''])[0]!r}", call.answer)


@row(
    "must",
    "events",
    "9.2.6 Interpreting an event stream",
    "the last event ends in an empty line: without it no reader sees the event",
)
async def _stream_008(at: Place) -> None:
    for call, stream in await _streams(at):
        require(not stream.unfinished, "the stream ends within an event", call.answer)


@row("should", "clients", "Order of events", "the stream is closed after its last event")
async def _stream_009(at: Place) -> None:
    for call, stream in await _streams(at):
        ended = stream.first("end") or stream.first("error")
        if ended is not None:
            require(
                call.answer.problem is None, f"the stream goes on after its end: {call.answer.problem}", call.answer
            )


@row(
    "should",
    "clients",
    "Keep-alive",
    "the id of a call that takes its time is sent before the call has ended",
    probe=True,
    background=True,
)
async def _stream_010(at: Place) -> None:
    call = await _slow(at)
    event = call.events().first("task_id")
    require(event is not None, "there is no `task_id`", call.answer)
    assert event is not None
    require(event.at_s < 5.0, f"`task_id` came after {event.at_s:.1f} s of a call of 12", call.answer)


@row(
    "should",
    "clients",
    "Keep-alive",
    "a call that takes its time sends something at least every 10 seconds",
    probe=True,
    background=True,
)
async def _stream_011(at: Place) -> None:
    call = await _slow(at)
    call.events()
    times = [0.0, *(at_s for at_s, _ in call.answer.pieces), call.answer.end_s]
    longest = max(later - earlier for earlier, later in itertools.pairwise(times))
    require(longest <= SILENCE_S, f"nothing came for {longest:.1f} s", call.answer)


@row(
    "must",
    "data-types",
    "RunToolOutput",
    "a call that takes its time gets its result all the same",
    probe=True,
    background=True,
)
async def _stream_012(at: Place) -> None:
    call = await _slow(at)
    require(call.text() == "done", "this is another result", call.answer)


@row("should", "events", "9.2.7 Authoring notes", "the content type of a stream names no other encoding than UTF-8")
async def _stream_013(at: Place) -> None:
    for call, _ in await _streams(at):
        kind = call.answer.header("content-type").lower().replace(" ", "").replace('"', "")
        require("charset=" not in kind or "charset=utf-8" in kind, f"the content type is {kind!r}", call.answer)


async def _streams(at: Place) -> list[tuple[Call, Stream]]:
    """The streams of a call that succeeds and of one that does not; of the probe, a large and a broken one too."""
    calls = [await at.a_call(), await at.once("unknown tool", lambda: _of_unknown_tool(at))]
    if at.is_probe:
        calls += [await at.probed("big", lines=5000), await at.probed("fail", text="broken on purpose")]
    found = [(call, call.stream) for call in calls if call.stream is not None]
    if not found:
        raise NotApplicable("no call was answered with a stream")
    return found


async def _of_unknown_tool(at: Place) -> Call:
    return await at.call(await at.shared(), "no_such_tool", {})


async def _slow(at: Place) -> Call:
    """A call of 12 seconds, once, with time enough for its answer."""
    session = await at.once("session for a slow call", at.open)
    return await at.once(
        "slow", lambda: at.call(session, "slow", {"seconds": 12.0}, timeout_s=12.0 + at.visit.speaker.timeout_s)
    )


def _shown(names: list[str]) -> str:
    return ", ".join(name[:40] for name in names[:12]) or "none"
