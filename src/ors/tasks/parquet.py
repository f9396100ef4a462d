"""Tasks in Parquet and Arrow files: any row by its place, without reading those before it."""

from __future__ import annotations

import glob
import mmap
import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, TypeVar

from ors.errors import TaskFileError
from ors.tasks.arrow import Rows, arrow
from ors.tasks.cache import default_cache, keep
from ors.tasks.declared import DeclaredSource, defining_folder, outside
from ors.tasks.descriptors import Signature, settled
from ors.tasks.locks import OpeningLock
from ors.tasks.source import Id, bad_task, encode_task

__all__ = ["Parquet"]

_MOST_IN_GROUP = 10_000
_IN_BATCH = 1_000
_GROUPS_KEPT = 4
_ATTEMPTS = 5

Where = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
T = TypeVar("T")


class Parquet(DeclaredSource[Where]):
    """`{split: path}` of Parquet files, or of Arrow IPC files and streams (.arrow, .arrows, .feather, .ipc).

    A path may be a pattern (`train-*.parquet`, in the order of the names), and several may stand in a list: their rows
    are one after another. Paths start from the folder of the Python file that makes the source. How columns become
    JSON is in `ors.tasks.arrow`; `images` names binary columns that hold images, `columns` the only ones to read.

    Of a Parquet file whose row groups have 10,000 rows at most the group of a row is read; any other is written once,
    as Arrow, to `cache` (as `Jsonl` has it), and from there on each row is read by itself.
    """

    def __init__(
        self,
        where: Mapping[str, Where],
        *,
        columns: Sequence[str] | None = None,
        images: Sequence[str] = (),
        id: Id = None,
        types: Mapping[str, str] | None = None,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(where, id=id, types=types)
        if isinstance(columns, str) or isinstance(images, str):
            raise TypeError("columns and images are lists of names")
        self._columns = None if columns is None else list(columns)
        self._images = list(images)
        self._folder = defining_folder()
        self._cache = None if cache is None else self._folder / Path(cache).expanduser()
        self._lock = OpeningLock()
        self._opened: dict[str, _Opened] = {}

    def count(self, split: str) -> int:
        """How many rows the files of a split have."""
        return self._reading(split, lambda opened: opened.starts[-1])

    def get(self, split: str, index: int) -> dict[str, Any]:
        """The task in a row."""

        def read(opened: _Opened) -> dict[str, Any]:
            if not 0 <= index < opened.starts[-1]:
                raise outside(split, index, opened.starts[-1])
            ((table, rows, named, _),) = opened.tables(index, index + 1)
            try:
                return rows.task(table)
            except ValueError as exc:
                raise TaskFileError(named, str(exc), index + 1) from None

        return self._reading(split, read)

    def range(self, split: str, start: int, stop: int) -> list[dict[str, Any]]:
        """The tasks in the rows from `start` to before `stop`."""

        def read(opened: _Opened) -> list[dict[str, Any]]:
            return [task for table, rows, _, _ in opened.tables(start, stop) for task in rows.tasks(table)]

        return self._reading(split, read)

    def texts_as(self, split: str, start: int, stop: int, first: int) -> list[bytes]:
        """The tasks in these rows as JSON texts."""

        def read(opened: _Opened) -> list[bytes]:
            found: list[bytes] = []
            for table, rows, named, begin in opened.tables(start, stop):
                place = begin - start + first
                try:
                    tasks = rows.tasks(table)
                except (ValueError, KeyError):
                    for at in range(table.num_rows):
                        try:
                            found.append(encode_task(rows.task(table.slice(at, 1)), split, place + at))
                        except ValueError as exc:
                            fault = TaskFileError(named, str(exc), begin + at + 1)
                            found.append(bad_task(split, place + at, fault))
                else:
                    found += [encode_task(task, split, index) for index, task in enumerate(tasks, place)]
            return found

        return self._reading(split, read)

    def version(self, split: str) -> Hashable:
        """The inodes, sizes and times of the files."""
        return self._reading(split, lambda opened: opened.signatures)

    def _reading(self, split: str, read: Callable[[_Opened], T]) -> T:
        """What `read` finds in files that are, before and after it, as they were when they were opened."""
        for _ in range(_ATTEMPTS):
            opened = self._opened.get(split)
            if opened is None or not opened.is_current():
                opened = self._open(split)
            try:
                found = read(opened)
            except Exception as exc:
                if not opened.is_current():
                    continue
                if isinstance(exc, (IndexError, TaskFileError)):
                    raise
                raise TaskFileError(self._named(split), f"cannot be read: {exc}") from exc
            if opened.is_current():
                return found
        raise TaskFileError(self._named(split), "the file is being written while it is read")

    def _open(self, split: str) -> _Opened:
        where = self.where(split)
        with self._lock:
            opened = self._opened.get(split)
            if opened is not None and opened.is_current():
                return opened
            parts = []
            for path, named in self._paths(where):
                try:
                    signature = settled(path)
                    parts.append(_Part(path, named, signature, self._columns, self._images, self._cache))
                except OSError as exc:
                    raise TaskFileError(named, f"{exc.strerror or exc} ({path})") from exc
                except (ValueError, KeyError) as exc:  # pyarrow's errors are ValueErrors
                    raise exc if isinstance(exc, TaskFileError) else TaskFileError(named, str(exc)) from exc
            opened = self._opened[split] = _Opened(parts)
            return opened

    def _paths(self, where: Where) -> list[tuple[Path, str]]:
        found: list[tuple[Path, str]] = []
        for one in [where] if isinstance(where, (str, os.PathLike)) else where:
            named = os.fspath(one)
            path = self._folder / Path(one).expanduser()
            if glob.has_magic(named) and not path.exists():
                fitting = sorted(glob.glob(str(path)))
                if not fitting:
                    raise TaskFileError(named, f"no file fits this pattern ({path})")
                found += [(Path(name), os.path.relpath(name, self._folder)) for name in fitting]
            else:
                found.append((path, named))
        return found

    def _named(self, split: str) -> str:
        where = self.where(split)
        return os.fspath(where) if isinstance(where, (str, os.PathLike)) else ", ".join(os.fspath(one) for one in where)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": {}}


class _Opened:
    """The files of a split, and how many rows stand before each."""

    def __init__(self, parts: list[_Part]) -> None:
        self.parts = parts
        self.starts = [0, *accumulate(part.count for part in parts)]
        self.signatures = tuple(part.signature for part in parts)

    def is_current(self) -> bool:
        """Whether all files are the ones that were opened, and nobody has written to them."""
        try:
            return all(Signature.of(part.path) == part.signature for part in self.parts)
        except OSError:
            return False

    def tables(self, start: int, stop: int) -> list[tuple[Any, Rows, str, int]]:
        """These rows: tables, what makes tasks of them, the name of their file and the place of their first row."""
        found = []
        stop = min(stop, self.starts[-1])
        while start < stop:
            number = bisect_right(self.starts, start) - 1
            part, before = self.parts[number], self.starts[number]
            table, last = part.table(start - before, stop - before)
            found.append((table, part.rows, part.named, start))
            start = last + before
        return found


class _Part:
    """One file: pieces of rows, of which some that were read last are kept."""

    def __init__(
        self,
        path: Path,
        named: str,
        signature: Signature,
        columns: list[str] | None,
        images: list[str],
        cache: Path | None,
    ) -> None:
        self.path = path
        self.named = named
        self.signature = signature
        self._lock = OpeningLock()
        self._kept: OrderedDict[int, Any] = OrderedDict()
        self._read: Callable[[int], Any]
        if path.is_dir():
            raise TaskFileError(named, "is a folder; name its files, with a pattern if they are many")
        with open(path, "rb") as file:
            begins = file.read(6)
        if begins[:4] == b"PAR1":
            schema, sizes = self._open_parquet(cache or default_cache(), columns)
        else:
            schema, sizes = self._open_ipc(_mapped(path), begins == b"ARROW1", None)
            if columns is not None:
                read, schema = self._read, arrow().schema([schema.field(name) for name in columns])
                self._read = lambda number: read(number).select(columns)
        self._starts = [0, *accumulate(sizes)]
        self.count = self._starts[-1]
        self.rows = Rows(schema, images)

    def table(self, start: int, stop: int) -> tuple[Any, int]:
        """Rows from `start` on, as many of those before `stop` as stand together, and where the next stand."""
        number = bisect_right(self._starts, start) - 1
        first, last = self._starts[number], min(stop, self._starts[number + 1])
        return self._piece(number).slice(start - first, last - start), last

    def _piece(self, number: int) -> Any:
        with self._lock:
            piece = self._kept.get(number)
            if piece is None:
                piece = self._kept[number] = self._read(number)
                if len(self._kept) > _GROUPS_KEPT:
                    self._kept.popitem(last=False)
            else:
                self._kept.move_to_end(number)
            return piece

    def _open_parquet(self, cache: Path, columns: list[str] | None) -> tuple[Any, Sequence[int]]:
        # not mapped: a file that somebody cuts off would end the process
        file = arrow("pyarrow.parquet").ParquetFile(self.path, pre_buffer=False)
        schema = file.schema_arrow
        if columns is not None:
            if unknown := [name for name in columns if name not in schema.names]:
                raise ValueError(f"there is no column {', '.join(unknown)}; there are {', '.join(schema.names)}")
            schema = arrow().schema([schema.field(name) for name in columns])
        sizes: Sequence[int] = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
        if max(sizes, default=0) <= _MOST_IN_GROUP:
            self._read = lambda number: file.read_row_group(number, columns=columns, use_threads=False)
            return schema, sizes
        written = keep(
            cache, self.path, self.signature, ".arrow", lambda out: _convert(file, out), lambda found: found.fd >= 0
        )
        with file:
            mapped = mmap.mmap(written.fd, 0, prot=mmap.PROT_READ) if hasattr(mmap, "PROT_READ") else _copied(written)
        opened, sizes = self._open_ipc(arrow().py_buffer(mapped), True, _IN_BATCH)
        if columns is not None:
            read = self._read
            self._read = lambda number: read(number).select(columns)
        return (schema if columns is not None else opened), sizes

    def _open_ipc(self, data: Any, is_file: bool, in_batch: int | None) -> tuple[Any, Sequence[int]]:
        """`in_batch`: how many rows each batch but the last has, where that is known."""
        pa = arrow()
        if not is_file:
            stream = pa.ipc.open_stream(data)
            batches = list(stream)  # of mapped memory: nothing of it is read yet
            self._read = batches.__getitem__
            return stream.schema, [batch.num_rows for batch in batches]
        file = pa.ipc.open_file(data)
        self._read = file.get_batch
        number = file.num_record_batches
        if in_batch is not None and number:
            return file.schema, [*[in_batch] * (number - 1), file.get_batch(number - 1).num_rows]
        return file.schema, [file.get_batch(at).num_rows for at in range(number)]


def _mapped(path: Path) -> Any:
    if path.stat().st_size == 0:
        raise ValueError("the file is empty, not even a schema is in it")
    return arrow().memory_map(str(path))


def _copied(written: Any) -> bytes:  # Windows
    return bytes(written.read(0, os.fstat(written.fd).st_size))


def _convert(file: Any, out: IO[bytes]) -> None:
    """Write a Parquet file as Arrow, in batches that all have the same number of rows, but for the last."""
    pa = arrow()
    rest = file.schema_arrow.empty_table()
    with pa.ipc.new_file(out, file.schema_arrow) as writer:
        for batch in file.iter_batches(batch_size=64 * _IN_BATCH, use_threads=False):
            rest = pa.concat_tables([rest, pa.Table.from_batches([batch])]).combine_chunks()
            whole = rest.num_rows // _IN_BATCH * _IN_BATCH
            writer.write_table(rest.slice(0, whole), max_chunksize=_IN_BATCH)
            rest = rest.slice(whole)
        writer.write_table(rest, max_chunksize=_IN_BATCH)
