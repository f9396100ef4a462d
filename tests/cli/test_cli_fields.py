"""Forms from schemas: every schema has one, whatever is in it, and what a form accepts fits the schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ors.cli.errors import CommandError
from ors.cli.fields import Field, faults_of
from ors.cli.inputs import input_of, range_of


def field(schema: dict[str, Any], **root: Any) -> Field:
    fields = Field.all_of({"type": "object", "properties": {"x": schema}, **root})
    assert fields is not None
    return fields[0]


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, " as it is ", " as it is "),
        ({"type": "integer"}, " 12 ", 12),
        ({"type": "integer"}, "9" * 30, int("9" * 30)),
        ({"type": "number"}, "-3", -3),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "n", False),
        ({"enum": ["up", "down"]}, "UP", "up"),
        ({"enum": [1, 2, "2"]}, "2", 2),
        ({"enum": [None, "x"]}, "null", None),
        ({"const": "only"}, "only", "only"),
        ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", [1, 2]),
        ({"type": "object"}, '{"a": null}', {"a": None}),
        ({}, '"anything"', "anything"),
        (True, "1", 1),
        ({"type": ["integer", "null"]}, "null", None),
        ({"type": ["integer", "null"]}, "4", 4),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}, "5", 5),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "5", 5),
        ({"$ref": "#/$defs/Colour"}, "red", "red"),
        ({"anyOf": [{"$ref": "#/$defs/Colour"}, {"type": "null"}]}, "red", "red"),
        ({"allOf": [{"$ref": "#/$defs/Colour"}]}, '"red"', "red"),
    ],
)
def test_a_text_becomes_a_value(schema: Any, text: str, value: Any) -> None:
    made = field(schema, **{"$defs": {"Colour": {"type": "string", "enum": ["red", "green"]}}})
    assert made.value_of(text) == value
    assert type(made.value_of(text)) is type(value)


@pytest.mark.parametrize(
    ("schema", "text", "words"),
    [
        ({"type": "integer"}, "1.5", "1.5 is not an integer"),
        ({"type": "integer"}, "", "nothing is not an integer"),
        ({"type": "integer", "maximum": 3}, "4", "4 is greater than the maximum of 3"),
        ({"type": "number"}, "nan", "nan is not a number"),
        ({"type": "number"}, "inf", "inf is not a number"),
        ({"type": "boolean"}, "perhaps", "neither yes nor no"),
        ({"enum": ["up", "down"]}, "left", "left is none of up, down"),
        ({"type": "string", "minLength": 3}, "ab", "too short"),
        ({"type": "array"}, "[1,", "no JSON"),
        ({"type": "array"}, "{}", "not of type 'array'"),
        ({"anyOf": [{"$ref": "#/$defs/Small"}, {"type": "null"}]}, '{"n": 7}', "n: 7 is greater than the maximum of 5"),
        ({"$ref": "#/$defs/Small"}, "{}", "'n' is a required property"),
    ],
)
def test_what_does_not_fit_is_told_in_words(schema: Any, text: str, words: str) -> None:
    small = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}}, "required": ["n"]}
    with pytest.raises(ValueError, match=words):
        field(schema, **{"$defs": {"Small": small}}).value_of(text)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"oneOf": [{"type": "object"}, {"type": "object"}]},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {},
        {"properties": ["no"]},
    ],
)
def test_what_is_no_list_of_fields_is_asked_for_as_a_whole(schema: dict[str, Any]) -> None:
    assert Field.all_of(schema) is None


def test_no_parameters_are_no_fields() -> None:
    assert Field.all_of(None) == []
    assert Field.all_of({"type": "object", "properties": {}}) == []


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "enum", "$ref", "anyOf", "default", "required", "minimum", "$defs", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
KINDS = st.sampled_from(
    ["string", "integer", "number", "boolean", "array", "object", "null", "#/$defs/a", ["string", "null"]]
)
SCHEMAS = st.dictionaries(
    st.sampled_from(
        ["type", "properties", "enum", "$ref", "anyOf", "oneOf", "default", "required", "minimum", "$defs"]
    ),
    ANYTHING | KINDS,
    max_size=6,
)


@given(schema=SCHEMAS, text=st.text(max_size=10))
def test_no_schema_and_no_text_break_a_form(schema: dict[str, Any], text: str) -> None:
    """Servers of others list what they like; a value or words for what is wrong with it come of any of it."""
    for one in Field.all_of({"type": "object", "properties": {"x": schema, "y": schema}}) or ():
        assert one.told
        assert isinstance(one.description, str)
        words = ""
        try:
            value = one.value_of(text)
        except ValueError as exc:
            words = str(exc) or "nothing"
        else:
            assert not faults_of(value, one.root) or value is None
        assert words != "nothing"
    for whole in (schema, {"properties": {"x": schema}, "required": schema.get("required")}):
        Field.all_of(whole)


def test_words_of_a_command_line() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "text": {"type": "string"}, "many": {"type": "array"}},
    }
    assert input_of(["n=5", "text=5", "many=[1]", "more={}"], schema) == {"n": 5, "text": "5", "many": [1], "more": {}}
    assert input_of(["more=plain", "text=a=b"], schema) == {"more": "plain", "text": "a=b"}
    assert input_of([], schema) == {}
    assert input_of([' {"n": 1}'], schema) == {"n": 1}
    for words in (["n"], ["n=x"], ["n=1", "n=1"], ["[1]"]):
        with pytest.raises(CommandError):
            input_of(words, schema)


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("3:7", (3, 7)),
        (":7", (None, 7)),
        ("-3:", (-3, None)),
        (":", (None, None)),
        ("4", (4, 5)),
        ("-1", (-1, None)),
        ("-2", (-2, -1)),
    ],
)
def test_ranges(text: str, bounds: tuple[int | None, int | None]) -> None:
    assert range_of(text) == bounds
    numbers = list(range(20))
    if ":" not in text:
        assert numbers[slice(*range_of(text))] == [numbers[int(text)]]
