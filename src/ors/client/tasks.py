"""Tasks and splits as the client hands them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ors.types import JSONObject, Split, SplitType

__all__ = ["SplitName", "Task", "place_of", "split_of"]


@dataclass
class Task:
    """A task of an environment. `split` and `index` say where it stands, where that is known."""

    environment_name: str
    task_spec: JSONObject
    split: str | None = field(default=None, compare=False, repr=False, kw_only=True)
    index: int | None = field(default=None, compare=False, repr=False, kw_only=True)


class SplitName(str):
    """The name of a split, which knows what the split is for: text wherever text is wanted, and `.type` beside it."""

    __slots__ = ("type",)
    type: SplitType

    def __new__(cls, name: str, type: SplitType = "validation") -> SplitName:
        """A name and a type."""
        made = super().__new__(cls, name)
        made.type = type
        return made

    @property
    def name(self) -> str:
        """The name as plain text."""
        return str(self)

    def __str__(self) -> str:
        return "".join(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return SplitName, (self.name, self.type)


def split_of(value: Any) -> SplitName:
    """A split as a server lists it: an object, or a bare name."""
    if isinstance(value, Mapping) and "type" in value:
        known = value["type"] in ("train", "validation", "test")
        return SplitName(str(value["name"]), value["type"] if known else "validation")
    split = Split.of({"name": value["name"]} if isinstance(value, Mapping) else value)
    return SplitName(split.name, split.type)


def place_of(task: Any, split: str | None, index: int | None) -> dict[str, Any]:
    """What `/create` is told of a task: the task itself, or where it stands. Raises ValueError for both or neither."""
    if task is not None:
        if split is not None or index is not None:
            raise ValueError("give either a task, or both split and index, not both")
        spec = getattr(task, "task_spec", task)
        if not isinstance(spec, Mapping):
            raise ValueError(f"a task is a Task or an object, not {type(task).__name__}")
        return {"task_spec": dict(spec)}
    if split is None or index is None:
        raise ValueError("give either a task, or both split and index")
    return {"split": str(split), "index": int(index)}
