"""What all ready sources share: `{split: where}`, the types of the splits, and the folder that paths start from."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ors.tasks.source import Id, TaskSource

if TYPE_CHECKING:
    from ors.types import Split

__all__ = ["DeclaredSource", "defining_folder"]

W = TypeVar("W")


class DeclaredSource(TaskSource, Generic[W]):
    """A source that is told where the tasks of each split are.

    `types` says the type of a split ("train", "validation" or "test") whose name does not. `id` is where the author's
    id of a task is: the name of a field, or a function of the task.
    """

    def __init__(self, where: Mapping[str, W], *, id: Id = None, types: Mapping[str, str] | None = None) -> None:
        if not isinstance(where, Mapping) or not all(isinstance(split, str) for split in where):
            raise TypeError(f"{type(self).__name__} takes {{split: where its tasks are}}, with names of splits as keys")
        if unknown := set(types or ()) - set(where):
            raise ValueError(f"types has {', '.join(sorted(unknown))}, which the source does not have")
        self._where = dict(where)
        self._types = dict(types or {})
        self.id = id

    def splits(self) -> Sequence[str | Split]:
        """The splits, in the order in which they were given."""
        if not self._types:
            return list(self._where)
        from ors.types import Split

        return [Split.of({"name": n, "type": t} if (t := self._types.get(n)) else n) for n in self._where]

    def where(self, split: str) -> W:
        """What was given for a split. Raises KeyError for one that was not."""
        try:
            return self._where[split]
        except KeyError:
            raise KeyError(f"no split {split!r:.200}; the splits are {', '.join(self._where) or 'none'}") from None


def outside(split: str, index: int, count: int | None) -> IndexError:
    """The error for an index that a split does not have."""
    has = "" if count is None else f", which has {count} tasks"
    return IndexError(f"index {index} is outside split {split!r}{has}")


def defining_folder() -> Path:
    """The folder of the file that defines a source: of the first code on the stack that is not of this package."""
    frame: Any = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("ors.tasks"):
        frame = frame.f_back
    file = frame.f_globals.get("__file__") if frame is not None else None
    # nothing typed at a prompt or in a notebook has a file
    return Path(file).resolve().parent if isinstance(file, str) else Path.cwd()
