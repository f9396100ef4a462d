"""The codec: what goes in comes out, whatever its size; what is no frame is a clear error, and never a wait."""

from __future__ import annotations

import struct
import time
import traceback
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ors.core.failures import KINDS, Failure
from ors.core.ports import (
    Document,
    OfferingSpec,
    Op,
    Opened,
    Principal,
    Start,
    StepOutcome,
    TaskQuery,
    TaskRef,
    ToolOutcome,
)
from ors.core.secrets import Secrets
from ors.hosts import messages as wire
from ors.hosts.frames import MAX_FRAME, FrameError, FrameReader, write_frame

# the largest integer that JSON text may hold here
HUGE = 10**4299

characters = st.characters(exclude_categories=["Cs"])
texts = st.text(characters, max_size=30)
integers = st.integers() | st.sampled_from([2**63, 2**64, -(2**63) - 1, HUGE, -HUGE])
floats = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | integers | floats | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
secrets = st.builds(Secrets, st.dictionaries(texts, texts, max_size=3))
refs = st.none() | st.builds(TaskRef, texts, integers, st.none() | texts)
starts = st.builds(
    Start,
    ref=refs,
    task=json_values,
    seed=st.none() | integers,
    options=st.dictionaries(texts, json_values, max_size=3),
    secrets=secrets,
)
principals = st.builds(Principal, st.sampled_from(["trainer", "agent"]), st.none() | texts, st.none() | texts)
ops = st.builds(
    Op,
    kind=st.sampled_from(["prompt", "tools", "call", "terminal", "reset", "step", "state"]),
    call_id=st.none() | texts,
    name=st.none() | texts,
    input=json_values,
    mode=st.sampled_from(["run", "attach", "run_or_attach"]),
    env=st.none() | texts,
    timeout_s=st.none() | floats,
    start=st.none() | starts,
)
queries = st.builds(
    TaskQuery,
    kind=st.sampled_from(["splits", "count", "get", "range"]),
    split=texts,
    index=integers,
    start=st.none() | integers,
    stop=st.none() | integers,
)
outcomes = st.one_of(
    st.none(),
    st.builds(ToolOutcome, st.binary(max_size=300), st.none() | floats, st.booleans()),
    st.builds(StepOutcome, json_values, st.none() | st.booleans() | integers | floats, st.booleans(), json_values),
    st.builds(Document, st.binary(max_size=300)),
    st.builds(Opened, texts, texts),
    st.builds(
        Failure,
        st.sampled_from(sorted(KINDS)),
        texts,
        st.booleans(),
        st.sampled_from(["no", "yes", "unknown"]),
        st.none() | floats,
    ),
)

# how long an example takes says nothing on a machine that others use too
quick = settings(max_examples=80, deadline=None)


def frame(*messages: Any) -> bytes:
    out = bytearray()
    for message in messages:
        write_frame(message, out)
    return bytes(out)


def through(message: Any, kinds: Any) -> Any:
    """A message on the other side."""
    (arrived,) = FrameReader(kinds).feed(frame(message))
    return arrived


def alike(one: Any, other: Any) -> bool:
    """Equal, and of the same types: 1, 1.0 and True differ, 0.0 and -0.0 too."""
    return one == other and repr(one) == repr(other)


@quick
@given(ops, principals)
def test_an_op_comes_out_as_it_went_in(op: Op, principal: Principal) -> None:
    arrived = through(wire.Perform(7, "sid", principal, wire.WireOp.of(op)), wire.TO_OWNER)
    assert (arrived.id, arrived.sid, arrived.principal) == (7, "sid", principal)
    restored = arrived.op.op()
    assert restored == op
    assert alike(restored.input, op.input)


@quick
@given(starts)
@example(Start(task={"n": HUGE, "m": -HUGE}, seed=HUGE))
@example(Start(ref=TaskRef("train", 2**70)))
def test_a_start_comes_out_as_it_went_in(start: Start) -> None:
    arrived = through(wire.Open(1, "sid", None, wire.WireStart.of(start), Principal(), None), wire.TO_OWNER)
    restored = arrived.start.start()
    assert restored == start
    assert alike(restored.task, start.task)
    assert restored.secrets.reveal() == start.secrets.reveal()


@quick
@given(queries)
def test_a_query_comes_out_as_it_went_in(query: TaskQuery) -> None:
    assert through(wire.Ask.of(1, "env", query), wire.TO_OWNER).query() == query


