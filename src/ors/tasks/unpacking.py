"""Compressed task files are unpacked once, into the cache: nothing can be found by its place in a compressed one."""

from __future__ import annotations

import importlib
import zlib
from pathlib import Path
from typing import IO, Any

from ors.errors import TaskFileError
from ors.tasks.cache import keep
from ors.tasks.descriptors import Descriptor, Signature

__all__ = ["is_compressed", "unpack"]

_PIECE = 1 << 20


def is_compressed(path: Path) -> bool:
    """Whether a file's name says that it is compressed."""
    return path.suffix in (".gz", ".zst")


def unpack(path: Path, named: str, signature: Signature, cache: Path) -> Descriptor:
    """The text of a compressed file. Raises TaskFileError where it is cut off or damaged, ImportError without zstd."""
    opened, broken = _opener(path)

    def write(file: IO[bytes]) -> None:
        try:
            with opened(path) as packed:
                while piece := packed.read(_PIECE):
                    file.write(piece)
        except EOFError:
            raise TaskFileError(named, "the compressed file is cut off") from None
        except broken as exc:
            raise TaskFileError(named, f"the compressed file is damaged: {exc}") from None

    # that a file is there means that it was written to its end: it is renamed only then
    return keep(cache, path, signature, f".{path.suffix[1:]}-unpacked", write, lambda found: True)


def _opener(path: Path) -> tuple[Any, tuple[type[Exception], ...]]:
    if path.suffix == ".gz":
        import gzip

        return gzip.open, (zlib.error, gzip.BadGzipFile)
    for name in ("compression.zstd", "backports.zstd"):
        try:
            zstd = importlib.import_module(name)
        except ImportError:
            continue
        return zstd.open, (zstd.ZstdError,)
    raise ImportError(f"{path.name} is compressed with zstd: pip install 'ors-kit[zstd]', or use Python 3.14")
