"""Keys of tasks: the same wherever the task stands, and however it is spelt."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ors.jsontext import JSONValueError
from ors.tasks.keys import canonical_json, task_key


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        # RFC 8785, appendix B
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555554", "333333333.33333325"),
        ("41b3de4355555555", "333333333.3333333"),
        ("41b3de4355555556", "333333333.3333334"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers_of_the_rfc(bits: str, text: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_json(number).decode() == text


def test_the_sample_of_the_rfc() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '€$\u000f\nA\'B"\\\\"/',
        "literals": [None, True, False],
    }
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical_json(value).decode() == expected


def test_keys_are_sorted_by_utf_16_units() -> None:
    value = {"€": 1, "\r": 2, "\ufb33": 3, "1": 4, "😀": 5, "\x80": 6, "ö": 7}
    assert list(json.loads(canonical_json(value)).values()) == [2, 4, 6, 7, 1, 5, 3]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_as_itself(number: float) -> None:
    assert json.loads(canonical_json(number), parse_int=float) == number


def test_what_is_equal_has_one_key_and_what_is_not_has_another() -> None:
    key = task_key({"a": 1, "b": [2.0, "x"]})
    assert key == hashlib.sha256(b'{"a":1,"b":[2,"x"]}').hexdigest()
    assert task_key({"b": (2, "x"), "a": 1.0}) == key
    assert task_key({"a": 1, "b": [2.5, "x"]}) != key
    assert task_key({"n": 2**53 + 1}) != task_key({"n": 2**53 + 2})


@pytest.mark.parametrize(("id", "key"), [("id", "7"), ("name", "seven"), (lambda task: task["name"] * 2, "sevenseven")])
def test_the_authors_id(id: Any, key: str) -> None:
    assert task_key({"id": 7, "name": "seven"}, id) == key


@pytest.mark.parametrize(
    ("id", "words"),
    [("uid", "the task has no field 'uid'"), ("a", "text or an integer, not 1.5"), ("b", "not ''"), ("c", "not True")],
)
def test_what_is_no_id(id: str, words: str) -> None:
    with pytest.raises(JSONValueError, match=words):
        task_key({"a": 1.5, "b": "", "c": True}, id)
