"""Tasks as authors write them → the JSON that a person would expect of them.

| Value | JSON |
| --- | --- |
| dict, any mapping | object; keys that are no text become text, two that become the same are an error |
| list, tuple, deque, range | array |
| set, frozenset | array, sorted |
| pydantic model, dataclass, attrs class, msgspec struct | object of its fields |
| any other object of a class of the author's | object of its attributes whose names do not start with `_` |
| numpy scalar or array, tensor, `array.array` | number, or arrays of numbers; a structured array's rows are objects |
| enum | its value |
| datetime, date, time, timedelta | ISO 8601 |
| bytes, bytearray, memoryview | base64 |
| Decimal, Fraction, UUID, path, IP address | text |
| NaN, infinity, complex, lone surrogate, and all else | an error that names the path inside the task |
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import os
import pathlib
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from types import FunctionType, ModuleType
from typing import Any

from ors.jsontext import JSONValueError, dump

__all__ = ["MOST_LEVELS", "jsonable", "task_json"]

MOST_LEVELS = 190
"""How deep a task may be nested: readers of answers refuse more than 200 levels, and a list of tasks adds some."""

_PLAIN = frozenset((str, int, float, bool, type(None)))


class _Fault(Exception):
    """What is wrong inside a task; each container on the way out adds where."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words
        self.path: list[Any] = []


def task_json(task: Any) -> bytes:
    """A task as strict, compact JSON. Raises JSONValueError naming the path of what has no JSON form."""
    return dump(task if type(task) is dict and _is_json(task) else _convert_task(task))


def jsonable(task: Any) -> dict[str, Any]:
    """A task as plain JSON values, none of them shared with it. Raises JSONValueError as `task_json` does."""
    data = _convert_task(task)
    dump(data)
    return data


def _convert_task(task: Any) -> dict[str, Any]:
    try:
        # only here: in a task, a named tuple is an array as everywhere in Python's own JSON
        data = _convert(task._asdict() if isinstance(task, tuple) and hasattr(task, "_asdict") else task, 0)
    except _Fault as fault:
        path = "$" + "".join(f"[{part}]" if type(part) is int else f".{_shown(part)}" for part in reversed(fault.path))
        path = path if len(path) <= 300 else f"{path[:150]}…{path[-150:]}"
        raise JSONValueError(f"the value at {path} {fault.words}") from None
    except RecursionError:
        raise JSONValueError("the task is nested too deeply, or contains itself") from None
    if type(data) is not dict:
        raise JSONValueError(f"a task is an object, not {type(task).__name__}")
    return data


def _is_json(value: Any, levels: int = 0) -> bool:
    """Whether a dict or list holds nothing but what JSON has; written without conversion then."""
    if levels >= MOST_LEVELS:
        return False
    if type(value) is dict:
        for key in value:
            if type(key) is not str:
                return False
        value = value.values()
    for item in value:
        kind = type(item)
        if kind not in _PLAIN and not ((kind is dict or kind is list) and _is_json(item, levels + 1)):
            return False
    return True


def _convert(value: Any, levels: int) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if levels > MOST_LEVELS:
        raise _Fault(f"is nested deeper than {MOST_LEVELS} levels, or contains itself")
    if kind is dict:
        return _object(value.items(), levels)
    if kind is list or kind is tuple:
        return _array(value, levels)
    for types, convert in _FORMS:
        if isinstance(value, types):
            return _again(convert(value), value, levels)
    return _again(_structure(value), value, levels)


def _again(found: Any, value: Any, levels: int) -> Any:
    if found is value:
        raise _Fault(f"is of type {type(value).__name__}, which JSON cannot hold")
    if type(found) in _PLAIN:
        return found
    # one level more for each step: an object that says it is made of itself must end somewhere
    return _convert(found, levels + (type(found) is not dict and type(found) is not list))


def _object(items: Iterable[tuple[Any, Any]], levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in items:
        name = key if type(key) is str else _key(key)
        if name in found:
            raise _Fault(f"has two keys that are {_shown(name)!r} as text")
        try:
            found[name] = _convert(item, levels + 1)
        except _Fault as fault:
            fault.path.append(name)
            raise
    return found


def _array(items: Iterable[Any], levels: int) -> list[Any]:
    found: list[Any] = []
    for item in items:
        try:
            found.append(_convert(item, levels + 1))
        except _Fault as fault:
            fault.path.append(len(found))
            raise
    return found


def _key(key: Any) -> str:
    """A key as text, spelt as the value would be in JSON."""
    if isinstance(key, (list, tuple, dict, Set, bytes)) or dataclasses.is_dataclass(key):
        raise _Fault(f"has a key of type {type(key).__name__}, where JSON has text")
    value = _convert(key, MOST_LEVELS)
    if isinstance(value, str):
        return value
    if isinstance(value, (dict, list)):
        raise _Fault(f"has a key of type {type(key).__name__}, where JSON has text")
    try:
        return dump(value).decode()
    except JSONValueError:
        raise _Fault("has a key that is NaN or infinite, which JSON cannot hold") from None


def _shown(name: str) -> str:
    name = name if len(name) <= 60 else name[:60] + "…"
    return name.encode("utf-8", "backslashreplace").decode()


# What each kind of value is made of; converted again until it is JSON. The order matters: an enum may be a text too.


def _sorted(value: Set[Any]) -> list[Any]:
    items = _array(value, 0)
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=dump)