@quick
@given(outcomes)
def test_an_outcome_comes_out_as_it_went_in(outcome: Any) -> None:
    arrived = wire.outcome_of(through(wire.answer(3, outcome), wire.TO_FRONT))
    assert arrived == outcome
    assert type(arrived) is type(outcome)
    if isinstance(outcome, StepOutcome):
        assert alike(arrived.reward, outcome.reward)
        assert alike(arrived.observation, outcome.observation)


def test_specifications_come_out_as_they_went_in() -> None:
    specs = [OfferingSpec("Ünï", "tools", b"[1]", b"null", "words", False), OfferingSpec("two", "steps")]
    assert through(wire.Started(0, specs), wire.TO_FRONT).specs == specs


@quick
@given(st.lists(outcomes, max_size=6), st.data())
def test_bytes_may_arrive_in_any_pieces(several: list[Any], data: st.DataObject) -> None:
    stream = frame(*(wire.answer(number, outcome) for number, outcome in enumerate(several)))
    reader = FrameReader(wire.TO_FRONT)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    arrived: list[Any] = []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        arrived += reader.feed(stream[start:stop])
    reader.end()
    assert [message.id for message in arrived] == list(range(len(several)))
    assert [wire.outcome_of(message) for message in arrived] == several


def test_a_large_frame_in_many_pieces_takes_time_in_proportion() -> None:
    """Each piece is copied once, not each time another arrives."""
    body = frame(wire.Told(1, bytes(40 << 20)))
    reader = FrameReader(wire.TO_FRONT)
    began = time.process_time()
    arrived: list[Any] = []
    for start in range(0, len(body), 16 << 10):
        arrived += reader.feed(body[start : start + (16 << 10)])
    # 2,560 pieces; with the square of them it would be 50 GB of copying
    assert time.process_time() - began < 3
    assert len(arrived[0].body) == 40 << 20


# What is no frame


@quick
@given(outcomes, st.data())
def test_a_truncated_stream_is_an_error_at_its_end(outcome: Any, data: st.DataObject) -> None:
    whole = frame(wire.answer(1, outcome))
    reader = FrameReader(wire.TO_FRONT)
    assert list(reader.feed(whole[: data.draw(st.integers(1, len(whole) - 1))])) == []
    with pytest.raises(FrameError, match="ended within a frame"):
        reader.end()


@quick
@given(st.binary(max_size=200))
def test_any_bytes_are_messages_or_an_error(body: bytes) -> None:
    """What is in a frame of the right length is decoded now or refused now."""
    reader = FrameReader(wire.TO_OWNER)
    try:
        (message,) = reader.feed(struct.pack(">I", len(body)) + body)
    except FrameError:
        return
    assert isinstance(message, wire.Message)


@quick
@given(ops, starts, st.data())
def test_a_damaged_frame_is_a_message_or_an_error(op: Op, start: Start, data: st.DataObject) -> None:
    whole = bytearray(
        frame(
            wire.Perform(1, "sid", Principal(), wire.WireOp.of(op)),
            wire.Open(2, "sid", None, wire.WireStart.of(start), Principal(), "key"),
        )
    )
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    reader = FrameReader(wire.TO_OWNER)
    try:
        for message in reader.feed(bytes(whole)):
            if isinstance(message, wire.Perform):
                message.op.op()
            elif isinstance(message, wire.Open):
                message.start.start()
        reader.end()
    except FrameError:
        pass


def test_a_length_over_the_ceiling_is_refused_before_its_body_comes() -> None:
    with pytest.raises(FrameError, match=f"{MAX_FRAME + 1} bytes was announced; at most {MAX_FRAME}"):
        FrameReader(wire.TO_OWNER).feed(struct.pack(">I", MAX_FRAME + 1))
    with pytest.raises(FrameError, match="at most 100"):
        FrameReader(wire.TO_OWNER, limit=100).feed(struct.pack(">I", 101))


