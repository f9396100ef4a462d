"""Texts and images that go wrong easily on their way through a stream of events, made from a few numbers.

Both the environment and the judge make them from the same numbers, so only hashes have to be compared.
"""

from __future__ import annotations

import functools
import hashlib
import random
import struct

BLANKS = [chr(code) for code in range(0x110000) if chr(code).isspace()]
"""Every character that `str.strip` takes away: the clients strip the start of each piece of a result."""

# white space for other programs, marks of direction and order, what JSON must escape, what ends a line for some
TRICKY = [
    *'\ufeff\u180e\u200b\u200d\u2060\u200e\u202e"\\/\x00\x08\x1b\x7f\u0301\ufffd\ufffe',
    "\r\n",
    "\n\n",
    "\r",
    "data: ",
    ": ",
]
# surrogates are no characters, so that plane 0 has a gap
PLANES = [(plane << 16, (plane << 16) + 0xFFFF) for plane in range(17)]


@functools.cache
def text_of(kind: str, size: int, seed: int = 0) -> str:
    """A text of `size` characters (for "tricky", of pieces).

    Kinds: a blank as "blank:<hexadecimal>", runs of 40 of it as "runs:<hexadecimal>", "blanks", "indented",
    "plane:<number>", "planes", "tricky", "letters".
    """
    rng = random.Random(f"{kind} {size} {seed}")
    head, _, rest = kind.partition(":")
    if head == "blank":
        # the letters in front move every border between two pieces by one
        return ("x" * seed + chr(int(rest, 16)) * size)[:size]
    if head == "runs":
        run = "x" + chr(int(rest, 16)) * 40
        return (run * (size // 41 + 2))[seed : seed + size]
    if head == "blanks":
        return "".join(rng.choices(BLANKS, k=size))
    if head == "indented":
        return "".join(rng.choices([" ", "\n", "\t", "    ", "x", "\u3000"], [8, 1, 1, 4, 1, 1], k=size))[:size]
    if head == "plane":
        low, high = PLANES[int(rest)]
        return "".join(_character(rng.randint(low, high)) for _ in range(size))
    if head == "planes":
        return "".join(_character(rng.randint(*rng.choice(PLANES))) for _ in range(size))
    if head == "tricky":
        return "".join(rng.choices(TRICKY + BLANKS, k=size))
    if head == "letters":
        return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=size))
    raise ValueError(f"no kind of text is called {kind!r}")


@functools.cache
def whole_plane(plane: int) -> str:
    """Every character of a plane, in order."""
    low, high = PLANES[plane]
    return "".join(_character(code) for code in range(low, high + 1))


def image_of(size: int, seed: int = 0) -> bytes:
    """A valid bitmap of noise that is exactly `size` bytes long (at least 58)."""
    width = 1
    rows, spare = divmod(size - 54, 4)
    header = struct.pack("<2sIHHI", b"BM", size, 0, 0, 54)
    header += struct.pack("<IiiHHIIiiII", 40, width, rows, 1, 24, 0, rows * 4, 2835, 2835, 0, 0)
    return header + random.Random(seed).randbytes(rows * 4 + spare)


def sha256(data: str | bytes) -> str:
    """The hash by which two texts or images are compared."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def _character(code: int) -> str:
    return chr(code) if not 0xD800 <= code <= 0xDFFF else "\ufffd"