def _duration(value: datetime.timedelta) -> str:
    """ISO 8601: `P1DT2H`, `-PT0.5S`."""
    sign, rest = ("-", -value) if value < datetime.timedelta() else ("", value)
    minutes, seconds = divmod(rest.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{rest.microseconds:06}".rstrip("0") if rest.microseconds else ""
    parts = [(hours, "H"), (minutes, "M"), (f"{seconds}{fraction}" if seconds or fraction else 0, "S")]
    clock = "".join(f"{number}{unit}" for number, unit in parts if number)
    return f"{sign}P{f'{rest.days}D' if rest.days else ''}{f'T{clock}' if clock else ''}" if rest else "PT0S"


def _moment(value: datetime.datetime | datetime.date | datetime.time) -> str:
    if value != value:  # pandas' NaT calls itself a datetime
        raise _Fault("is not a time, which JSON cannot hold")
    return value.isoformat()


def _decimal(value: decimal.Decimal) -> str:
    if not value.is_finite():
        raise _Fault("is NaN or infinite, which JSON cannot hold")
    return str(value)


def _refused(value: Any) -> Any:
    if isinstance(value, Iterator):
        raise _Fault(f"is of type {type(value).__name__}, which can be read once only; make it a list")
    return value


_FORMS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (enum.Enum, lambda value: value.value),
    (bool, bool),
    (int, int.__int__),
    (float, float.__float__),
    (str, str.__str__),
    (datetime.timedelta, _duration),
    ((datetime.datetime, datetime.date, datetime.time), _moment),
    (decimal.Decimal, _decimal),
    ((uuid.UUID, fractions.Fraction, pathlib.PurePath), str),
    ((ipaddress._IPAddressBase, datetime.tzinfo), str),
    (re.Pattern, lambda value: value.pattern),
    ((bytes, bytearray, memoryview), lambda value: base64.b64encode(value).decode()),
    (Mapping, lambda value: dict(value.items())),
    ((set, frozenset, Set), _sorted),
    ((complex, type, FunctionType, ModuleType, Iterator, BaseException), _refused),
)


def _structure(value: Any) -> Any:
    """The parts of an object; the object itself where it has none."""
    cls = type(value)
    if (serializer := getattr(cls, "__pydantic_serializer__", None)) is not None:
        found = serializer.to_python(value, by_alias=True, warnings=False)
        # addresses are text, and so are secrets, which stay masked
        return str(value) if found is value and cls.__module__.startswith("pydantic") else found
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if (fields := getattr(cls, "__attrs_attrs__", None)) is not None:
        return {field.name: getattr(value, field.name) for field in fields}
    if (names := getattr(cls, "__struct_fields__", None)) is not None:
        return {name: getattr(value, name) for name in names}
    if callable(getattr(value, "tolist", None)):
        return _numbers(value)
    if isinstance(value, Sequence) or cls.__module__ == "collections":
        return list(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    public = {name: item for name, item in _attributes(value) if not name.startswith("_")}
    if not public or callable(value) or isinstance(value, Collection):
        return value
    return public


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    for cls in reversed(type(value).__mro__):
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)
    yield from getattr(value, "__dict__", {}).items()


def _numbers(value: Any) -> Any:
    """A numpy scalar or array, or what is like one, as Python's own numbers."""
    dtype = getattr(value, "dtype", None)
    kind, names = getattr(dtype, "kind", None), getattr(dtype, "names", None)
    if kind == "M":
        if (value != value).any() if getattr(value, "shape", ()) else value != value:
            raise _Fault("is not a time, which JSON cannot hold")
        return value.astype(str).tolist()
    if kind == "m":
        return value.astype("timedelta64[us]").tolist()
    if kind == "V" and names:
        return {name: value[name] for name in names} if not value.shape else [value[at] for at in range(len(value))]
    found = value.tolist()
    if type(found) is type(value):  # a long double is no number of Python's
        return float(found)
    return found