def test_what_is_too_large_is_not_sent() -> None:
    out = bytearray(frame(wire.Done(1)))
    before = bytes(out)
    with pytest.raises(FrameError, match="more than the 1000 that cross between processes at once"):
        write_frame(wire.Told(1, bytes(1000)), out, limit=1000)
    assert out == before
    write_frame(wire.Told(1, bytes(900)), out, limit=1000)
    assert len(FrameReader(wire.TO_FRONT).feed(bytes(out))) == 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "truncated"),
        (b"\xc1", "malformed"),
        (b"\x95\x02\x01", "truncated"),
        (b"\x92\x02", "at least length 5"),
        (msgspec.msgpack.encode([2, 1]), "array"),
        (msgspec.msgpack.encode([2, "one", "sid", {}, []]), "Expected `int`"),
        (msgspec.msgpack.encode([99, 1]), "value"),
        (msgspec.msgpack.encode({"type": 2}), "Expected `array`"),
        (msgspec.msgpack.encode([3, 1, "more"]), "length"),
        (b"\x91" * 100_000, "Expected `int`"),
        (msgspec.msgpack.encode([6, 1, b"\xff", {}]), "Expected `str`"),
        (b"\x94\x06\x01\xa2\xff\xff\x80", "UTF-8"),
        (msgspec.msgpack.encode([1, 1, "s", None, [b"[]", {"name": 5}], {}, None]), "Expected `str`"),
        (b"\x97\x01\x01\xa1s\xc0\x92\xc4\x02[]" + b"\x91" * 20_000, "nested too deeply"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[:12].hex(),
)
def test_wrong_bodies_are_named(body: bytes, words: str) -> None:
    with pytest.raises(FrameError, match=words):
        FrameReader(wire.TO_OWNER).feed(struct.pack(">I", len(body)) + body)


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[1,2,3,4]", b"[null,1,null,{}", b"[null,NaN,null,{}]", b"[null," + b"[" * 300, b"\xff"]
)
def test_wrong_json_inside_a_frame_is_named(text: bytes) -> None:
    """The frame is whole, so only its own request fails."""
    arrived = through(wire.Open(1, "s", None, wire.WireStart(text, Secrets()), Principal(), None), wire.TO_OWNER)
    with pytest.raises(FrameError, match="the start of an episode"):
        arrived.start.start()


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), "\ud800", {1, 2}, {"deep": object()}, 10**4300],
    ids=["nan", "inf", "surrogate", "set", "object", "long"],
)
def test_what_cannot_be_json_is_not_sent(value: Any) -> None:
    with pytest.raises(FrameError, match="the input cannot be JSON"):
        wire.WireOp.of(Op("call", "id", "tool", {"value": value}))
    with pytest.raises(FrameError, match="the observation cannot be JSON"):
        wire.answer(1, StepOutcome({"value": value}))


@pytest.mark.parametrize(
    "message", [wire.Touch(1, "\ud800", Principal()), wire.Called(1, b"", 2**64, False)], ids=["surrogate", "long"]
)
def test_what_no_frame_holds_is_not_sent(message: Any) -> None:
    out = bytearray(b"before")
    with pytest.raises(FrameError, match="cannot be written"):
        write_frame(message, out)
    assert out == b"before"


# Secrets

SECRET = "sesame-open-wide"


def test_secrets_are_revealed_in_the_bytes_of_their_frame_only() -> None:
    start = Start(task={"q": 1}, secrets=Secrets({"token": SECRET}))
    opening = wire.Open(1, "sid", None, wire.WireStart.of(start), Principal(), None)
    reset = wire.Perform(2, "sid", Principal(), wire.WireOp.of(Op("reset", start=start)))
    for message in (opening, reset):
        arrived = through(message, wire.TO_OWNER)
        body = frame(message)
        assert body.count(SECRET.encode()) == 1
        for shown in (message, arrived):
            assert SECRET not in repr(shown) and SECRET not in str(shown) and SECRET not in f"{shown!r:>1}"
            assert "Secrets(token)" in repr(shown)
    assert through(opening, wire.TO_OWNER).start.start().secrets.reveal() == {"token": SECRET}


@quick
@given(st.data())
def test_errors_about_a_frame_never_repeat_its_secrets(data: st.DataObject) -> None:
    start = Start(secrets=Secrets({"token": SECRET, SECRET: "x"}))
    whole = bytearray(frame(wire.Open(1, SECRET, SECRET, wire.WireStart.of(start), Principal(key=SECRET), SECRET)))
    position = data.draw(st.integers(4, len(whole) - 1))
    whole[position] = data.draw(st.integers(0, 255))
    said = ""
    try:
        for message in FrameReader(wire.TO_OWNER).feed(bytes(whole)):
            if isinstance(message, wire.Open):
                message.start.start()
    except FrameError as exc:
        said = "".join(traceback.format_exception(exc))
    assert SECRET not in said
