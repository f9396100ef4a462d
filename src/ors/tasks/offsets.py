"""Where each row of a text file starts: read from an index that is never loaded, eight bytes a row."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import IO

from ors.tasks.cache import keep
from ors.tasks.descriptors import Descriptor, Signature

__all__ = ["Offsets", "Writer", "open_offsets"]

_HEADER = struct.Struct("=8sQQ")
_SPAN = struct.Struct("=QQ")
_SMALL = 4 << 20
"""A file up to this size is indexed in some milliseconds and in memory, each time that it is opened."""

Writer = Callable[["Callable[[array[int]], object]"], None]
"""Indexes a file: calls what it is given with the starts of rows, in order, and at last with where the rows end."""


class Offsets:
    """The places of the rows of one file."""

    def __init__(self, held: array[int] | Descriptor, count: int) -> None:
        self._held = held
        self.count = count

    def span(self, index: int) -> tuple[int, int]:
        """Where a row starts, and where the next does (for the last row: where the rows end)."""
        if isinstance(self._held, Descriptor):
            data = self._held.read(_HEADER.size + 8 * index, 16)
            return _SPAN.unpack(data) if len(data) == 16 else (0, 0)
        return self._held[index], self._held[index + 1]

    def starts(self, start: int, stop: int) -> array[int]:
        """Where each row from `start` to before `stop` starts, and where the last of them ends."""
        if not isinstance(self._held, Descriptor):
            return self._held[start : stop + 1]
        found = array("Q")
        found.frombytes(self._held.read(_HEADER.size + 8 * start, 8 * (stop + 1 - start)))
        return found


def open_offsets(cache: Path, path: Path, signature: Signature, kind: str, size: int, write: Writer) -> Offsets:
    """The index of a file, kept in `cache` where the file is large. `kind` tells one way of indexing from another."""
    if size <= _SMALL:
        held = array("Q")
        write(held.extend)
        return Offsets(held, len(held) - 1)
    magic = f"ORS{kind[:3]:3}1{sys.byteorder[0]}".encode()

    def save(file: IO[bytes]) -> None:
        count = 0

        def add(starts: array[int]) -> None:
            nonlocal count
            count += len(starts)
            file.write(starts)

        file.write(bytes(_HEADER.size))
        write(add)
        file.seek(0)
        file.write(_HEADER.pack(magic, count - 1, size))

    def fits(found: Descriptor) -> bool:
        header = found.read(0, _HEADER.size)
        if len(header) < _HEADER.size:
            return False
        kept_magic, count, kept_size = _HEADER.unpack(header)
        whole = Signature.of(found.fd).size == _HEADER.size + 8 * (count + 1)
        return bool(kept_magic == magic and kept_size == size and whole)

    found = keep(cache, path, signature, f".{kind}-index", save, fits)
    return Offsets(found, _HEADER.unpack(found.read(0, _HEADER.size))[1])
