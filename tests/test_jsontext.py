"""Strict JSON: what goes through unchanged, what is refused, and that each refusal says what is wrong and where."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ors.jsontext import JSONTextError, JSONValueError, dump, load

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**4300) + 1, max_value=10**4300 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=30)


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types: `1 == 1.0 == True` is not enough, nor is `0.0 == -0.0`."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return bool(one == other)


def attempt(body: bytes) -> tuple[Any, str | None]:
    """The value of a body and why it was refused; one of the two."""
    try:
        return load(body), None
    except JSONTextError as exc:
        return None, str(exc) or pytest.fail("a refusal that says nothing")


@given(VALUES)
def test_round_trip(value: Any) -> None:
    body = dump(value)
    assert same(load(body), value)
    assert dump(load(body)) == body


@given(VALUES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_what_others_write_is_read(value: Any, indent: int | str | None, ascii_only: bool) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    assert same(load(body), value)


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,\\ue0129.-+ \n', max_size=60).map(str.encode))
def test_any_bytes_are_a_value_or_a_refusal(body: bytes) -> None:
    value, refusal = attempt(body)
    if refusal is None:
        # what is accepted is JSON to the standard library as well, and means the same
        assert same(json.loads(body.decode(), parse_constant=pytest.fail), value)


@given(VALUES, st.data())
def test_a_cut_body_is_refused(value: Any, data: st.DataObject) -> None:
    body = dump({"value": value})
    cut = data.draw(st.integers(min_value=0, max_value=len(body) - 1))
    with pytest.raises(JSONTextError):
        load(body[:cut])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body is empty"),
        (b" \n\t ", "the body is empty"),
        (b'{"a": NaN}', r"line 1 column 7 \(NaN and Infinity are not JSON\)"),
        (b"[1,\n Infinity]", r"line 2 column 2 \(NaN and Infinity are not JSON\)"),
        (b"[-Infinity]", r"\(NaN and Infinity are not JSON\)"),
        (b'{"a": "NaN", "b":}', "line 1 column 18$"),
        (b'{"a": 1, "b": {"x": 1, "x": 2}}', '[Dd]uplicate key "x" at line 1'),
        (b'{"a": 1, "\\u0061": 2}', '[Dd]uplicate key "a" at line 1'),
        (b"[" * 10_000 + b"]" * 10_000, "nested deeper than 200 levels at line 1 column 20[0-9]$"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested deeper than 200 levels at line 1"),
        (b"9" * 4301, "more than 4,300 digits at line 1 column 4301$"),
        (b"[-" + b"9" * 4301 + b"]", "more than 4,300 digits at line 1"),
        (b"9" * 1_000_000, "more than 4,300 digits at line 1"),
        (b'{"a": [1, {"b": 1e999}]}', r"the number at \$\.a\[1\]\.b is too large for a 64-bit float"),
        (b"-1e999", r"the number at \$ is too large"),
        (b"[1.8e308]", r"the number at \$\[0\] is too large"),
        (b"[1E+0309]", r"the number at \$\[0\] is too large"),
        (b"[0.001e400]", r"the number at \$\[0\] is too large"),
        (b"[" + b"9" * 250 + b"e99]", r"the number at \$\[0\] is too large"),
        (b"[" + b"9" * 400 + b".5]", r"the number at \$\[0\] is too large"),
        (b'"\\ud800"', "lone surrogate"),
        (b'{"k\\udc00": 1}', "lone surrogate"),
        (b'"\\ud83d and more"', "lone surrogate"),
        (b'"\xed\xa0\x80"', "not UTF-8: an encoded lone surrogate at byte 1"),
        (b"\xef\xbb\xbf{}", "starts with a byte order mark"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8: .* 0xff at byte 0"),
        ('{"a": "é"}'.encode("latin-1"), "not UTF-8: .* 0xe9 at byte 7"),
        (b'"a\x00b"', "control character"),
        (b'"a\nb"', "control character"),
        (b"{} {}", "trailing characters at line 1 column 4"),
        (b"[1,]", "trailing comma at line 1 column 4"),
        (b"01", "invalid number at line 1"),
        (b"{'a': 1}", "key must be a string at line 1 column 2"),
        (b"{/* x */}", "line 1 column 2"),
        (b'{"a": [1, 2', "EOF .* at line 1"),
        ("\u00a01".encode(), "expected value at line 1 column 1"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_refused(body: bytes, said: str) -> None:
    with pytest.raises(JSONTextError, match=said) as caught:
        load(body)
    # the message goes into an HTTP answer: short, and text that can be encoded
    assert len(str(caught.value).encode()) < 500


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"9" * 4300, int("9" * 4300)),
        (b"-" + b"9" * 4300, -int("9" * 4300)),
        (b"[" * 200 + b"]" * 200, None),
        (b"1e308", 1e308),
        (b"1e-999", 0.0),
        (b"0e999", 0.0),
        (b'"1e999"', "1e999"),
        (b'{"1e999": 1}', {"1e999": 1}),
        (b"1e5", 1e5),
        (b"-0", 0),
        (b'"\\u0000"', "\x00"),
        (b'"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
        (b" \r\n\t{} ", {}),
    ],
    ids=lambda value: str(value)[:30],
)
def test_accepted(body: bytes, value: Any) -> None:
    loaded = load(body)
    if value is not None:
        assert same(loaded, value)


@settings(deadline=None)
@given(st.integers(min_value=1, max_value=330), st.integers(min_value=-400, max_value=400))
def test_no_body_becomes_an_infinite_float(digits: int, exponent: int) -> None:
    body = b"[%se%d]" % (b"9" * digits, exponent)
    number = float(body[1:-1])
    value, refusal = attempt(body)
    if math.isfinite(number):
        assert value == [number]
    else:
        assert refusal is not None
        assert "$[0]" in refusal


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b",".join([b"9" * 209] * 80_000) + b"]",
        b"[" + b",".join([b"1e300"] * 3_000_000) + b"]",
        b'["' + b"9" * 4_000_000 + b'"]',
    ],
    ids=["long numbers", "exponents", "digits in text"],
)
def test_the_search_for_overflow_is_linear(body: bytes) -> None:
    """Bodies made to be slow to search are not: beginning anew at every digit takes longer than this allows."""
    begun = time.process_time()
    load(body)
    assert time.process_time() - begun < 3


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "body"),
    [
        ({"a": [1, 2.5, None, True]}, b'{"a":[1,2.5,null,true]}'),
        ("é\N{GRINNING FACE}\u2028", '"é\N{GRINNING FACE}\u2028"'.encode()),
        ((1, (2,)), b"[1,[2]]"),
        (Colour.RED, b'"red"'),
        (Level.HIGH, b"3"),
        ({1: "a", None: "b", False: "c"}, b'{"1":"a","null":"b","false":"c"}'),
        (10**4299, b"1" + b"0" * 4299),
    ],
    ids=lambda value: str(value)[:30],
)
def test_written(value: Any, body: bytes) -> None:
    assert dump(value) == body


def circle() -> list[Any]:
    value: list[Any] = [1]
    value.append({"again": value})
    return value


def circle_with_a_set() -> list[Any]:
    value: list[Any] = [1, {2}]
    value.insert(0, value)
    return value


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": [1, math.nan]}, r"the value at \$\.a\[1\] is NaN or infinite"),
        ([math.inf], r"the value at \$\[0\] is NaN or infinite"),
        ({"a": {math.nan: 1}}, r"the object at \$\.a has a key that is NaN or infinite"),
        ({"a": {1, 2}}, r"the value at \$\.a is of type set"),
        (b"x", r"the value at \$ is of type bytes"),
        ([decimal.Decimal(1)], r"the value at \$\[0\] is of type Decimal"),
        ([datetime.date(2020, 1, 1)], r"the value at \$\[0\] is of type date"),
        ({(1, 2): 3}, r"the object at \$ has a key of type tuple"),
        ([10**4300], r"the value at \$\[0\] is an integer of more than 4,300 digits"),
        ({10**4300: 1}, r"the object at \$ has a key that is an integer of more than 4,300 digits"),
        (["a\ud800"], r"the value at \$\[0\] holds a lone surrogate"),
        ({"a": {"\udfff": 1}}, r"the object at \$\.a has a key that holds a lone surrogate"),
        ({"k" * 500: {1}}, r"\$\.k+… is of type set"),
        (circle(), "contains itself"),
        (circle_with_a_set(), r"the value at \$\[2\] is of type set"),
        (deep(100_000), "nested too deeply"),
        (["\udfff", deep(100_000)], "lone surrogate"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value[:40],
)
def test_not_written(value: Any, said: str) -> None:
    with pytest.raises(JSONValueError, match=said) as caught:
        dump(value)
    assert len(str(caught.value).encode()) < 500


def test_the_path_to_a_fault_far_down_is_shortened() -> None:
    value: Any = {1}
    for _ in range(400):
        value = {"inside": value}
    with pytest.raises(JSONValueError, match=r"\$\.inside\..*…") as caught:
        dump(value)
    assert len(str(caught.value)) < 500


class Grade(enum.IntEnum):
    BEST = 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.booleans(), inner),
        max_leaves=20,
    )
)
@example({"grade": Grade.BEST, (1).__class__(7): 0.1, None: (1, 2)})
def test_what_is_written_is_what_the_standard_library_writes(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        expected = text.encode()
    except UnicodeEncodeError:
        with pytest.raises(JSONValueError, match="surrogate"):
            dump(value)
    else:
        assert dump(value) == expected


def test_what_contains_itself_is_no_json() -> None:
    value: list[Any] = []
    value.append({"inside": value})
    with pytest.raises(JSONValueError, match="contains itself"):
        dump(value)
    assert dump([[]] * 2) == b"[[],[]]"


def test_many_threads_write_at_once() -> None:
    values = [{"n": number, "text": "ß" * number} for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert [json.loads(text) for text in pool.map(dump, values * 10)] == values * 10
