"""The JSON Schema document: valid itself, and at one with the models about what is right and what is wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from pydantic import BaseModel, TypeAdapter, ValidationError

from ors import types
from ors.schema import json_schema
from ors_examples import EXAMPLES, IDS, TOOL_OUTPUT_SCHEMA, Example

DOCUMENT = json_schema()
REQUESTS = ("ToolCall", "ListTasks", "NumTasks", "GetTask", "GetTaskRange", "CreateSession")
PAGE = (
    *("JSONValue", "JSONObject", "TextBlock", "ImageBlock", "Blocks", "ToolSpec", "ToolOutput", "ListToolsOutput"),
    *("RunToolSuccess", "RunToolError", "RunToolOutput", "Task", "Split", *REQUESTS),
)
"""Every type of the standard's page of data types."""


def validator(name: str) -> Draft7Validator:
    return Draft7Validator({**DOCUMENT, "$ref": f"#/definitions/{name}"})


def model_accepts(name: str, value: Any) -> bool:
    try:
        TypeAdapter(getattr(types, name)).validate_python(value)
    except ValidationError:
        return False
    return True


def test_the_document_is_draft_07() -> None:
    Draft7Validator.check_schema(DOCUMENT)
    assert DOCUMENT["$schema"] == "http://json-schema.org/draft-07/schema#"
    text = json.dumps(DOCUMENT)
    assert "$defs" not in text
    assert "discriminator" not in text


def test_every_type_of_the_standard_is_there_with_a_description() -> None:
    assert set(PAGE) <= set(DOCUMENT["definitions"])
    assert set(DOCUMENT["definitions"]) - set(PAGE) == {"TerminalToolSpec"}
    for name, schema in DOCUMENT["definitions"].items():
        assert schema["description"].endswith("."), name


def test_every_model_of_the_wire_is_there() -> None:
    models = {
        name
        for name in types.__all__
        if isinstance(value := getattr(types, name), type) and issubclass(value, BaseModel)
    }
    assert models - set(DOCUMENT["definitions"]) == set()


@pytest.mark.parametrize("example", EXAMPLES, ids=IDS)
def test_example_of_the_text(example: Example) -> None:
    validator(example.type).validate(example.value)


@pytest.mark.parametrize("name", PAGE[2:])
def test_every_type_has_an_example(name: str) -> None:
    assert [example for example in EXAMPLES if example.type == name]


def broken(value: Any) -> Iterator[Any]:
    """Versions of an example with one thing changed."""
    if not isinstance(value, dict):
        return
    yield None
    yield [value]
    for key in value:
        yield {other: value[other] for other in value if other != key}
        for wrong in (None, 1, 0.5, "text", True, [], {}, [value[key]]):
            yield {**value, key: wrong}
        for inner in broken(value[key]):
            yield {**value, key: inner}
    yield {**value, "unknown": 1}


@pytest.mark.parametrize(
    "example", [example for example in EXAMPLES if example.type in REQUESTS], ids=lambda example: example.type
)
def test_requests_are_judged_as_the_server_judges_them(example: Example) -> None:
    judged = {True: 0, False: 0}
    for value in broken(example.value):
        accepted = model_accepts(example.type, copy.deepcopy(value))
        assert validator(example.type).is_valid(value) == accepted, value
        judged[accepted] += 1
    assert all(judged.values())


@pytest.mark.parametrize(
    "example",
    [example for example in EXAMPLES if example.type not in (*REQUESTS, "Task", "Blocks", "ToolOutput")],
    ids=lambda example: example.type,
)
def test_answers_that_are_right_are_read_by_the_models(example: Example) -> None:
    judged = {True: 0, False: 0}
    for value in broken(example.value):
        valid = validator(example.type).is_valid(value)
        if valid:
            assert model_accepts(example.type, copy.deepcopy(value)), value
        judged[valid] += 1
    assert all(judged.values())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
DETAIL = st.none() | st.dictionaries(TEXT, JSON, max_size=3)
BLOCK = st.builds(types.TextBlock, text=TEXT, detail=DETAIL) | st.builds(
    types.ImageBlock, data=TEXT, mimeType=TEXT, detail=DETAIL
)
OUTPUT = st.builds(
    types.ToolOutput,
    blocks=st.lists(BLOCK, min_size=1, max_size=3),
    metadata=DETAIL,
    reward=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    finished=st.booleans(),
)
SPEC = st.builds(types.ToolSpec, name=TEXT, description=TEXT, input_schema=DETAIL)
ANSWERS = (
    OUTPUT
    | SPEC
    | st.builds(types.ListToolsOutput, tools=st.lists(SPEC, max_size=3))
    | st.builds(types.TerminalToolSpec, name=TEXT, arg=st.none() | TEXT, description=TEXT)
    | st.builds(types.RunToolSuccess, output=OUTPUT)
    | st.builds(types.RunToolError, error=TEXT, reason=st.none() | TEXT)
    | st.builds(types.RunToolOutput, st.builds(types.RunToolError, error=TEXT))
    | st.builds(types.Split, name=TEXT, type=st.sampled_from(["train", "validation", "test"]))
)


@given(ANSWERS)
def test_what_the_models_write_is_right(value: BaseModel) -> None:
    validator(type(value).__name__).validate(json.loads(value.model_dump_json()))


@given(OUTPUT)
def test_tool_outputs_are_right_to_the_schema_of_the_text(output: types.ToolOutput) -> None:
    schema = {**TOOL_OUTPUT_SCHEMA, "$ref": "#/definitions/ToolOutput"}
    Draft7Validator(schema).validate(json.loads(output.model_dump_json()))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TextBlock", {"text": "x"}),
        ("ImageBlock", {"type": "text", "data": "", "mimeType": "image/png"}),
        ("Blocks", [{"type": "sound", "data": ""}]),
        ("ToolSpec", {"name": "x", "description": ""}),
        ("ToolOutput", {"blocks": [], "finished": True}),
        ("ToolOutput", {"blocks": [{"type": "text", "text": ""}]}),
        ("ToolOutput", {"blocks": [{"type": "text", "text": ""}], "finished": 1}),
        ("ToolOutput", {"blocks": [{"type": "text", "text": ""}], "finished": True, "reward": "1"}),
        ("RunToolOutput", {"ok": True, "error": "x"}),
        ("RunToolOutput", {"error": "x"}),
        ("Split", {"name": "x", "type": "hard"}),
        ("Split", {"name": "x"}),
        ("Task", []),
        ("CreateSession", {}),
        ("CreateSession", {"split": "train"}),
        ("CreateSession", {"task_spec": {}, "split": "train", "index": 0}),
        ("GetTask", {"split": "x", "index": "0"}),
    ],
)
def test_what_is_wrong_is_found(name: str, value: Any) -> None:
    assert not validator(name).is_valid(value)
