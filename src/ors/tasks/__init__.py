"""Task sources and their order. A source is plain data access: it knows no protocol and no environment.

Each name is imported when it is first used, so that a program pays for the sources that it has.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ors.tasks.seeds import Seeds

if TYPE_CHECKING:
    from ors.errors import TaskFileError
    from ors.tasks.composed import Filter, Map, Union, union
    from ors.tasks.csv import Csv
    from ors.tasks.folder import Folder
    from ors.tasks.generated import Generated
    from ors.tasks.hugging_face import HuggingFace
    from ors.tasks.jsonl import Jsonl
    from ors.tasks.keys import task_key
    from ors.tasks.memory import InMemory
    from ors.tasks.parquet import Parquet
    from ors.tasks.source import TaskSource, as_source, is_source
    from ors.tasks.values import task_json

_HOMES = {
    "ors.errors": ("TaskFileError",),
    "ors.tasks.composed": ("Filter", "Map", "Union", "union"),
    "ors.tasks.csv": ("Csv",),
    "ors.tasks.folder": ("Folder",),
    "ors.tasks.generated": ("Generated",),
    "ors.tasks.hugging_face": ("HuggingFace",),
    "ors.tasks.jsonl": ("Jsonl",),
    "ors.tasks.keys": ("task_key",),
    "ors.tasks.memory": ("InMemory",),
    "ors.tasks.parquet": ("Parquet",),
    "ors.tasks.source": ("TaskSource", "as_source", "is_source"),
    "ors.tasks.values": ("task_json",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Csv",
    "Filter",
    "Folder",
    "Generated",
    "HuggingFace",
    "InMemory",
    "Jsonl",
    "Map",
    "Parquet",
    "Seeds",
    "TaskFileError",
    "TaskSource",
    "Union",
    "as_source",
    "is_source",
    "task_json",
    "task_key",
    "union",
]


def __getattr__(name: str) -> Any:
    if (home := _HOME_OF.get(name)) is None:
        raise AttributeError(f"module 'ors.tasks' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
