"""Inputs of tools that have no model are checked against the listed schema, and nothing of them is repeated."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema.exceptions import SchemaError

from ors.core.schema_check import SchemaCheck

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 5},
        "tries": {"type": "integer", "minimum": 1},
        "where": {"type": "object", "properties": {"rows": {"type": "array", "items": {"enum": [1, 2]}}}},
    },
    "required": ["text"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"text": "abc"}, None),
        ({"text": "abc", "tries": 2, "where": {"rows": [1, 2, 1]}}, None),
        ({}, "'text' is a required property"),
        ({"text": "much-too-long"}, "text: does not fit its schema (maxLength)"),
        ({"text": 5}, "text: does not fit its schema (type)"),
        ({"text": "a", "tries": 0}, "tries: does not fit its schema (minimum)"),
        ({"text": "a", "where": {"rows": [1, 7]}}, "where.rows.1: does not fit its schema (enum)"),
        ([], "does not fit its schema (type)"),
        (None, "does not fit its schema (type)"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(value: Any, words: str | None) -> None:
    assert SchemaCheck(SCHEMA).describe(value) == words


def test_names_that_are_not_known_are_named() -> None:
    words = SchemaCheck(SCHEMA).describe({"text": "a", "colour": "red"})
    assert words is not None and "colour" in words and "red" not in words


@pytest.mark.parametrize("value", [{"a": 1}, [], None, 0, False, ""])
def test_a_tool_without_a_schema_takes_nothing(value: Any) -> None:
    assert SchemaCheck(None).describe({}) is None
    assert SchemaCheck(None).describe(value) == "this tool takes no input"


def test_a_schema_says_which_dialect_it_is_of() -> None:
    tuple_of_draft_7 = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}
    assert SchemaCheck(tuple_of_draft_7).describe([1]) == "0: does not fit its schema (type)"
    with pytest.raises(SchemaError):
        SchemaCheck({"type": "no such type"})
