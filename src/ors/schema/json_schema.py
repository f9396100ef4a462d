"""The data types as one JSON Schema document (draft-07, under `definitions`)."""

from __future__ import annotations

import inspect
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from ors import types

__all__ = ["json_schema"]

_REF = "#/definitions/"

_ANSWERS: tuple[type[BaseModel], ...] = (
    types.TextBlock,
    types.ImageBlock,
    types.ToolSpec,
    types.TerminalToolSpec,
    types.ListToolsOutput,
    types.ToolOutput,
    types.RunToolSuccess,
    types.RunToolError,
    types.Split,
)
_REQUESTS: tuple[type[BaseModel], ...] = (
    types.ToolCall,
    types.ListTasks,
    types.NumTasks,
    types.GetTask,
    types.GetTaskRange,
    types.CreateSession,
)

# Keys of answers that may be null and are there all the same: "always present in output, nullable".
_ALWAYS_PRESENT = {("ToolSpec", "input_schema")}

_ANY_OBJECT = {"type": "object", "additionalProperties": True}
_BLOCK = {"anyOf": [{"$ref": f"{_REF}TextBlock"}, {"$ref": f"{_REF}ImageBlock"}]}
_RESULT = {"anyOf": [{"$ref": f"{_REF}RunToolSuccess"}, {"$ref": f"{_REF}RunToolError"}]}


def json_schema() -> dict[str, Any]:
    """Return the document: `{"$schema": …, "definitions": {"JSONValue": …, "TextBlock": …, …}}`."""
    scalars = [{"type": name} for name in ("string", "number", "boolean", "null")]
    values = [*scalars, {"$ref": f"{_REF}JSONObject"}, {"type": "array", "items": {"$ref": f"{_REF}JSONValue"}}]
    definitions: dict[str, Any] = {
        "JSONValue": {"description": "Any JSON value.", "anyOf": values},
        "JSONObject": {
            "description": "A JSON object.",
            "type": "object",
            "additionalProperties": {"$ref": f"{_REF}JSONValue"},
        },
        "Blocks": {"description": "Prompts and tool outputs are lists of blocks.", "type": "array", "items": _BLOCK},
        "RunToolOutput": {"description": _summary(types.RunToolOutput), **_RESULT},
        "Task": {
            "description": "A task: an object whose structure is the environment's own.",
            "allOf": [{"$ref": f"{_REF}JSONObject"}],
        },
    }
    for model in (*_ANSWERS, *_REQUESTS):
        definitions[model.__name__] = _definition(model)
    for model in _ANSWERS:
        _require_what_is_always_there(model, definitions[model.__name__])
    return {
        "$schema": _Draft7.schema_dialect,
        "title": "Data types of the Open Reward Standard",
        "definitions": definitions,
    }


class _Draft7(GenerateJsonSchema):
    schema_dialect = "http://json-schema.org/draft-07/schema#"

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _definition(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template=f"{_REF}{{model}}", schema_generator=_Draft7)
    del schema["title"]
    schema.pop("$defs", None)  # each has its own place under `definitions`
    schema["description"] = _summary(model)
    schema["properties"] = {name: _tidy(value) for name, value in schema["properties"].items()}
    return {key: schema[key] for key in ("description", *(key for key in schema if key != "description"))}


def _require_what_is_always_there(model: type[BaseModel], schema: dict[str, Any]) -> None:
    schema["required"] = [
        name
        for name, field in model.model_fields.items()
        if field.is_required() or field.default is not None or (model.__name__, name) in _ALWAYS_PRESENT
    ]


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """One property's schema, with the shared definitions named and without defaults that say nothing."""
    if schema == _ANY_OBJECT:
        return {"$ref": f"{_REF}JSONObject"}
    tidied = dict(schema)
    if tidied.get("default", ...) is None or "const" in tidied:
        tidied.pop("default", None)
    if tidied.get("items") == _BLOCK:
        del tidied["items"], tidied["type"]
        tidied = {"allOf": [{"$ref": f"{_REF}Blocks"}], **tidied}
    if "anyOf" in tidied:
        tidied["anyOf"] = [_tidy(option) for option in tidied["anyOf"]]
    return tidied


def _summary(model: type[BaseModel]) -> str:
    """The first paragraph of a docstring: the others are for authors in Python."""
    return " ".join(inspect.cleandoc(model.__doc__ or "").partition("\n\n")[0].split())
