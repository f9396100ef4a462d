"""The demo's reader of server-sent events against the standard, with bytes cut anywhere."""

from __future__ import annotations

import pytest
from example_files import load
from hypothesis import given
from hypothesis import strategies as st

STREAM = (
    "\ufeffevent: task_id\r\ndata: 0f\r\n\r\n"
    ": a comment\n\n"
    "event: chunk\ndata:   two blanks stay\n\n"
    "event: chunk\rdata:no blank\rdata: a second line\r\r"
    "id: 7\nretry: 10\nnothing to do with us\n\n"
    "data: ünnamed 🎲\n\n"
    "event: end\ndata: \n\n"
    "event: end\ndata\n\n"
    "event: empty\n\n"
    "event: cut off\ndata: never told\n"
).encode()
EVENTS = [
    ("task_id", "0f"),
    ("chunk", "  two blanks stay"),
    ("chunk", "no blank\na second line"),
    ("message", "ünnamed 🎲"),
    ("end", ""),
    ("end", ""),
]


def read(pieces):
    stream = load("driver").EventStream()
    return [event for piece in pieces for event in stream.feed(piece)]


def test_the_whole_stream_at_once():
    assert read([STREAM]) == EVENTS


def test_byte_by_byte():
    assert read([STREAM[i : i + 1] for i in range(len(STREAM))]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_cut_anywhere(cuts):
    edges = [0, *sorted(cuts), len(STREAM)]
    assert read([STREAM[a:b] for a, b in zip(edges, edges[1:], strict=False)]) == EVENTS


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_every_line_end_ends_an_event_as_soon_as_it_is_there(end):
    stream = load("driver").EventStream()
    assert list(stream.feed(f"data: 1{end}".encode())) == []
    assert list(stream.feed(end[:1].encode())) == [("message", "1")]
    assert list(stream.feed(f"{end[1:]}data: 2{end}{end}".encode())) == [("message", "2")]
