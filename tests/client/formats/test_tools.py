"""Tools in the providers' formats: accepted by the providers' types, and nothing lost that these can say."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from ors import ToolSpec
from ors.client.formats import FORMATS, convert_tools

from .models import schemas
from .provider_types import TOOLS, accepted
from .saying import facts, facts_with_notes, unsaid

SCHEMA_AT: dict[str, tuple[str, ...]] = {
    "openai": ("parameters",),
    "openai-chat": ("function", "parameters"),
    "openrouter": ("function", "parameters"),
    "anthropic": ("input_schema",),
    "google": ("parameters",),
    "google-json": ("parametersJsonSchema",),
    "mcp": ("inputSchema",),
}
JSON_SCHEMA = [name for name in FORMATS if name != "google"]
# what the Schema of Google's declarations says itself; everything else stands in descriptions
GOOGLE_SAYS = {"parameter", "type", "default", "description", "minimum", "maximum", "minLength", "maxLength", "pattern"}
GOOGLE_SAYS |= {"minItems", "maxItems"}

ELSEWHERE = re.compile(r"\{\}|\[\d")
"""In the path of what only a description can say: values of maps, places in tuples."""

CORPUS = settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def tool_of(schema: dict[str, Any] | None) -> ToolSpec:
    return ToolSpec(name="act", description="Act on it.", input_schema=schema)


def converted(schema: dict[str, Any] | None, format: str) -> Any:
    (tool,) = convert_tools([tool_of(schema)], format)
    accepted(TOOLS[format], tool)
    json.dumps(tool, allow_nan=False)
    for key in SCHEMA_AT[format]:
        tool = tool[key]
    return tool


def test_every_format_is_checked() -> None:
    assert set(FORMATS) == set(SCHEMA_AT) == set(TOOLS)


@CORPUS
@given(schemas())
def test_formats_with_json_schema_say_all_that_the_source_says(schema: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    made = {format: converted(schema, format) for format in JSON_SCHEMA}
    assert schema == before
    source = facts(schema)
    for one in {json.dumps(one): one for one in made.values()}.values():
        jsonschema.Draft202012Validator.check_schema(one)
        assert one["type"] == "object"
        assert not unsaid(source, facts(one))


@CORPUS
@given(schemas())
def test_google_says_what_its_schema_can_and_the_rest_in_descriptions(schema: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    (tool,) = convert_tools([tool_of(schema)], "google")
    read = accepted(TOOLS["google"], tool)
    assert schema == before
    if not schema.get("properties"):
        assert read.parameters is None
        assert schema.get("description", "") in tool["description"]
        return
    source, made = facts(schema), tool["parameters"]
    assert not unsaid(source, facts_with_notes(made))
    listable = {
        (path, keyword, text)
        for path, keyword, text in source
        if not ELSEWHERE.search(path)
        and (keyword in GOOGLE_SAYS or (keyword == "value" and text[0] == '"' and text != '""'))
    }
    missing = unsaid(listable, facts(made))
    # a list with an empty text in it is refused whole, so it is all in the description
    assert not {fact for fact in missing if fact[1] != "value" or (fact[0], "value", '""') not in source}
    check_google(made, "parameters")


def check_google(schema: dict[str, Any], path: str) -> None:
    """What the service refuses although the type allows it."""
    assert not {"$ref", "ref", "defs", "additionalProperties"} & set(schema), path
    if "anyOf" in schema:
        assert set(schema) == {"anyOf"}, f"{path}: {set(schema)}"
        assert len(schema["anyOf"]) > 1
    else:
        assert isinstance(schema["type"], str), path
    if "enum" in schema:
        assert schema["type"] == "string" and all(isinstance(value, str) and value for value in schema["enum"]), path
    if schema.get("type") == "array":
        check_google(schema["items"], f"{path}[]")
    if schema.get("type") == "string":
        assert schema.get("format") in (None, "date-time", "enum")
    assert set(schema.get("required", [])) <= set(schema.get("properties", {})), path
    for name, sub in schema.get("properties", {}).items():
        check_google(sub, f"{path}.{name}")
    for i, option in enumerate(schema.get("anyOf", [])):
        check_google(option, f"{path}|{i}")


@pytest.mark.parametrize("format", FORMATS)
def test_a_tool_without_parameters(format: str) -> None:
    made = converted(None, format)
    assert made is None if format in ("openai", "google") else made == {"type": "object", "properties": {}}
