"""Tasks in data sets of Hugging Face: saved on disk, or loaded by name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ors.errors import TaskFileError
from ors.tasks.arrow import Rows
from ors.tasks.declared import DeclaredSource, defining_folder, outside
from ors.tasks.locks import OpeningLock
from ors.tasks.source import Id, bad_task, encode_task

__all__ = ["HuggingFace"]


class HuggingFace(DeclaredSource[Any]):
    """`{split: data set}`: a folder that `save_to_disk` wrote, the name of a data set, or a `datasets.Dataset`.

    Of a named data set the split of the same name is loaded, with `options` for `datasets.load_dataset` (`name`,
    `revision`, …); where it is called otherwise, write a dict of these options in place of the name, with its `path`
    and `split`. Columns become JSON as those of Arrow tables do (`ors.tasks.arrow`), images without being decoded.

    With `streaming=True` a data set is not downloaded but read from its beginning: its tasks can be listed, and can
    neither be counted nor had by their places.
    """

    def __init__(
        self,
        where: Mapping[str, Any],
        *,
        id: Id = None,
        types: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(where, id=id, types=types)
        self._options = options
        self._folder = defining_folder()
        self._lock = OpeningLock()
        self._opened: dict[str, tuple[Any, Rows | None]] = {}

    def count(self, split: str) -> int | None:
        """How many tasks a split has; None where it is streamed."""
        data, rows = self._open(split)
        return len(data) if rows is not None else None

    def get(self, split: str, index: int) -> dict[str, Any]:
        """The task at an index. Raises NotImplementedError where the split is streamed."""
        data, rows = self._placed(split)
        if not 0 <= index < len(data):
            raise outside(split, index, len(data))
        try:
            return rows.task(data[index : index + 1])
        except ValueError as exc:
            raise TaskFileError(self._named(split), str(exc), index + 1) from None

    def range(self, split: str, start: int, stop: int) -> list[dict[str, Any]]:
        """The tasks from `start` to before `stop`. Raises NotImplementedError where the split is streamed."""
        data, rows = self._placed(split)
        stop = min(stop, len(data))
        return rows.tasks(data[start:stop]) if start < stop else []

    def texts_as(self, split: str, start: int, stop: int, first: int) -> list[bytes]:
        """The tasks as JSON texts."""
        try:
            tasks: list[Any] = self.range(split, start, stop)
        except (ValueError, KeyError):
            tasks = [None] * (min(stop, self.count(split) or 0) - start)
        return [
            encode_task(task, split, index) if task is not None else self._text(split, start + at, index)
            for at, (index, task) in enumerate(zip(range(first, first + len(tasks)), tasks, strict=True))
        ]

    def _text(self, split: str, place: int, index: int) -> bytes:
        try:
            return encode_task(self.get(split, place), split, index)
        except ValueError as exc:
            return bad_task(split, index, exc)

    def iterate(self, split: str) -> Iterator[dict[str, Any]]:
        """The tasks of a split from its first one on."""
        data, rows = self._open(split)
        for table in data.with_format("arrow") if rows is None else (data[at : at + 1] for at in range(len(data))):
            yield (rows or Rows(table.schema)).task(table)

    def _placed(self, split: str) -> tuple[Any, Rows]:
        data, rows = self._open(split)
        if rows is None:
            raise NotImplementedError(
                f"split '{split}' is streamed, and a stream has no places: list its tasks (list_tasks), or load it "
                "without streaming=True to have them by their index"
            )
        return data, rows

    def _open(self, split: str) -> tuple[Any, Rows | None]:
        opened = self._opened.get(split)
        if opened is None:
            with self._lock:
                opened = self._opened.get(split)
                if opened is None:
                    data = self._load(split)
                    # a data set that is streamed has no length; what it holds is seen when it is read
                    placed = hasattr(data, "__len__")
                    if placed:
                        data = data.with_format("arrow")
                    rows = Rows(data.features.arrow_schema) if placed else None
                    opened = self._opened[split] = (data, rows)
        return opened

    def _load(self, split: str) -> Any:
        where = self.where(split)
        if hasattr(where, "with_format"):
            return where
        try:
            import datasets
        except ImportError as exc:
            raise ImportError(f"this needs datasets ({exc}): pip install 'ors-kit[datasets]'") from exc
        if isinstance(where, Mapping):
            return datasets.load_dataset(**{"split": split, **self._options, **where})
        folder = self._folder / Path(where).expanduser()
        if (folder / "dataset_dict.json").exists():
            found = datasets.load_from_disk(str(folder))
            if split not in found:
                raise TaskFileError(os.fspath(where), f"has no split {split!r}; there are {', '.join(found)}")
            return found[split]
        if (folder / "state.json").exists():
            return datasets.load_from_disk(str(folder))
        return datasets.load_dataset(os.fspath(where), split=split, **self._options)

    def _named(self, split: str) -> str:
        where = self.where(split)
        if isinstance(where, Mapping):
            return str(where.get("path"))
        return f"the data set of split {split!r}" if hasattr(where, "with_format") else os.fspath(where)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": {}}
