"""What becomes JSON, and what is refused where."""

from __future__ import annotations

import array
import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import json
import pathlib
import re
import types
import uuid
from typing import Any, NamedTuple

import attrs
import msgspec
import numpy as np
import pandas as pd
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ors.jsontext import JSONValueError, load
from ors.tasks.values import MOST_LEVELS, jsonable, task_json


class Level(enum.Enum):
    HARD = "hard"


class Colour(str, enum.Enum):  # noqa: UP042
    RED = "red"


class Flag(enum.IntFlag):
    A = 1
    B = 2


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = None


@attrs.define
class Slotted:
    a: Any


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True, populate_by_name=True)
    text: Any = pydantic.Field(alias="theText")
    secret: pydantic.SecretStr = pydantic.SecretStr("password")


class Struct(msgspec.Struct):
    a: Any


class Plain:
    kind = "of the class, not of the task"

    def __init__(self) -> None:
        self.a = 1
        self._hidden = 2


class WithSlots:
    __slots__ = ("a", "b")

    def __init__(self) -> None:
        self.a = 1


class Pair(NamedTuple):
    left: Any
    right: Any


class Text(str):
    pass


UTC = datetime.UTC


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, 2), [1, 2]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset("ba"), ["a", "b"]),
        ({1, "a"}, ["a", 1]),
        ({(2, 1), (1, 2)}, [[1, 2], [2, 1]]),
        (collections.deque([1]), [1]),
        (range(3), [0, 1, 2]),
        (array.array("i", [1, 2]), [1, 2]),
        (collections.OrderedDict(a=1), {"a": 1}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        (
            {1: "a", None: "b", 1.5: "c", True and 2: "d", Level.HARD: "e"},
            dict(zip(["1", "null", "1.5", "2", "hard"], "abcde")),
        ),
        ({np.int64(3): np.float32(0.5), datetime.date(2024, 1, 2): 1}, {"3": 0.5, "2024-01-02": 1}),
        (Level.HARD, "hard"),
        (Colour.RED, "red"),
        (Flag.A | Flag.B, 3),
        (Text("subclass"), "subclass"),
        (Point(1, Point({2})), {"x": 1, "y": {"x": [2], "y": None}}),
        (Slotted(b"\x00\xff"), {"a": "AP8="}),
        (Model(theText=Point(1)), {"theText": {"x": 1, "y": None}, "secret": "**********"}),
        (Model(theText=b"\xff"), {"theText": "/w==", "secret": "**********"}),
        (pydantic.RootModel[list[int]]([1]), [1]),
        (pydantic.TypeAdapter(pydantic.AnyUrl).validate_python("http://a.b/c"), "http://a.b/c"),
        (Struct(1), {"a": 1}),
        (Plain(), {"a": 1}),
        (WithSlots(), {"a": 1}),
        (types.SimpleNamespace(a=1), {"a": 1}),
        (Pair(1, 2), [1, 2]),
        (datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), "2024-01-02T03:04:05+00:00"),
        (datetime.time(3, 4), "03:04:00"),
        (datetime.timedelta(days=1, seconds=3661, microseconds=5000), "P1DT1H1M1.005S"),
        (datetime.timedelta(0), "PT0S"),
        (-datetime.timedelta(minutes=2), "-PT2M"),
        (decimal.Decimal("1.10"), "1.10"),
        (fractions.Fraction(1, 3), "1/3"),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        (ipaddress.ip_address("::1"), "::1"),
        (re.compile("a+"), "a+"),
        (bytearray(b"abc"), base64.b64encode(b"abc").decode()),
        (memoryview(b"abc"), "YWJj"),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.float32(0.5), 0.5),
        (np.str_("a"), "a"),
        (np.longdouble(0.5), 0.5),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array(5), 5),
        (np.array([b"a"]), ["YQ=="]),
        (np.array([{"a": {1}}], dtype=object), [{"a": [1]}]),
        (np.array([(1, 0.5)], dtype=[("a", "i4"), ("b", "f8")]), [{"a": 1, "b": 0.5}]),
        (np.datetime64("2024-01-02T03:04:05.000000007"), "2024-01-02T03:04:05.000000007"),
        (np.array(["2024-01-02"], dtype="M8[D]"), ["2024-01-02"]),
        (np.timedelta64(90, "s"), "PT1M30S"),
        (pd.Timestamp("2024-01-02"), "2024-01-02T00:00:00"),
        (pd.Series([1, 2]), [1, 2]),
        (10**400, 10**400),
    ],
    ids=lambda value: type(value).__name__,
)
def test_value(value: Any, expected: Any) -> None:
    assert json.loads(task_json({"v": value})) == {"v": expected}
    assert jsonable({"v": value}) == {"v": expected}


