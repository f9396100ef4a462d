"""Compressed answers: which coding a client takes, and gzip and zstd for whole answers and for streams."""

from __future__ import annotations

import functools
import importlib
import zlib
from typing import Any, Protocol

__all__ = ["SMALLEST", "Packer", "negotiate"]

SMALLEST = 1024
"""Shorter answers are not compressed."""

_LEVEL = 1
"""Of both codings: JSON shrinks most of what it can at the first level, and the others cost several times as much."""


class Packer(Protocol):
    """One compressed answer."""

    name: bytes

    def pack(self, data: bytes) -> bytes:
        """What can be sent after some more of the answer; whoever gets it can unpack all that was packed."""
        ...

    def end(self) -> bytes:
        """The last of it."""
        ...


def negotiate(accepted: str) -> Packer | None:
    """A packer of the coding that `Accept-Encoding` likes best, zstd before gzip; None where it names neither.

    A header that cannot be read is one that names neither. Without the package for zstd there is gzip alone.
    """
    if not accepted:
        return None
    wanted: dict[str, float] = {}
    for part in accepted.lower().split(","):
        name, *parameters = (text.strip() for text in part.split(";"))
        wanted[name] = _quality(parameters)
    best: tuple[float, type[Any]] | None = None
    for name, packer in (("zstd", _Zstd), ("gzip", _Gzip)):
        quality = wanted.get(name, wanted.get("x-gzip", wanted.get("*", 0.0)) if name == "gzip" else 0.0)
        if quality > 0 and (best is None or quality > best[0]) and (name == "gzip" or _zstd() is not None):
            best = (quality, packer)
    if best is None or best[0] < wanted.get("identity", 0.0):
        return None
    packed: Packer = best[1]()
    return packed


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = float(value)
            except ValueError:
                return 0.0
            return quality if 0 <= quality <= 1 else 0.0
    return 1.0


class _Gzip:
    name = b"gzip"

    def __init__(self) -> None:
        self._packer = zlib.compressobj(_LEVEL, wbits=31)

    def pack(self, data: bytes) -> bytes:
        return self._packer.compress(data) + self._packer.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        return self._packer.flush()


class _Zstd:
    name = b"zstd"

    def __init__(self) -> None:
        module = _zstd()
        self._packer = module.ZstdCompressor(level=_LEVEL)
        self._block = module.ZstdCompressor.FLUSH_BLOCK

    def pack(self, data: bytes) -> bytes:
        packed: bytes = self._packer.compress(data, self._block)
        return packed

    def end(self) -> bytes:
        packed: bytes = self._packer.flush()
        return packed


@functools.cache
def _zstd() -> Any:
    """Python's own module since 3.14, or the package that has it for those before; None where there is none."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None
