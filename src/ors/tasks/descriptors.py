"""Open files that many threads and forked processes read at once: each read says where, and nothing has a position."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ["Descriptor", "Signature", "settled"]

_TICK_NS = 20_000_000
"""Two writes this far apart never have the same time: the clock of files ticks every 10 ms at the slowest."""


class Signature(NamedTuple):
    """What tells one state of a file from another. Times are in nanoseconds."""

    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, path: str | os.PathLike[str] | int) -> Signature:
        """The signature of a file, by path or descriptor. Raises OSError."""
        found = os.stat(path)
        return cls(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def settled(path: Path) -> Signature:
    """The signature of a file once its time is so far back that any later write gives it another."""
    while True:
        found = Signature.of(path)
        age = time.time_ns() - max(found.modified, found.changed)
        if not 0 <= age < _TICK_NS:
            return found
        time.sleep((_TICK_NS - age) / 1e9)


class Descriptor:
    """A file open for reading; closed when nobody holds it any more."""

    def __init__(self, path: str | os.PathLike[str] | int) -> None:
        """Open a path, or take over a descriptor. Raises OSError."""
        self.fd = -1  # for __del__, where opening fails
        self.fd = path if isinstance(path, int) else os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._lock = threading.Lock()

    def read(self, start: int, size: int) -> bytes:
        """`size` bytes from `start` on; fewer only where the file ends."""
        data = self._read(start, size)
        if len(data) == size or not data:
            return data
        parts = [data]
        while (size := size - len(parts[-1])) > 0:
            start += len(parts[-1])
            if not (data := self._read(start, size)):
                break
            parts.append(data)
        return b"".join(parts)

    if hasattr(os, "pread"):

        def _read(self, start: int, size: int) -> bytes:
            return os.pread(self.fd, min(size, 1 << 30), start)
    else:  # Windows

        def _read(self, start: int, size: int) -> bytes:
            with self._lock:
                os.lseek(self.fd, start, os.SEEK_SET)
                return os.read(self.fd, min(size, 1 << 30))

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