@pytest.mark.parametrize(
    "task",
    [Point(1), Slotted(1), Model(theText=1), Struct(1), Plain(), Pair(1, 2)],
    ids=lambda value: type(value).__name__,
)
def test_a_task_may_be_any_object_with_fields(task: Any) -> None:
    assert type(load(task_json(task))) is dict


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ({"a": [1, float("nan")]}, "the value at $.a[1] is NaN or infinite"),
        ({"a": {"b": np.float64("inf")}}, "the value at $.a.b is NaN or infinite"),
        ({"a": np.array([1.0, np.nan])}, "the value at $.a[1] is NaN or infinite"),
        ({"a": decimal.Decimal("NaN")}, "the value at $.a is NaN or infinite"),
        ({"a": np.datetime64("NaT")}, "the value at $.a is not a time"),
        ({"a": pd.NaT}, "the value at $.a is not a time"),
        ({"a": Point(1, [Plain, 2])}, "the value at $.a.y[0] is of type type"),
        ({"a": {"b": object()}}, "the value at $.a.b is of type object"),
        ({"a": 1j}, "the value at $.a is of type complex"),
        ({"a": (x for x in [1])}, "the value at $.a is of type generator, which can be read once only; make it a list"),
        ({"a": ValueError("x")}, "the value at $.a is of type ValueError"),
        ({"a": len}, "the value at $.a is of type builtin_function_or_method"),
        ({"a": "\ud800"}, "the value at $.a holds a lone surrogate"),
        ({"a": {1: 1, "1": 2}}, "the value at $.a has two keys that are '1' as text"),
        ({"a": {(1, 2): 1}}, "the value at $.a has a key of type tuple"),
        ({"a": {float("nan"): 1}}, "the value at $.a has a key that is NaN"),
        ([1], "a task is an object, not list"),
        ("text", "a task is an object, not str"),
        (None, "a task is an object, not NoneType"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_json_form_is_named_with_its_path(task: Any, words: str) -> None:
    for convert in (task_json, jsonable):
        with pytest.raises(JSONValueError, match=re.escape(words)):
            convert(task)


def test_what_contains_itself_and_what_is_nested_too_deeply() -> None:
    circle: dict[str, Any] = {}
    circle["again"] = [circle]
    mine = types.SimpleNamespace()
    mine.me = mine
    deep: dict[str, Any] = {}
    for _ in range(MOST_LEVELS + 1):
        deep = {"a": deep}
    for task in (circle, mine, deep):
        with pytest.raises(JSONValueError, match="nested"):
            task_json(task)
    for _ in range(2):
        deep = deep["a"]
    assert load(b'{"tasks":[%s]}' % task_json(deep))


def test_a_copy_shares_nothing_with_the_task() -> None:
    task = {"board": [[0]], "t": (1, [2])}
    copy = jsonable(task)
    copy["board"][0][0] = 1
    assert task == {"board": [[0]], "t": (1, [2])}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary() | st.decimals(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.booleans(), inner) | st.tuples(inner, inner)
    ),
)


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
def test_any_task_becomes_strict_json_or_an_error(task: dict[str, Any]) -> None:
    try:
        text = task_json(task)
    except JSONValueError:
        with pytest.raises(JSONValueError):
            jsonable(task)
    else:
        assert load(text) == jsonable(task)
