"""A file of results, one line for each episode, that survives a kill at any byte.

A line is written at once and whole. What a kill tore is cut off when the file is opened again, and that episode is
played again; a last line that lacks no more than its end is kept.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from ors.errors import ORSError
from ors.evaluation.results import Result

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["ResultsFile", "ResultsFileError"]


_BEGINNING = b'{"env": '
"""How every line starts: what starts otherwise was not torn, it is something else."""


class ResultsFileError(ORSError):
    """A file cannot be used for results; the message says why, and what to do."""


class ResultsFile:
    """Results that were written before, and a place for more. Only one process at a time can have a file open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def open(self, seen: Callable[[Result], None], *, drop_failed: bool = False) -> None:
        """Call `seen` with each result that is there, and make ready for more.

        drop_failed: results that are failures are taken out, so that their episodes can be played again.
        Raises ResultsFileError.
        """
        try:
            self._fd = _locked(self.path)
            dropped = self._read(seen, drop_failed)
            if dropped:
                self._rewrite()
        except OSError as exc:
            self.close()
            raise ResultsFileError(f"{self.path}: {exc.strerror or exc}") from exc
        except BaseException:
            self.close()
            raise

    def write(self, line: bytes) -> None:
        """Add a line. Raises ResultsFileError when it cannot be written whole."""
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as exc:
            raise ResultsFileError(f"{self.path}: {exc.strerror or exc}") from exc

    def close(self) -> None:
        """Make sure that all is on the disk, and let others have the file."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _read(self, seen: Callable[[Result], None], drop_failed: bool) -> int:
        """Read the whole file and cut off what is torn; returns how many results are to be dropped."""
        dropped = end = number = 0
        with open(self._fd, "rb", closefd=False) as file:
            for line in file:
                number += 1
                whole = line.endswith(b"\n")
                try:
                    result = Result.read(line)
                except (ValueError, RecursionError) as exc:
                    if not whole and line[: len(_BEGINNING)] == _BEGINNING[: len(line)]:
                        break  # the torn last line
                    raise ResultsFileError(
                        f"{self.path}, line {number} is no result of `ors run` ({exc}); name another file"
                    ) from None
                end += len(line)
                if drop_failed and result.failure:
                    dropped += 1
                else:
                    seen(result)
                if not whole:
                    os.pwrite(self._fd, b"\n", end)
                    end += 1
                    break
        os.ftruncate(self._fd, end)
        os.lseek(self._fd, end, os.SEEK_SET)
        return dropped

    def _rewrite(self) -> None:
        """Put a file without the failures in this one's place: at every moment there is a whole one under the name."""
        beside = self.path.with_name(f"{self.path.name}.new")
        beside.unlink(missing_ok=True)
        fresh = _locked(beside)
        try:
            with open(self.path, "rb") as old, open(fresh, "wb", closefd=False) as new:
                new.writelines(line for line in old if not Result.read(line).failure)
            os.fsync(fresh)
            beside.replace(self.path)
        except BaseException:
            os.close(fresh)
            beside.unlink(missing_ok=True)
            raise
        os.close(self._fd)
        self._fd = fresh


def _locked(path: Path) -> int:
    # without O_APPEND: after a cut the place to write at is known, and nobody else writes
    fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0), 0o644)
    locking: Any = fcntl
    try:
        if locking is not None:
            locking.flock(fd, locking.LOCK_EX | locking.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise ResultsFileError(f"{path} is being written by another `ors run`; name another file, or wait") from None
    return fd
