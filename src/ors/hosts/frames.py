"""Frames: messages between a host and its owner process, as bytes.

A frame is a length of four bytes and one message in MessagePack. Where a message carries JSON that clients or authors
wrote, it carries JSON text, so that an integer of thousands of digits comes out as it went in. Secrets stand revealed
in the bytes of the frame that starts an episode and nowhere else: the messages themselves keep them masked.

What cannot be written, or is larger than a frame may be, is a FrameError for whoever sends it; nothing of it is sent.
What cannot be read is a FrameError for whoever receives it, and says nothing of the content.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ors.core.secrets import Secrets
from ors.jsontext import JSONTextError, JSONValueError, dump, load

__all__ = ["MAX_FRAME", "FrameError", "FrameReader", "json_text", "json_value", "write_frame"]

MAX_FRAME = 512 << 20
"""The largest message, in bytes. A length above it means that what arrives is not a frame."""

_LENGTH = 4


class FrameError(ValueError):
    """A message cannot be written as a frame, or bytes are not a frame; never repeats what stands in them."""


def json_text(what: str, value: Any) -> bytes:
    """A value as JSON text. Raises FrameError."""
    try:
        return dump(value)
    except JSONValueError as exc:
        raise FrameError(f"{what} cannot be JSON: {exc}") from None


def json_value(what: str, text: bytes, shape: Any = Any) -> Any:
    """The value of a JSON text, strictly, in the shape of a type. Raises FrameError."""
    try:
        return msgspec.convert(load(text), shape)
    except JSONTextError as exc:
        raise FrameError(f"{what} is not JSON that can be read: {exc}") from None
    except msgspec.ValidationError:
        raise FrameError(f"{what} has the wrong shape") from None


def _reveal(value: Any) -> Any:
    if isinstance(value, Secrets):
        return value.reveal()
    raise TypeError(f"{type(value).__name__} does not cross between processes")


def _conceal(kind: type, value: Any) -> Any:
    assert kind is Secrets
    return Secrets(msgspec.convert(value, dict[str, str]))


_encoder = msgspec.msgpack.Encoder(enc_hook=_reveal)


def write_frame(message: msgspec.Struct, out: bytearray, limit: int = MAX_FRAME) -> None:
    """Append a message to `out` as a frame. After a FrameError `out` is as it was."""
    before = len(out)
    out += b"\0\0\0\0"
    try:
        _encoder.encode_into(message, out, -1)
        size = len(out) - before - _LENGTH
        if size > limit:
            raise FrameError(f"{size} bytes are more than the {limit} that cross between processes at once")
    except FrameError:
        del out[before:]
        raise
    except (ValueError, TypeError, OverflowError, RecursionError) as exc:
        del out[before:]
        # of a UnicodeEncodeError the words would hold the text
        words = "its text is not valid Unicode" if isinstance(exc, UnicodeError) else str(exc)
        raise FrameError(f"a {type(message).__name__} message cannot be written: {words}") from None
    out[before : before + _LENGTH] = size.to_bytes(_LENGTH)


class FrameReader:
    """Turns bytes as they arrive into messages; `kinds` is the type, or union of types, that may come."""

    def __init__(self, kinds: Any, limit: int = MAX_FRAME) -> None:
        self._decoder = msgspec.msgpack.Decoder(kinds, dec_hook=_conceal)
        self._limit = limit
        self._rest = bytearray()
        self._wanted = 0

    def feed(self, data: bytes | bytearray) -> Sequence[Any]:
        """The messages that are complete now. Raises FrameError; the bytes after it mean nothing any more."""
        if self._rest:
            self._rest += data
            if len(self._rest) < self._wanted:
                # a large frame arrives in many pieces: it is looked at once, when it is whole
                return ()
            data, self._rest = self._rest, bytearray()
        messages: list[Any] = []
        position, end = 0, len(data)
        with memoryview(data) as view:
            while position < end:
                start = position + _LENGTH
                self._wanted = _LENGTH
                if start <= end:
                    size = int.from_bytes(view[position:start])
                    if size > self._limit:
                        raise FrameError(f"a frame of {size} bytes was announced; at most {self._limit} are read")
                    self._wanted += size
                if position + self._wanted > end:
                    self._rest += view[position:]
                    break
                position += self._wanted
                messages.append(self._decode(view[start:position]))
        return messages

    def end(self) -> None:
        """No more bytes will come. Raises FrameError when a frame is incomplete."""
        if self._rest:
            raise FrameError(f"the connection ended within a frame, after {len(self._rest)} bytes of it")

    def _decode(self, view: memoryview) -> Any:
        try:
            with view:
                return self._decoder.decode(view)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            words = "it is nested too deeply" if isinstance(exc, RecursionError) else _VALUE.sub("value", str(exc))
            raise FrameError(f"a frame that cannot be read: {words}") from None


_VALUE = re.compile(r"value '.*'", re.DOTALL)
