"""Inputs made from schemas are accepted by them, whatever authors' models come to; broken ones are not."""

from __future__ import annotations

import json
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from ors.conformance.inputs import accepts, broken_inputs, is_schema, make_input


class Colour(Enum):
    RED = "red"


class Part(BaseModel):
    name: Annotated[str, Field(min_length=3, max_length=4)]
    size: Annotated[int, Field(gt=10, lt=12)]


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]


class Many(BaseModel):
    part: Part
    parts: Annotated[list[Part], Field(min_length=2)]
    colour: Colour
    choice: Literal["a", "b"]
    maybe: int | None
    either: int | str
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    code: Annotated[str, Field(pattern=r"^[A-Z]$")]
    share: Annotated[float, Field(gt=0, lt=1)]
    steps: Annotated[int, Field(multiple_of=7)]
    day: date
    table: dict[str, int]
    pair: tuple[int, str]
    flag: bool
    tree: Tree
    anything: Any
    later: int = 3


@pytest.mark.parametrize("model", [Part, Tree, Cat, Many], ids=lambda model: model.__name__)
def test_an_input_for_a_model(model: type[BaseModel]) -> None:
    schema = model.model_json_schema()
    assert is_schema(schema) is None
    made = make_input(schema)
    assert made is not None
    # the model itself is the judge, not the schema alone
    assert model.model_validate_json(json.dumps(made))


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"properties": {"a": {"const": 7}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": ["null", "integer"]}}, "required": ["a"]},
        {"type": "object", "properties": {"a": True}, "required": ["a"], "additionalProperties": False},
        {"type": "object", "required": ["undescribed"]},
        {"allOf": [{"$ref": "#/definitions/a"}, {"required": ["b"], "properties": {"b": {"type": "number"}}}]}
        | {"definitions": {"a": {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}}},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 500}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"examples": ["of it"], "type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string", "format": "uuid"}}, "required": ["a"]},
    ],
    ids=str,
)
def test_an_input_for_a_schema(schema: dict[str, Any]) -> None:
    made = make_input(schema)
    if schema:
        assert made is not None
        assert accepts(schema, made)
    else:
        assert made is None or isinstance(made, dict)


def test_null_takes_nothing() -> None:
    assert make_input(None) == {}
    assert accepts(None, {})
    assert not accepts(None, {"a": 1})
    assert broken_inputs(None) == {}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}}, "required": ["a"]},
        {"$ref": "#"},
        {"type": "array"},
        {"type": "object", "properties": {"a": {"pattern": "("}}, "required": ["a"]},
        {"type": 7},
        {"allOf": 3},
    ],
    ids=str,
)
def test_where_no_input_is_found_none_is_made(schema: dict[str, Any]) -> None:
    assert make_input(schema) is None


def test_what_is_no_schema() -> None:
    assert is_schema({"type": "objekt"}) is not None
    assert is_schema([]) is not None
    assert is_schema({"$schema": 7, "type": 3}) is not None
    assert is_schema({"type": "object"}) is None


def test_inputs_that_a_schema_refuses() -> None:
    schema = Part.model_json_schema()
    broken = broken_inputs(schema)
    assert broken.keys() == {"missing", "type"}
    assert not any(accepts(schema, value) for value in broken.values())
    assert broken_inputs({"type": "object"}) == {}
    assert "missing" not in broken_inputs({"type": "object", "properties": {"a": {"type": "string"}}})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=8,
)
words = st.sampled_from(
    [
        "type",
        "properties",
        "required",
        "items",
        "enum",
        "const",
        "anyOf",
        "allOf",
        "oneOf",
        "$ref",
        "pattern",
        "minLength",
        "minimum",
        "maximum",
        "format",
        "minItems",
        "prefixItems",
        "$defs",
        "default",
        "multipleOf",
        "object",
        "string",
        "integer",
        "array",
        "null",
        "#",
        "#/$defs/a",
    ]
)
odd_schemas = st.recursive(
    json_values | words,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(words, children, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(words, odd_schemas, max_size=5))
def test_nothing_that_a_server_sends_as_a_schema_breaks_it(schema: dict[str, Any]) -> None:
    made = make_input(schema)
    assert made is None or accepts(schema, made)
    broken = broken_inputs(schema)
    assert not any(accepts(schema, value) for value in broken.values())
    assert is_schema(schema) is None or isinstance(is_schema(schema), str)
