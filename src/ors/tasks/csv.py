"""Tasks in CSV: one object for each record, its fields named by the header."""

from __future__ import annotations

import csv
import io
import os
from array import array
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from ors.jsontext import JSONTextError, load
from ors.tasks.files import FileSource, OpenedFile
from ors.tasks.source import Id
from ors.tasks.values import task_json

__all__ = ["Csv"]

_BLOCK = 1 << 20
_MOST_CELL = 256 << 20
_ENDS = frozenset((b"\n", b"\r", b"\r\n"))


class Csv(FileSource):
    """`{split: path of a .csv or .tsv file}`, also `.gz` and `.zst`, with a header. Cells may hold newlines in quotes.

    Every cell is text, as it is written, unless `columns` says what its column holds: `int`, `float`, `bool` (true,
    false, yes, no, 1, 0, in any case), `"json"`, or a function of the text. An empty cell of such a column is null. The
    form is RFC 4180's; `delimiter` is a comma, or a tab where the file's name says `.tsv`.
    """

    _kind = "csv"
    _ends = b"\r\n"

    def __init__(
        self,
        where: Mapping[str, str | os.PathLike[str]],
        *,
        columns: Mapping[str, Any] | None = None,
        delimiter: str | None = None,
        id: Id = None,
        types: Mapping[str, str] | None = None,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(where, id=id, types=types, cache=cache)
        self._columns = dict(columns or {})
        self._delimiter = delimiter
        for name, kind in self._columns.items():
            if kind not in _READERS and not callable(kind):
                raise TypeError(f"columns[{name!r}] is {kind!r}; say int, float, bool, str, 'json' or a function")
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
            raise ValueError(f"delimiter={delimiter!r}; it is one ASCII character, and no quote or end of line")
        # the index depends on it: a quote begins a cell only after a delimiter
        self._kind = f"csv{ord(delimiter) if delimiter else ''}"

    def _reader(self, lines: Iterator[str], file: OpenedFile) -> Any:
        tabs = file.path.name.removesuffix(".gz").removesuffix(".zst").endswith(".tsv")
        return csv.reader(lines, delimiter=self._delimiter or ("\t" if tabs else ","), strict=True)

    def _index(self, file: OpenedFile, add: Callable[[array[int]], object]) -> None:
        # a limit of the whole process; without one, a quote that is never closed would have the whole file in memory
        csv.field_size_limit(max(csv.field_size_limit(), min(file.size, _MOST_CELL)))
        lines = _Lines(file)
        reader = self._reader(lines, file)
        starts, row, headed = array("Q"), 0, False
        while lines.fill():
            if headed and lines.untouched and b'"' not in lines.block:
                starts.extend(lines.take_all())
            else:
                start = lines.place
                try:
                    record = next(reader)
                except csv.Error as exc:
                    file.fail(f"{exc}; rows from here on cannot be told apart", row + len(starts) if headed else None)
                if not record:
                    continue
                if headed:
                    starts.append(start)
                headed = True
            if len(starts) >= 1 << 16:
                row += len(starts)
                add(starts)
                starts = array("Q")
        starts.append(file.size)
        add(starts)

    def _begin(self, file: OpenedFile) -> None:
        end = file.offsets.span(0)[0] if file.offsets.count else file.size
        head = file.text.read(file.base, end - file.base)
        try:
            header = next(
                (cells for cells in self._reader(io.StringIO(head.decode(), newline=""), file) if cells), None
            )
        except UnicodeDecodeError as exc:
            file.fail(f"the header is not UTF-8: {exc.reason}")
        except csv.Error as exc:
            file.fail(f"the header cannot be read: {exc}")
        if header is None:
            file.fail("is empty; the first line names the columns")
        if twice := {name for name in header if header.count(name) > 1}:
            file.fail(f"the header has {min(twice)!r} twice")
        if missing := set(self._columns) - set(header):
            file.fail(f"the header has no {min(missing)!r}, which the source gives a type; it has {', '.join(header)}")
        file.header = [(name, _READERS.get(kind, kind)) for name in header for kind in (self._columns.get(name, str),)]

    def _parse(self, file: OpenedFile, row: bytes, index: int) -> dict[str, Any]:
        try:
            text = row.rstrip(b"\r\n").decode()
        except UnicodeDecodeError as exc:
            file.fail(f"is not UTF-8: {exc.reason} {row[exc.start]:#04x} at byte {exc.start} of the row", index)
        try:
            cells = next(self._reader(iter((text,)), file))
        except csv.Error as exc:
            file.fail(str(exc), index)
        if len(cells) != len(file.header):
            file.fail(f"has {len(cells)} cells where the header has {len(file.header)}", index)
        found: dict[str, Any] = {}
        for (name, read), cell in zip(file.header, cells, strict=True):
            if read is None:
                found[name] = cell
                continue
            try:
                found[name] = read(cell) if cell else None
            except Exception as exc:
                file.fail(f"column {name!r} holds {cell!r:.100}: {exc}", index)
        return found

    def _text(self, file: OpenedFile, row: bytes, index: int) -> bytes:
        return task_json(self._parse(file, row, index))


class _Lines:
    """The lines of a file, each byte as one character: what makes a record has no character of more than one byte."""

    def __init__(self, file: OpenedFile) -> None:
        self._file = file
        self._place = file.base  # where what was not read starts
        self._lines: Iterator[bytes] = iter(())
        self.block = b""
        self.place = file.base
        self.untouched = False

    def fill(self) -> bool:
        """Have the next lines at hand. False at the end of the file."""
        if self.place < self._place:
            return True
        parts: list[bytes] = []
        while self._place < self._file.size:
            part = self._file.text.read(self._place, min(_BLOCK, self._file.size - self._place))
            if not part:
                break
            # not after a carriage return that ends the block: it may be half of an end
            cut = part.rfind(b"\n") + 1 or part.rfind(b"\r", 0, -1) + 1
            parts.append(part[:cut] if cut else part)
            self._place += len(parts[-1])
            if cut:
                break
        self.block = b"".join(parts)
        self._lines = iter(self.block.splitlines(keepends=True))
        self.untouched = True
        return bool(self.block)

    def take_all(self) -> array[int]:
        """Where the lines start that are not blank; they are read then."""
        lines = self.block.splitlines(keepends=True)
        places = accumulate(map(len, lines), initial=self.place)
        found = array("Q", [at for at, line in zip(places, lines, strict=False) if line not in _ENDS])
        self.place = self._place
        return found

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        if not self.fill():
            raise StopIteration
        line = next(self._lines)
        self.place += len(line)
        self.untouched = False
        return line.decode("latin-1")


def _truth(cell: str) -> bool:
    try:
        return _TRUTHS[cell.strip().lower()]
    except KeyError:
        raise ValueError("not true, false, yes, no, 1 or 0") from None


def _json(cell: str) -> Any:
    try:
        return load(cell.encode())
    except JSONTextError as exc:
        raise ValueError(str(exc).replace("the body", "the cell")) from None


_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_READERS: dict[Any, Any] = {int: int, float: float, bool: _truth, str: None, "json": _json}
