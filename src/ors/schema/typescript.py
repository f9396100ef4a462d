"""The data types as TypeScript declarations, printed from the JSON Schema document."""

from __future__ import annotations

import json
import textwrap
from typing import Any

from ors._version import __version__
from ors.schema.json_schema import json_schema

__all__ = ["typescript"]

_NAMES = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}


def typescript() -> str:
    """Return the declarations, one exported interface or type for each definition of `json_schema()`.

    A key that may be missing may also be null: `detail?: JSONObject | null`.
    """
    document = json_schema()
    parts = [f"// {document['title']}, printed by ors-kit {__version__}: ors schema --format typescript\n"]
    parts += [_declaration(name, schema) for name, schema in document["definitions"].items()]
    return "\n".join(parts)


def _declaration(name: str, schema: dict[str, Any]) -> str:
    comment = _comment(schema["description"])
    if "properties" not in schema:
        return f"{comment}export type {name} = {_type(schema)}\n"
    required = schema.get("required", ())
    lines = [
        f"  {key}{'' if key in required else '?'}: {_type(value)}\n" for key, value in schema["properties"].items()
    ]
    return f"{comment}export interface {name} {{\n{''.join(lines)}}}\n"


def _comment(text: str) -> str:
    text = text.replace("*/", "*\\/")
    if len(text) <= 110:
        return f"/** {text} */\n"
    return "/**\n" + textwrap.indent(textwrap.fill(text, 110), " * ") + "\n */\n"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "allOf" in schema and len(schema["allOf"]) == 1:
        return _type(schema["allOf"][0])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_type(option) for option in schema["anyOf"])
    kind = schema.get("type")
    if kind == "array":
        item = _type(schema["items"])
        return f"Array<{item}>" if " " in item else f"{item}[]"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"{{ [key: string]: {_type(schema['additionalProperties'])} }}"
    if kind in _NAMES:
        return _NAMES[kind]
    raise ValueError(f"no TypeScript is known for the JSON Schema {json.dumps(schema)}")
