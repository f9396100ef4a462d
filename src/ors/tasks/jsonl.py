"""Tasks in JSON Lines: one object in each line that is not blank."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from ors.jsontext import JSONTextError, load
from ors.tasks.files import FileSource, OpenedFile
from ors.tasks.values import MOST_LEVELS

__all__ = ["Jsonl"]

_BLOCK = 1 << 20


class Jsonl(FileSource):
    """`{split: path of a .jsonl file}`, also `.jsonl.gz` and `.jsonl.zst`. Blank lines are no rows.

    Rows are strict JSON: no duplicate keys, no NaN, UTF-8.
    """

    _kind = "jsonl"

    def _index(self, file: OpenedFile, add: Callable[[array[int]], object]) -> None:
        line, blank, place = file.base, True, file.base  # where the line that a block cuts starts
        while place < file.size and (block := file.text.read(place, min(_BLOCK, file.size - place))):
            first, *others = block.split(b"\n")
            blank = blank and _is_blank(first)
            if others:
                last = others.pop()
                starts = array("Q") if blank else array("Q", (line,))
                ends = [len(part) + 1 for part in others]
                begin = place + len(first) + 1
                if any(map(bytes.isspace, others)) or 1 in ends:
                    places = accumulate(ends, initial=begin)
                    starts.extend([at for at, part in zip(places, others, strict=False) if not _is_blank(part)])
                elif ends:
                    starts.extend(accumulate(ends[:-1], initial=begin))
                if starts:
                    add(starts)
                line, blank = place + len(block) - len(last), _is_blank(last)
            place += len(block)
        add(array("Q", (file.size,) if blank else (line, file.size)))

    def _parse(self, file: OpenedFile, row: bytes, index: int) -> Any:
        return self._check(file, row.strip(), index)

    def _text(self, file: OpenedFile, row: bytes, index: int) -> bytes:
        text = row.strip()
        self._check(file, text, index)
        return text

    def _check(self, file: OpenedFile, text: bytes, index: int) -> Any:
        try:
            task = load(text)
        except JSONTextError as exc:
            words = str(exc).replace("the body", "the row")
            cut = index + 1 == file.offsets.count and not file.text.read(file.size - 1, 1).isspace()
            file.fail(words + ("; the file ends in this row and may be cut off" if cut else ""), index)
        if type(task) is not dict:
            file.fail(f"a task is an object, not {_KINDS.get(type(task), 'a number')}", index)
        if text.count(b"{") + text.count(b"[") > MOST_LEVELS and _levels(task) > MOST_LEVELS:
            file.fail(f"the task is nested deeper than {MOST_LEVELS} levels", index)
        return task


_KINDS = {list: "an array", str: "a text", bool: "true or false", type(None): "null"}


def _is_blank(line: bytes) -> bool:
    return not line or line.isspace()


def _levels(value: Any) -> int:
    level, inner = 0, [value]
    while inner:
        level += 1
        inner = [
            child
            for item in inner
            for child in (item.values() if type(item) is dict else item)
            if type(child) is dict or type(child) is list
        ]
    return level
