"""Server-sent events, read as the standard says: any line end, any chunking, any length, one blank stripped."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Event", "EventReader"]

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event. `comments` are the comment lines since the one before: our server tells programs of failures there."""

    name: str
    data: bytes
    comments: tuple[bytes, ...] = ()


class EventReader:
    """Turns bytes as they come into events.

    Data stays bytes: a server may cut a long text anywhere, also inside a character.
    """

    __slots__ = ("_comments", "_data", "_name", "_rest", "_skip_lf", "_started")

    def __init__(self) -> None:
        # the pieces of the line that has not ended: joined once, or a long line would cost the square of its length
        self._rest: list[bytes] = []
        self._skip_lf = False
        self._started = False
        self._name = ""
        self._data: list[bytes] = []
        self._comments: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that these bytes complete."""
        if not chunk:
            return []
        if self._skip_lf:
            # the last chunk ended in CR: an LF here is the rest of that line's end
            self._skip_lf = False
            if chunk[:1] == b"\n":
                chunk = chunk[1:]
        lines = self._lines(chunk)
        if lines and not self._started:
            self._started = True
            lines[0] = lines[0].removeprefix(_BOM)
        events: list[Event] = []
        for line in lines:
            if line:
                self._take(line)
                continue
            # an event without data is none, as the standard has it; `end` events with an empty `data:` have some
            if self._data:
                events.append(Event(self._name or "message", b"\n".join(self._data), tuple(self._comments)))
                self._data = []
                self._comments = []
            self._name = ""
        return events

    def _lines(self, chunk: bytes) -> list[bytes]:
        if b"\r" in chunk:
            self._skip_lf = chunk[-1] == 0x0D
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._rest:
            self._rest.append(lines[0])
            lines[0] = b"".join(self._rest)
            self._rest = []
        if rest:
            self._rest.append(rest)
        return lines

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif not field:
            self._comments.append(value)
            # keep-alive comments of hours are not kept
            del self._comments[:-4]
