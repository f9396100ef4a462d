"""Tasks as tables of other packages: a row for each task, a column for each field of its specification."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from ors.client.tasks import Task

__all__ = ["rows", "to_arrow", "to_dataset", "to_pandas", "to_polars"]


def rows(tasks: Iterable[Task]) -> list[dict[str, Any]]:
    """The specifications of all tasks, each with all fields that any of them has."""
    specs = [dict(task.task_spec) for task in tasks]
    fields = list(dict.fromkeys(field for spec in specs for field in spec))
    return [{field: spec.get(field) for field in fields} for spec in specs]


def to_arrow(tasks: Iterable[Task]) -> Any:
    """A `pyarrow.Table`. Raises ImportError where pyarrow is missing, ValueError for fields of mixed types."""
    pyarrow = _needed("pyarrow", "to_arrow")
    try:
        return pyarrow.Table.from_pylist(rows(tasks))
    except pyarrow.ArrowException as exc:
        raise ValueError(f"these tasks make no table, since a field has values of several types: {exc}") from exc


def to_pandas(tasks: Iterable[Task]) -> Any:
    """A `pandas.DataFrame`. Raises ImportError where pandas is missing."""
    return _needed("pandas", "to_pandas").DataFrame(rows(tasks))


def to_polars(tasks: Iterable[Task]) -> Any:
    """A `polars.DataFrame`. Raises ImportError where polars is missing."""
    return _needed("polars", "to_polars").from_dicts(rows(tasks), infer_schema_length=None)


def to_dataset(tasks: Iterable[Task]) -> Any:
    """A Hugging Face `datasets.Dataset`. Raises ImportError where datasets is missing."""
    return _needed("datasets", "to_dataset").Dataset.from_list(rows(tasks))


def _needed(package: str, method: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as exc:
        raise ImportError(f"{method}() needs the package {package}: pip install {package}") from exc
