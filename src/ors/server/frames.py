"""Frames of WebSockets (RFC 6455) as a server reads and writes them, without extensions.

Text is checked to be UTF-8 when its message is whole.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BINARY", "CLOSE", "PING", "PONG", "TEXT", "FrameError", "FrameReader", "close_frame", "frame", "text_head"]

TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10

PROTOCOL_ERROR = 1002
NOT_UTF8 = 1007
TOO_LARGE = 1009

_CODES = frozenset([1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014])


class FrameError(Exception):
    """What arrives is no frame that may come here. code: with which the connection is to be closed."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class FrameReader:
    """Bytes in any pieces → messages. `limit`: the size of the largest message."""

    __slots__ = ("_buffer", "_kind", "_need", "_parts", "_size", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._buffer = bytearray()
        self._need = 0
        self._kind = 0
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[tuple[int, str | bytes]]:
        """The messages that are whole now: their kind, and text, bytes, or a code for CLOSE. Raises FrameError."""
        if not self._buffer:
            # the usual: one short text, whole
            size = len(data)
            if size >= 6 and data[0] == 0x81 and 0x80 <= (second := data[1]) < 0xFE and size == second - 122:
                if self._kind:
                    raise FrameError(PROTOCOL_ERROR, "a new message began inside another")
                return [(TEXT, _text(_unmasked(data[6:], data[2:6])))]
        self._buffer += data
        found: list[tuple[int, str | bytes]] = []
        while len(self._buffer) >= max(2, self._need):
            message = self._read_one()
            if message is None:
                break
            if message:
                found.append(message)
        return found

    def _read_one(self) -> tuple[int, str | bytes] | tuple[()] | None:
        """A message; () where a frame held only a part of one; None where more has to come."""
        buffer = self._buffer
        first, second = buffer[0], buffer[1]
        kind, size, at = first & 0x0F, second & 0x7F, 2
        if first & 0x70:
            raise FrameError(PROTOCOL_ERROR, "reserved bits are set, and no extension was agreed on")
        if not second & 0x80:
            raise FrameError(PROTOCOL_ERROR, "a client masks its frames")
        if kind in (CLOSE, PING, PONG):
            if not first & 0x80 or size > 125:
                raise FrameError(PROTOCOL_ERROR, "a control frame is whole and short")
        elif kind not in (0, TEXT, BINARY):
            raise FrameError(PROTOCOL_ERROR, f"a frame of an unknown kind ({kind})")
        elif (kind == 0) is not bool(self._kind):
            raise FrameError(PROTOCOL_ERROR, "a message that goes on never began, or one began inside another")
        if size >= 126:
            at = 4 if size == 126 else 10
            if len(buffer) < at:
                self._need = at
                return None
            size = int.from_bytes(buffer[2:at], "big")
        if kind < CLOSE and self._size + size > self.limit:
            raise FrameError(TOO_LARGE, f"a message has more than {self.limit} bytes")
        end = at + 4 + size
        if len(buffer) < end:
            self._need = end
            return None
        self._need = 0
        payload = _unmasked(bytes(buffer[at + 4 : end]), bytes(buffer[at : at + 4]))
        del buffer[:end]
        return self._taken(kind, bool(first & 0x80), payload)

    def _taken(self, kind: int, whole: bool, payload: bytes) -> tuple[int, str | bytes] | tuple[()]:
        if kind >= CLOSE:
            return (kind, _code(payload)) if kind == CLOSE else (kind, payload)
        self._parts.append(payload)
        self._size += len(payload)
        self._kind = kind or self._kind
        if not whole:
            return ()
        kind, payload = self._kind, b"".join(self._parts)
        self._parts, self._size, self._kind = [], 0, 0
        return (TEXT, _text(payload)) if kind == TEXT else (BINARY, payload)


def frame(kind: int, payload: bytes) -> bytes:
    """A whole message as one frame."""
    return text_head(len(payload), kind) + payload


def text_head(size: int, kind: int = TEXT) -> bytes:
    """What stands before the payload of a whole message."""
    if size < 126:
        return bytes((0x80 | kind, size))
    if size < 1 << 16:
        return bytes((0x80 | kind, 126)) + size.to_bytes(2, "big")
    return bytes((0x80 | kind, 127)) + size.to_bytes(8, "big")


def close_frame(code: int) -> bytes:
    """The frame that closes; 1005 stands for no code."""
    return frame(CLOSE, b"" if code == 1005 else code.to_bytes(2, "big"))


def _unmasked(payload: bytes, key: bytes) -> bytes:
    size = len(payload)
    if key == b"\0\0\0\0":
        return payload
    # as one number each: the fastest way without a module of its own in C
    pattern = int.from_bytes((key * (size // 4 + 1))[:size], "little")
    return (int.from_bytes(payload, "little") ^ pattern).to_bytes(size, "little")


def _text(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError as exc:
        raise FrameError(NOT_UTF8, f"a text is not UTF-8 at byte {exc.start}") from None


def _code(payload: bytes) -> bytes:
    """The code of a CLOSE as two bytes; empty where it has none."""
    if not payload:
        return b""
    code = int.from_bytes(payload[:2], "big")
    if len(payload) == 1 or not (code in _CODES or 3000 <= code <= 4999):
        raise FrameError(PROTOCOL_ERROR, "a close frame has a code that there is not")
    _text(payload[2:])
    return payload[:2]
