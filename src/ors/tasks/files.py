"""Rows of text files, by their place: opened late, indexed once, and never a row of another state of the file."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from ors.errors import TaskFileError
from ors.tasks.cache import default_cache
from ors.tasks.declared import DeclaredSource, defining_folder, outside
from ors.tasks.descriptors import Descriptor, Signature, settled
from ors.tasks.locks import OpeningLock
from ors.tasks.offsets import Offsets, open_offsets
from ors.tasks.source import Id, bad_task
from ors.tasks.unpacking import is_compressed, unpack

__all__ = ["FileSource", "OpenedFile"]

_ATTEMPTS = 5
_AT_ONCE = 32 << 20
_BOM = b"\xef\xbb\xbf"

T = TypeVar("T")


class OpenedFile:
    """One state of a file: its text, and where its rows are. They may start at `base`: after a byte order mark."""

    def __init__(self, path: Path, named: str, signature: Signature, text: Descriptor, size: int, base: int) -> None:
        self.path = path
        self.named = named
        self.signature = signature
        self.text = text
        self.size = size
        self.base = base
        self.offsets: Offsets
        self.header: Any = None

    def is_current(self) -> bool:
        """Whether the file is still the one that was opened, and nobody has written to it."""
        try:
            return Signature.of(self.path) == self.signature
        except OSError:
            return False

    def fail(self, detail: str, index: int | None = None) -> NoReturn:
        """Raise TaskFileError for the file, or for the row at an index."""
        raise TaskFileError(self.named, detail, None if index is None else index + 1)


class FileSource(DeclaredSource["str | os.PathLike[str]"]):
    """Tasks that are rows of text files, one file for each split, UTF-8, plain or compressed (.gz, .zst).

    Paths start from the folder of the Python file that makes the source. `cache` is the folder for indices of files
    over 4 MiB and for the text of compressed ones, by default `$XDG_CACHE_HOME/ors/tasks` or `~/.cache/ors/tasks`.
    """

    _kind = "rows"
    _ends = b"\n"

    def __init__(
        self,
        where: Mapping[str, str | os.PathLike[str]],
        *,
        id: Id = None,
        types: Mapping[str, str] | None = None,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(where, id=id, types=types)
        self._folder = defining_folder()
        self._cache = None if cache is None else self._folder / Path(cache).expanduser()
        for split, path in where.items():
            if not isinstance(path, (str, os.PathLike)):
                words = "give the path of a file; `union` lays the files of a split one behind another"
                raise TypeError(f"split {split!r} is {path!r:.200}; {words}")
        self._lock = OpeningLock()
        self._opened: dict[str, OpenedFile] = {}

    def count(self, split: str) -> int:
        """How many rows the file of a split has."""
        return self._reading(split, lambda file: file.offsets.count)

    def get(self, split: str, index: int) -> Any:
        """The task in a row."""
        return self._parse(*self._reading(split, lambda file: (file, self._row(file, split, index), index)))

    def range(self, split: str, start: int, stop: int) -> list[Any]:
        """The tasks in the rows from `start` to before `stop`."""
        file, rows = self._reading(split, lambda file: (file, self._rows(file, start, stop)))
        return [self._parse(file, row, index) for index, row in enumerate(rows, start)]

    def texts_as(self, split: str, start: int, stop: int, first: int) -> list[bytes]:
        """The tasks in these rows as JSON texts."""
        file, rows = self._reading(split, lambda file: (file, self._rows(file, start, stop)))
        found: list[bytes] = []
        for index, row in enumerate(rows, start):
            try:
                found.append(self._text(file, row, index))
            except (ValueError, TypeError) as exc:
                found.append(bad_task(split, index - start + first, exc))
        return found

    def version(self, split: str) -> Hashable:
        """The file's inode, size and times."""
        return self._reading(split, lambda file: file.signature)

    # What a format knows

    @abstractmethod
    def _index(self, file: OpenedFile, add: Callable[[Any], object]) -> None:
        """Call `add` with the places where rows start, in order, and at last with where the rows end."""

    @abstractmethod
    def _parse(self, file: OpenedFile, row: bytes, index: int) -> Any:
        """The task in a row. Raises TaskFileError."""

    @abstractmethod
    def _text(self, file: OpenedFile, row: bytes, index: int) -> bytes:
        """The task in a row as JSON. Raises TaskFileError or JSONValueError."""

    def _begin(self, file: OpenedFile) -> None:
        """Read what stands before the rows."""

    # Reading

    def _reading(self, split: str, read: Callable[[OpenedFile], T]) -> T:
        """What `read` finds in a file, which is as it was opened until it has."""
        file = self._opened.get(split)
        for _ in range(_ATTEMPTS):
            if file is None:
                file = self._open(split)
            try:
                found = read(file)
            except _OtherText:
                pass
            except IndexError:  # there may be more rows now
                if file.is_current():
                    raise
            else:
                if file.is_current():
                    return found
            with self._lock:
                if self._opened.get(split) is file:
                    del self._opened[split]
            file = None
        raise TaskFileError(self._named(split), "the file is being written while it is read")

    def _row(self, file: OpenedFile, split: str, index: int) -> bytes:
        if not 0 <= index < file.offsets.count:
            raise outside(split, index, file.offsets.count)
        start, end = file.offsets.span(index)
        before = start > file.base
        if end <= start:
            raise _OtherText
        return self._checked(file.text.read(start - before, end - start + before), end - start, before)

    def _rows(self, file: OpenedFile, start: int, stop: int) -> list[bytes]:
        stop = min(stop, file.offsets.count)
        if start >= stop:
            return []
        places = file.offsets.starts(start, stop)
        if len(places) != stop - start + 1:
            raise _OtherText
        found: list[bytes] = []
        first = 0
        while first < stop - start:
            last = first + 1
            while last < stop - start and places[last + 1] - places[first] <= _AT_ONCE:
                last += 1
            begin = places[first]
            before = begin > file.base
            data = file.text.read(begin - before, places[last] - begin + before)
            for at in range(first, last):
                low, high = places[at] - begin + before, places[at + 1] - begin + before
                found.append(self._checked(data[low - (at > first or before) : high], high - low, at > first or before))
            first = last
        return found

    def _checked(self, data: bytes, size: int, before: bool) -> bytes:
        """A row, without the end of another before it that shows that it is one."""
        if len(data) != size + before or (before and data[0] not in self._ends):
            raise _OtherText
        return data[1:] if before else data

    # Opening

    def _open(self, split: str) -> OpenedFile:
        where = self.where(split)
        with self._lock:
            if (file := self._opened.get(split)) is not None:
                return file
            path, named = self._folder / Path(where).expanduser(), self._named(split)
            for _ in range(_ATTEMPTS):
                try:
                    file = self._open_once(path, named)
                except OSError as exc:
                    raise TaskFileError(named, f"{exc.strerror or exc} ({exc.filename or path})") from exc
                if file is not None:
                    self._opened[split] = file
                    return file
        raise TaskFileError(named, "the file is being written while it is read")

    def _open_once(self, path: Path, named: str) -> OpenedFile | None:
        if path.is_dir():
            raise TaskFileError(named, "is a folder; name a file for each split")
        signature = settled(path)
        if not path.is_file():  # reading a pipe would wait for ever
            raise TaskFileError(named, "is no file that can be read by places")
        try:
            file = self._open_state(path, named, signature)
        except (TaskFileError, _OtherText):
            if Signature.of(path) == signature:
                raise
            return None
        return file if file.is_current() else None

    def _open_state(self, path: Path, named: str, signature: Signature) -> OpenedFile:
        cache = self._cache or default_cache()
        text = unpack(path, named, signature, cache) if is_compressed(path) else Descriptor(path)
        size = Signature.of(text.fd).size
        start = text.read(0, 4)
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise TaskFileError(named, "is UTF-16; write it as UTF-8")
        file = OpenedFile(path, named, signature, text, size, 3 if start.startswith(_BOM) else 0)
        file.offsets = open_offsets(cache, path, signature, self._kind, size, lambda add: self._index(file, add))
        self._begin(file)
        return file

    def _named(self, split: str) -> str:
        return os.fspath(self.where(split))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": {}}


class _OtherText(Exception):
    """What was read is not what the index is of."""
