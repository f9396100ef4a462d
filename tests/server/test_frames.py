"""Frames: the reader and the writer against those of the `websockets` package."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.frames import Close, Frame, Opcode
from websockets.streams import StreamReader

from ors.server.frames import BINARY, CLOSE, PING, PONG, TEXT, FrameError, FrameReader, close_frame, frame, text_head


def sent(kind: int, payload: bytes, fin: bool = True) -> bytes:
    """A frame as a client sends it."""
    return Frame(Opcode(kind), payload, fin).serialize(mask=True)


def read_by_theirs(data: bytes) -> Frame:
    reader = StreamReader()
    reader.feed_data(data)
    parsing = Frame.parse(reader.read_exact, mask=False)
    with pytest.raises(StopIteration) as done:
        next(parsing)
    assert isinstance(done.value.value, Frame)
    return done.value.value


messages = st.one_of(
    st.tuples(st.just(TEXT), st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))),
    st.tuples(st.sampled_from([TEXT, BINARY]), st.sampled_from([125, 126, 127, 65535, 65536]).map(lambda n: b"x" * n)),
    st.tuples(st.just(BINARY), st.binary(max_size=300)),
    st.tuples(st.sampled_from([PING, PONG]), st.binary(max_size=125)),
)


@settings(deadline=None)
@given(
    what=st.lists(st.tuples(messages, st.lists(st.integers(0, 300), max_size=3), st.booleans()), max_size=6),
    cuts=st.lists(st.integers(0, 2000), max_size=8),
)
def test_messages_in_pieces_and_fragments_are_whole_again(
    what: list[tuple[tuple[int, bytes], list[int], bool]], cuts: list[int]
) -> None:
    data, expected = b"", []
    for (kind, payload), parts, pinged in what:
        if kind in (PING, PONG):
            data += sent(kind, payload)
        else:
            places = sorted({0, *(min(part, len(payload)) for part in parts), len(payload)})
            pieces = [payload[a:b] for a, b in zip(places, places[1:], strict=False)] or [b""]
            for number, piece in enumerate(pieces):
                if number and pinged:  # control frames may come between
                    data += sent(PING, b"between")
                    expected.append((PING, b"between"))
                data += sent(0 if number else kind, piece, number == len(pieces) - 1)
        expected.append((kind, payload.decode() if kind == TEXT else payload))
    reader, found = FrameReader(1 << 20), []
    places = sorted({0, *(min(cut, len(data)) for cut in cuts), len(data)})
    for start, end in zip(places, places[1:], strict=False):
        found += reader.feed(data[start:end])
    assert found == expected


@given(kind=st.sampled_from([TEXT, BINARY, PING, PONG]), payload=st.binary(max_size=70_000))
@settings(deadline=None, max_examples=40)
def test_what_is_written_is_read_by_others(kind: int, payload: bytes) -> None:
    payload = payload[:125] if kind in (PING, PONG) else payload
    theirs = read_by_theirs(frame(kind, payload))
    assert (theirs.opcode, theirs.data, theirs.fin) == (kind, payload, True)


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536, 100 << 20])
def test_heads_of_any_size(size: int) -> None:
    head = text_head(size)
    assert head[0] == 0x81
    said = head[1] if size < 126 else int.from_bytes(head[2:], "big")
    assert said == size and len(head) == (2 if size < 126 else 4 if size < 65536 else 10)


@pytest.mark.parametrize("code", [1000, 1001, 1005, 1009, 1012])
def test_close_frames(code: int) -> None:
    theirs = read_by_theirs(close_frame(code))
    assert theirs.opcode == CLOSE
    assert (Close.parse(theirs.data).code if theirs.data else 1005) == code


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x81\x05hello", 1002),  # not masked
        (b"\xc1\x80\0\0\0\0", 1002),  # a reserved bit
        (b"\x83\x80\0\0\0\0", 1002),  # an opcode that there is not
        (b"\x80\x80\0\0\0\0", 1002),  # goes on with nothing
        (sent(TEXT, b"a", False) + sent(TEXT, b"b"), 1002),  # one inside another
        (sent(TEXT, b"a", False) + b"\x81\x81\0\0\0\0b", 1002),
        (b"\x09\x80\0\0\0\0", 1002),  # a ping in parts
        (b"\x89\xfe\x00\x80\0\0\0\0", 1002),  # a long ping
        (b"\x88\x81\0\0\0\0a", 1002),  # half a code
        (b"\x88\x82\0\0\0\0" + (1005).to_bytes(2, "big"), 1002),  # a code that stands for none
        (b"\x88\x82\0\0\0\0" + (999).to_bytes(2, "big"), 1002),
        (b"\x88\x84\0\0\0\0" + (1000).to_bytes(2, "big") + b"\xff\xfe", 1007),
        (sent(TEXT, b"\xff\xfe"), 1007),
        (sent(TEXT, b"x" * 1001), 1009),
        (sent(BINARY, b"x" * 600, False) + sent(0, b"x" * 600), 1009),
        (b"\x81\xff" + (1 << 62).to_bytes(8, "big"), 1009),  # told before it is sent
    ],
    ids=range(16),  # masks are random
)
def test_what_is_no_frame_is_refused_with_its_code(data: bytes, code: int) -> None:
    for step in (len(data), 1):
        with pytest.raises(FrameError) as refused:
            _feed(FrameReader(1000), data, step)
        assert refused.value.code == code


def _feed(reader: FrameReader, data: bytes, step: int) -> None:
    for at in range(0, len(data), step):
        reader.feed(data[at : at + step])


@settings(deadline=None)
@given(data=st.binary(max_size=200))
def test_garbage_is_refused_or_waited_for(data: bytes) -> None:
    refused: int | None = None
    found: list[tuple[int, str | bytes]] = []
    try:
        found = FrameReader(100).feed(data)
    except FrameError as exc:
        refused = exc.code
    assert refused in (None, 1002, 1007, 1009)
    assert all(kind in (TEXT, BINARY, PING, PONG, CLOSE) for kind, _ in found)
