"""Server-sent events mean the same in whatever pieces and with whatever line ends they come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ors.client.sse import Event, EventReader

TEXT = st.text(alphabet=st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=30)
FIELDS = st.lists(st.tuples(st.sampled_from(["data", "event", "comment", "id", "nocolon"]), TEXT), max_size=6)


def read(data: bytes, cuts: list[int] = []) -> list[tuple[str, bytes]]:  # noqa: B006
    reader = EventReader()
    places = sorted({0, *(cut % (len(data) + 1) for cut in cuts), len(data)})
    events = [event for a, b in zip(places, places[1:], strict=False) for event in reader.feed(data[a:b])]
    return [(event.name, event.data) for event in events]


@given(
    events=st.lists(FIELDS, max_size=5),
    ends=st.lists(st.sampled_from(["\n", "\r", "\r\n"]), min_size=1, max_size=5),
    cuts=st.lists(st.integers(0, 10_000), max_size=10),
    bom=st.booleans(),
)
def test_any_pieces_and_any_line_ends(
    events: list[list[tuple[str, str]]], ends: list[str], cuts: list[int], bom: bool
) -> None:
    lines: list[str] = []
    expected: list[tuple[str, bytes]] = []
    for fields in events:
        name, data, has_data = "message", [], False
        for kind, text in fields:
            if kind == "comment":
                lines.append(f":{text}")
            elif kind == "nocolon":
                lines.append("data")
                data.append("")
                has_data = True
            else:
                lines.append(f"{kind}: {text}")
                if kind == "data":
                    data.append(text)
                    has_data = True
                elif kind == "event":
                    name = text or "message"
        lines.append("")
        if has_data:
            expected.append((name, "\n".join(data).encode()))
    text = "".join(line + ends[number % len(ends)] for number, line in enumerate(lines))
    sent = (b"\xef\xbb\xbf" if bom else b"") + text.encode()
    # a lone CR and an LF after it are one line end, so they must not meet where two were meant
    if "\r\n" in "".join(a + b for a, b in zip(ends, ends[1:] + ends[:1], strict=True)) and len(set(ends)) > 1:
        return
    assert read(sent, cuts) == expected
    assert read(sent, list(range(len(sent)))) == expected


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"data:  two blanks\n\n", [("message", b" two blanks")]),
        (b"data:none\n\n", [("message", b"none")]),
        (b"data\n\n", [("message", b"")]),
        (b"event: end\ndata: \n\n", [("end", b"")]),
        (b"event: nothing\n\n", []),
        (b"data: a\ndata: b\n\n", [("message", b"a\nb")]),
        (b"data: unfinished", []),
        (b": ping\n\n: ping\n\ndata: x\n\n", [("message", b"x")]),
        (b"retry: 3\nid: 4\nunknown: y\ndata: x\n\n", [("message", b"x")]),
        (b"data: " + b"x" * 3_000_000 + b"\n\n", [("message", b"x" * 3_000_000)]),
    ],
)
def test_what_the_standard_says(sent: bytes, expected: list[tuple[str, bytes]]) -> None:
    assert read(sent) == expected
    assert read(sent.replace(b"\n", b"\r\n"), list(range(min(len(sent), 500)))) == expected


def test_comments_come_with_the_event_after_them() -> None:
    (event,) = EventReader().feed(b": failure {}\r\nevent: error\r\ndata: x\r\n\r\n")
    assert event == Event("error", b"x", (b" failure {}"[1:],))
