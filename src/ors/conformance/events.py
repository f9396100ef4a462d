"""Server-sent events as bytes: what a stream holds, when it came, and what in it a reader may trip over."""

from __future__ import annotations

from dataclasses import dataclass, field

from ors.conformance.wire import Answer

__all__ = ["Event", "Stream", "read_stream"]


@dataclass(frozen=True)
class Event:
    """One event: its name, the values of its data lines, and when its last line came."""

    name: str
    data: tuple[str, ...]
    at_s: float

    @property
    def text(self) -> str:
        """The data as the standard joins it."""
        return "\n".join(self.data)


@dataclass
class Stream:
    """A stream, read to where it ended."""

    events: list[Event] = field(default_factory=list)
    comments: list[tuple[float, str]] = field(default_factory=list)
    odd_lines: list[str] = field(default_factory=list)
    """Lines that are neither a field nor a comment."""
    not_utf8: bool = False
    longest_line: int = 0
    unfinished: bool = False
    """It ended within an event."""

    def first(self, name: str) -> Event | None:
        """The first event of a name."""
        return next((event for event in self.events if event.name == name), None)

    def named(self, *names: str) -> list[Event]:
        """The events of these names, in order."""
        return [event for event in self.events if event.name in names]


def read_stream(answer: Answer) -> Stream:
    """Read the events of an answer. A line ends with CRLF, LF or CR; a space after a colon is no part of the value."""
    stream = Stream()
    name, begun = "", False
    data: list[str] = []
    for at_s, line in _lines(answer):
        stream.longest_line = max(stream.longest_line, len(line))
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            stream.not_utf8 = True
            text = line.decode("utf-8", "replace")
        if not text:
            if name or data:
                stream.events.append(Event(name or "message", tuple(data), at_s))
            name, data, begun = "", [], False
            continue
        key, colon, value = text.partition(":")
        value = value.removeprefix(" ")
        if not key and colon:
            stream.comments.append((at_s, value))
            continue
        begun = True
        if key == "event" and colon:
            name = value
        elif key == "data" and colon:
            data.append(value)
        elif not colon or key not in ("id", "retry"):
            stream.odd_lines.append(text[:80])
    stream.unfinished = begun
    return stream


def _lines(answer: Answer) -> list[tuple[float, bytes]]:
    """The lines of a body, each with the time at which its end came; what follows the last end of line is one more."""
    ends: list[tuple[int, float]] = []
    size = 0
    for at_s, piece in answer.pieces:
        size += len(piece)
        ends.append((size, at_s))
    body = answer.body.removeprefix(b"\xef\xbb\xbf")
    shift = size - len(body)
    lines: list[tuple[float, bytes]] = []
    position, place = 0, 0
    for line in body.splitlines(keepends=True):
        # bytes.splitlines knows exactly the three ends of lines that the standard has
        position += len(line)
        while place < len(ends) - 1 and ends[place][0] < position + shift:
            place += 1
        lines.append((ends[place][1], line.rstrip(b"\r\n")))
    return lines
