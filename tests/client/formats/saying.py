"""What a schema says of the parameters, whatever its spelling: an independent reader of JSON Schema and of OpenAPI."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

Fact = tuple[str, str, str]
"""(the parameter's path, a keyword, its value as JSON)"""

_STRUCTURE = {"$defs", "definitions", "$ref", "required", "discriminator", "title", "nullable", "example"}
_NOTE = re.compile(r"JSON Schema: (?=\{)")


def facts(schema: Any) -> set[Fact]:
    """Everything that a schema says, definitions written out once."""
    return set(_facts(schema, schema, "", ()))


def facts_with_notes(schema: Any) -> set[Fact]:
    """The same, with what the descriptions say in JSON Schema."""
    return set(_facts(schema, schema, "", (), notes=True))


def unsaid(source: set[Fact], said: set[Fact]) -> set[Fact]:
    """What of `source` is not in `said`; descriptions may have grown, and a boolean needs no list of both values."""
    descriptions = [(path, json.loads(text)) for path, keyword, text in said if keyword == "description"]
    missing = set()
    for path, keyword, text in source - said:
        if keyword == "description":
            known = any(path == where and json.loads(text) in longer for where, longer in descriptions)
        elif keyword == "value" and text == "null":
            known = (path, "type", '"null"') in said
        elif keyword == "value" and text in ("true", "false"):
            both = {(path, "value", "true"), (path, "value", "false")} <= source
            known = both and (path, "type", '"boolean"') in said
        else:
            known = False
        if not known:
            missing.add((path, keyword, text))
    return missing


def _facts(schema: Any, root: Any, path: str, open_: tuple[str, ...], *, notes: bool = False) -> Iterator[Fact]:
    def below(sub: Any, step: str = "") -> Iterator[Fact]:
        return _facts(sub, root, path + step, open_, notes=notes)

    if not isinstance(schema, dict):
        return
    if "$ref" in schema and schema["$ref"] not in open_:
        target = root
        for part in schema["$ref"].split("/")[1:]:
            target = target[part]
        yield from _facts(target, root, path, (*open_, schema["$ref"]), notes=notes)
    for name, sub in schema.get("properties", {}).items():
        yield (f"{path}.{name}", "parameter", json.dumps(name in schema.get("required", [])))
        yield from below(sub, f".{name}")
    for key in ("anyOf", "oneOf", "allOf"):
        for option in schema.get(key, []):
            yield from below(option)
    for item in (schema.get("items"), *schema.get("prefixItems", [])):
        yield from below(item, "[]")
    for i, item in enumerate(schema.get("prefixItems", [])):
        yield path, "place", str(i)
        yield from below(item, f"[{i}]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from below(schema["additionalProperties"], "{}")
    kinds = schema.get("type", [])
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        yield path, "type", json.dumps(kind)
    if schema.get("nullable"):
        yield path, "type", '"null"'
    for value in schema.get("enum", []) + ([schema["const"]] if "const" in schema else []):
        yield path, "value", json.dumps(value)
    if notes:
        text = schema.get("description", "")
        for found in _NOTE.finditer(text):
            yield from below(json.JSONDecoder().raw_decode(text, found.end())[0])
    if "example" in schema:
        yield path, "examples", json.dumps([schema["example"]])
    handled = {"properties", "anyOf", "oneOf", "allOf", "items", "prefixItems", "additionalProperties"}
    for key, value in schema.items():
        if key not in handled | _STRUCTURE | {"type", "enum", "const"}:
            yield path, key, json.dumps(value)
