"""Schemas that need a decision: what becomes of each is what docs/formats.md says."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from ors import ToolSpec
from ors.client.formats import FORMATS, FormatError, convert_tool_response, convert_tools
from ors.client.formats.inline import MOST_SCHEMAS

from .test_tools import JSON_SCHEMA, check_google, converted

NODE = {
    "type": "object",
    "description": "A node.",
    "properties": {"value": {"type": "integer"}, "below": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
    "required": ["value"],
}


def named(name: str) -> list[ToolSpec]:
    return [ToolSpec(name=name, description="", input_schema=None)]


def holding(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def google(schema: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = converted(holding(x=schema), "google")["properties"]["x"]
    check_google(made, "x")
    return made


def every_schema(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
    for sub in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from every_schema(sub)


# Names


@pytest.mark.parametrize(
    ("format", "taken", "refused"),
    [
        ("openai", "a-b_C9" + "x" * 58, ["a.b", "größe", "", "x" * 65]),
        ("openai-chat", "a-b_C9", ["a.b", "x" * 65]),
        ("openrouter", "a-b_C9", ["a.b", "x" * 65]),
        ("anthropic", "x" * 128, ["a.b", "x" * 129]),
        ("google", "_a.b:c-d", ["9a", "a b", "x" * 129]),
        ("google-json", "_a.b:c-d", ["9a", "a b", "x" * 129]),
        ("mcp", "größe und gewicht", []),
    ],
)
def test_names_of_tools_that_a_provider_refuses_are_errors(format: str, taken: str, refused: list[str]) -> None:
    assert taken in str(convert_tools(named(taken), format))
    for name in refused:
        with pytest.raises(FormatError, match="takes names that match .*rename the tool"):
            convert_tools(named(name), format)


@pytest.mark.parametrize(
    ("format", "refused"), [("anthropic", ["$top", "größe", "x" * 65]), ("google", ["a.b", "9a", "x" * 65])]
)
def test_names_of_parameters_that_a_provider_refuses_are_errors(format: str, refused: list[str]) -> None:
    for name in refused:
        with pytest.raises(FormatError) as caught:
            converted(holding(**{name: {"type": "string"}}), format)
        assert "'act'" in str(caught.value) and f"rename {name!r}" in str(caught.value)


# References


@pytest.mark.parametrize("format", JSON_SCHEMA)
def test_a_reference_at_the_root_is_followed_and_recursion_kept(format: str) -> None:
    made = converted({"$defs": {"Node": NODE}, "$ref": "#/$defs/Node"}, format)
    assert made["properties"]["value"] == {"type": "integer"}
    assert made["properties"]["below"]["items"] == {"$ref": "#/$defs/Node"}
    assert made["$defs"]["Node"]["required"] == ["value"]


def test_google_is_shown_a_recursive_definition_inside_itself_twice() -> None:
    made = converted({"$defs": {"Node": NODE}, **holding(top={"$ref": "#/$defs/Node"})}, "google")
    node, depth = made["properties"]["top"], 0
    while "properties" in node:
        assert node["properties"]["value"] == {"type": "integer"}
        assert node["description"] == "A node."
        node, depth = node["properties"]["below"]["items"], depth + 1
    assert depth == 3
    assert node == {"type": "object", "description": "A node.\n\nNode, with the same structure as above."}


def test_google_is_shown_an_input_that_contains_itself() -> None:
    made = converted(holding(name={"type": "string"}, inner={"$ref": "#"}), "google")
    assert made["properties"]["inner"]["properties"]["name"] == {"type": "string"}
    assert "The same structure as the whole input." in json.dumps(made)


def test_many_definitions_that_contain_each_other_stay_bounded() -> None:
    names = [f"D{i}" for i in range(6)]
    each = holding(**{name: {"$ref": f"#/$defs/{name}"} for name in names})
    made = converted({"$defs": dict.fromkeys(names, each), **holding(first={"$ref": "#/$defs/D0"})}, "google")
    assert len(list(every_schema(made))) < 2 * MOST_SCHEMAS


def test_what_grows_without_recursion_is_an_error_that_names_the_tool_and_the_place() -> None:
    steps = {
        f"D{i}": holding(left={"$ref": f"#/$defs/D{i + 1}"}, right={"$ref": f"#/$defs/D{i + 1}"}) for i in range(20)
    }
    schema = {"$defs": {**steps, "D20": {"type": "string"}}, **holding(first={"$ref": "#/$defs/D0"})}
    with pytest.raises(FormatError, match=r"tool 'act': .*5,000 parts .*properties\.first.*fewer nested models"):
        converted(schema, "google")
    assert converted(schema, "openai")["properties"]["first"] == {"$ref": "#/$defs/D0"}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (holding(x={"$ref": "#/$defs/Missing"}), "'#/\\$defs/Missing' leads nowhere"),
        (holding(x={"$ref": "https://example.com/schema.json"}), "is not inside its schema"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "leads to itself"),
    ],
)
def test_references_that_lead_nowhere_are_errors(schema: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=f"tool 'act': .*{message}"):
        converted(schema, "google")


def test_escaped_names_of_definitions_are_found() -> None:
    schema = {"$defs": {"a/b~c d": {"type": "string"}}, **holding(x={"$ref": "#/$defs/a~1b~0c%20d"})}
    assert converted(schema, "google")["properties"]["x"] == {"type": "string"}


# The root


UNION = {
    "description": "One of two moves.",
    "oneOf": [
        {
            "type": "object",
            "properties": {"kind": {"const": "go"}, "to": {"type": "string"}},
            "required": ["kind", "to"],
        },
        {"type": "object", "properties": {"kind": {"const": "wait"}}, "required": ["kind"]},
    ],
}


@pytest.mark.parametrize("format", [name for name in JSON_SCHEMA if name != "mcp"])
def test_a_union_at_the_root_becomes_one_object(format: str) -> None:
    made = converted(UNION, format)
    assert set(made) == {"type", "properties", "required", "description"}
    assert made["properties"] == {"kind": {"anyOf": [{"const": "go"}, {"const": "wait"}]}, "to": {"type": "string"}}
    assert made["required"] == ["kind"]
    before, _, note = made["description"].partition("\n\nJSON Schema: ")
    assert before == "One of two moves."
    assert json.loads(note)["oneOf"][0] == {
        "required": ["kind", "to"],
        "properties": {"kind": {"const": "go"}, "to": {}},
    }


def test_google_has_the_union_of_the_root_too() -> None:
    made = converted(UNION, "google")
    assert made["properties"]["kind"] == {
        "anyOf": [{"type": "string", "enum": ["go"]}, {"type": "string", "enum": ["wait"]}]
    }


def test_mcp_takes_the_union_as_it_is() -> None:
    assert converted(UNION, "mcp") == {"type": "object", "properties": {}, **UNION}


@pytest.mark.parametrize("format", JSON_SCHEMA)
def test_parts_that_all_hold_are_one_object(format: str) -> None:
    schema = {"allOf": [holding(a={"type": "string"}), {**holding(b={"type": "integer"}), "required": ["b"]}]}
    made = converted(schema, format)
    assert "allOf" not in made
    assert made["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}
    assert made["required"] == ["b"]


@pytest.mark.parametrize(
    ("format", "schema"),
    [(name, {"type": "string"}) for name in FORMATS]
    + [(name, {"anyOf": [{"type": "integer"}, holding()]}) for name in FORMATS if name != "mcp"],
)
def test_an_input_that_is_no_object_is_an_error(format: str, schema: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="tool 'act': .*objects only"):
        converted(schema, format)


# What only some providers take


@pytest.mark.parametrize("format", ["openai", "openai-chat", "openrouter"])
def test_every_array_has_items_for_openai(format: str) -> None:
    pair = {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}
    made = converted(holding(pair=pair, any={"type": ["array", "null"]}), format)["properties"]
    assert made == {"pair": {**pair, "items": {}}, "any": {"type": ["array", "null"], "items": {}}}


def test_tuples_of_older_drafts_are_those_of_the_newest() -> None:
    old = {"type": "array", "items": [{"type": "integer"}], "additionalItems": False}
    made = converted(holding(pair=old), "anthropic")["properties"]["pair"]
    assert made == {"type": "array", "prefixItems": [{"type": "integer"}], "items": False}


def test_responses_are_told_not_to_be_strict() -> None:
    """Left out it means true there: every parameter would count as required."""
    assert convert_tools(named("act"), "openai")[0]["strict"] is False


@pytest.mark.parametrize(
    ("schema", "becomes"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "description": "d"},)
        + ({"type": "string", "nullable": True, "default": None, "description": "d"},),
        ({"type": ["integer", "null"], "minimum": 1}, {"type": "integer", "nullable": True, "minimum": 1}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"type": "null"}, {"type": "null"}),
        ({"enum": [1, 2]}, {"type": "integer", "description": 'JSON Schema: {"enum": [1, 2]}'}),
        ({"enum": ["a", ""]}, {"type": "string", "description": 'JSON Schema: {"enum": ["a", ""]}'}),
        ({"enum": ["a", None]}, {"type": "string", "enum": ["a"], "nullable": True}),
        ({"type": "string", "format": "uuid"}, {"type": "string", "description": 'JSON Schema: {"format": "uuid"}'}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "object", "additionalProperties": False}, {"type": "object"}),
        (
            {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": "a", "description": "d"},
            {
                "anyOf": [
                    {"type": "integer", "description": "d"},
                    {"type": "string", "description": "d", "default": "a"},
                ]
            },
        ),
        (
            {"allOf": [{"type": "string", "minLength": 1, "description": "one"}, {"maxLength": 9, "minLength": 2}]},
            {"type": "string", "minLength": 2, "maxLength": 9, "description": "one"},
        ),
        (
            {"allOf": [{"type": "string", "pattern": "a"}, {"pattern": "b"}]},
            {"type": "string", "pattern": "b", "description": 'JSON Schema: {"allOf": [{"pattern": "a"}]}'},
        ),
        ({"minLength": 2}, {"type": "string", "minLength": 2}),
    ],
)
def test_what_google_is_told(schema: dict[str, Any], becomes: dict[str, Any]) -> None:
    assert google(schema) == becomes


def test_anything_at_all_has_every_type_for_google() -> None:
    made = google({"description": "d"})
    assert [one["type"] for one in made["anyOf"]] == ["string", "number", "boolean", "object", "array"]
    assert all(one["nullable"] and one["description"] == "d" for one in made["anyOf"])


def test_schemas_that_are_booleans() -> None:
    assert len(google(True)["anyOf"]) == 5  # type: ignore[arg-type]
    assert google(False) == {"type": "string", "description": 'JSON Schema: {"not": {}}'}  # type: ignore[arg-type]


# Titles, answers, and what is left alone


def test_titles_made_of_names_are_dropped_and_written_ones_kept() -> None:
    schema = {**holding(max_size={"type": "integer", "title": "Max Size"}, x={"type": "string", "title": "Where"})}
    made = converted({"title": "Params", **schema}, "anthropic")
    assert made == holding(max_size={"type": "integer"}, x={"type": "string", "title": "Where"})


def test_values_that_look_like_schemas_are_left_alone() -> None:
    value = {"title": "T", "$ref": "#/nowhere", "properties": {"title": {"title": "title"}}}
    schema = holding(x={"type": "object", "default": value, "examples": [value], "enum": [value]})
    for format in JSON_SCHEMA:
        made = converted(schema, format)["properties"]["x"]
        assert made == schema["properties"]["x"]
        made["default"]["title"] = "changed"
    assert value["title"] == "T", "the source shares nothing with what was made of it"


def test_the_answer_of_a_server_is_converted_as_existing_clients_do() -> None:
    answer = {
        "tools": [{"name": "a", "description": "d", "input_schema": holding(x={"type": "string"})}, {"name": "b"}],
        "terminal_tool": None,
    }
    before = copy.deepcopy(answer)
    specs = convert_tool_response(answer)
    assert specs == [
        ToolSpec(name="a", description="d", input_schema=holding(x={"type": "string"})),
        ToolSpec(name="b", description="", input_schema=None),
    ]
    for format in FORMATS:
        assert convert_tool_response(answer, format) == convert_tools(specs, format)
    assert answer == before
    with pytest.raises(ValueError, match="Invalid format: 'cohere'"):
        convert_tool_response(answer, "cohere")
