"""Rows of Arrow tables → tasks.

| Column | In the task |
| --- | --- |
| numbers, booleans, text, nulls | the same |
| list, struct, map | array, object, object; a map that has a key twice is an error |
| decimal | text, as `Decimal` writes it |
| timestamp, date, time, duration | ISO 8601; of nanoseconds the last three digits are dropped |
| binary | base64 |
| struct of exactly `bytes` and `path`, as Hugging Face writes images | an `ImageBlock` where its bytes are an image |
| binary column that is named in `images` | an `ImageBlock`; anything else than an image is an error |
| dictionary, extension types | the value that is meant, or the one that is stored |

An `ImageBlock` is `{"data": base64, "mimeType": …, "detail": null, "type": "image"}`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from ors.images import encode_image
from ors.jsontext import JSONValueError
from ors.tasks.values import jsonable

__all__ = ["Rows", "arrow"]

Change = Callable[[Any], Any]


def arrow(module: str = "pyarrow") -> Any:
    """A module of pyarrow. Raises ImportError that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as exc:
        raise ImportError(f"Parquet and Arrow files need pyarrow ({exc}): pip install 'ors-kit[arrow]'") from exc


class Rows:
    """How the rows of tables of one schema become tasks. Raises ValueError for `images` that it has not."""

    def __init__(self, schema: Any, images: Sequence[str] = ()) -> None:
        pa = arrow()
        if unknown := [name for name in images if name not in schema.names]:
            raise ValueError(f"images names {', '.join(unknown)}; the columns are {', '.join(schema.names)}")
        if len(set(schema.names)) != len(schema.names):
            twice = next(name for name in schema.names if schema.names.count(name) > 1)
            raise ValueError(f"two columns are named {twice!r}")
        fields = [field.with_type(_without_nanoseconds(pa, field.type)) for field in schema]
        self._schema = pa.schema(fields) if any(a.type != b.type for a, b in zip(fields, schema, strict=True)) else None
        self._changes: dict[str, Change] = {}
        for field in fields:
            change = _image_of if field.name in images else _change_of(pa, field.type)
            if change is not None:
                self._changes[field.name] = change

    def tasks(self, table: Any) -> list[dict[str, Any]]:
        """The rows of a table or a record batch as tasks. Raises what one of them raises."""
        if self._schema is not None:
            table = table.cast(self._schema, safe=False)
        rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
        for name, change in self._changes.items():
            for row in rows:
                try:
                    row[name] = change(row[name])
                except ValueError as exc:
                    raise JSONValueError(f"the value at $.{name} {exc}") from None
        return rows

    def task(self, table: Any) -> dict[str, Any]:
        """The one row of a table as a task that is JSON. Raises JSONValueError."""
        try:
            return jsonable(self.tasks(table)[0])
        except (KeyError, ValueError) as exc:  # a map with a key twice, text that is not UTF-8
            raise exc if isinstance(exc, JSONValueError) else JSONValueError(str(exc)) from None


def _without_nanoseconds(pa: Any, kind: Any) -> Any:
    """The type with times to the microsecond, which is what Python has; inside lists and structs too."""
    types = pa.types
    if types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    if types.is_time64(kind) and kind.unit == "ns":
        return pa.time64("us")
    if types.is_struct(kind):
        return pa.struct([field.with_type(_without_nanoseconds(pa, field.type)) for field in kind])
    for test, make in ((types.is_list, pa.list_), (types.is_large_list, pa.large_list)):
        if test(kind):
            return make(kind.value_field.with_type(_without_nanoseconds(pa, kind.value_type)))
    if types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_without_nanoseconds(pa, kind.value_type)), kind.list_size)
    if types.is_map(kind):
        return pa.map_(kind.key_type, _without_nanoseconds(pa, kind.item_type))
    return kind


def _change_of(pa: Any, kind: Any) -> Change | None:
    """What has to be done with the Python values of a type; None where nothing has."""
    types = pa.types
    if types.is_struct(kind):
        names = {field.name: field.type for field in kind}
        if set(names) == {"bytes", "path"} and _is_binary(types, names["bytes"]):
            return _image_if_it_is
        changes = {name: change for name, part in names.items() if (change := _change_of(pa, part)) is not None}
        return (lambda value: _in_object(value, changes)) if changes else None
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _of_each(_change_of(pa, kind.value_type))
    if types.is_map(kind):
        return _of_each(_change_of(pa, kind.item_type))
    return None


def _of_each(change: Change | None) -> Change | None:
    """The change of a list or of the values of a map."""
    if change is None:
        return None

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: change(item) for key, item in value.items()}
        return value if value is None else [change(item) for item in value]

    return changed


def _is_binary(types: Any, kind: Any) -> bool:
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))


def _in_object(value: dict[str, Any] | None, changes: dict[str, Change]) -> dict[str, Any] | None:
    return value and {**value, **{name: change(value[name]) for name, change in changes.items()}}


def _image_if_it_is(value: dict[str, Any] | None) -> Any:
    if value is None or value["bytes"] is None:
        return value
    try:
        return _image_of(value["bytes"])
    except ValueError:  # sound is written the same way
        return value


def _image_of(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    raw = value["bytes"] if isinstance(value, dict) else value
    if raw is None:
        return value
    try:
        data, mime = encode_image(bytes(raw))
    except ValueError as exc:
        raise ValueError(f"is no image: {exc}") from None
    return {"data": data, "mimeType": mime, "detail": None, "type": "image"}
