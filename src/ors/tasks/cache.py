"""Files made from a task file once and kept: its index, its unpacked text.

A kept file's name has a hash of the path and one of the signature of what it was made from, so that one that is there
fits. It appears whole (written under another name, then renamed), is made by one process while others wait, and the
ones from earlier states of the same file are removed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from ors.tasks.descriptors import Descriptor, Signature

__all__ = ["default_cache", "keep"]

_ABANDONED_S = 3600


def default_cache() -> Path:
    """`$XDG_CACHE_HOME/ors/tasks`, by default `~/.cache/ors/tasks`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base if base and os.path.isabs(base) else os.path.expanduser("~/.cache")) / "ors" / "tasks"


def keep(
    folder: Path,
    path: Path,
    signature: Signature,
    suffix: str,
    write: Callable[[IO[bytes]], object],
    fits: Callable[[Descriptor], bool],
) -> Descriptor:
    """Open the kept file `suffix` of a task file, which `write` makes where it is missing or does not fit.

    Where the folder cannot be written, what `write` makes is in a temporary file that only this process has. What
    `write` raises is passed on.
    """
    stem = f"{path.name[:60]}-{_hash(str(path))}"
    kept = folder / f"{stem}-{_hash(repr(tuple(signature)))}{suffix}"
    if (found := _existing(kept, fits)) is not None:
        return found
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _only_one(folder / f"{stem}{suffix}.lock"):
            # another process may have made it meanwhile
            return _existing(kept, fits) or _make(kept, stem, suffix, write)
    except _NotKept:
        pass
    except OSError as exc:
        if exc.errno not in _UNWRITABLE:
            raise OSError(exc.errno, exc.strerror, exc.filename or str(folder)) from exc
    with tempfile.TemporaryFile() as temporary:
        write(temporary)
        temporary.flush()
        return Descriptor(os.dup(temporary.fileno()))


class _NotKept(Exception):
    """The file cannot be made in the folder."""


_UNWRITABLE = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ENOENT))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _existing(kept: Path, fits: Callable[[Descriptor], bool]) -> Descriptor | None:
    try:
        found = Descriptor(kept)
    except OSError:
        return None
    return found if fits(found) else None


def _make(kept: Path, stem: str, suffix: str, write: Callable[[IO[bytes]], object]) -> Descriptor:
    try:
        fd, name = tempfile.mkstemp(prefix=f"{stem}-", suffix=f"{suffix}.tmp", dir=kept.parent)
    except OSError as exc:
        raise _NotKept from exc
    try:
        with os.fdopen(fd, "wb", buffering=1 << 20) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())  # a crash must not leave the name with half of what it stands for
        found = Descriptor(name)
        os.replace(name, kept)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _remove_earlier(kept, stem, suffix)
    return found


def _remove_earlier(kept: Path, stem: str, suffix: str) -> None:
    with contextlib.suppress(OSError):
        for entry in os.scandir(kept.parent):
            if not entry.name.startswith(f"{stem}-") or entry.name == kept.name:
                continue
            with contextlib.suppress(OSError):
                abandoned = entry.name.endswith(f"{suffix}.tmp") and time.time() - entry.stat().st_mtime > _ABANDONED_S
                if entry.name.endswith(suffix) or abandoned:
                    os.unlink(entry.path)


@contextlib.contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Hold a lock against other processes, where the system has such locks; without one, all of them make the file."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as exc:
        raise _NotKept from exc
    try:
        with contextlib.suppress(OSError):  # some network file systems
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
