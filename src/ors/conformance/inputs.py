"""Inputs made from JSON Schemas: small values that a schema accepts, and values that it does not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["accepts", "broken_inputs", "is_schema", "make_input"]

_DEPTH = 12
_WORDS = (
    "a",
    "text",
    "1",
    "A",
    "a1",
    "ab-1",
    "a@example.org",
    "2024-01-01",
    "https://example.org/",
    "#000000",
    "00:00",
)
_FORMATS = {
    "date": "2024-01-01",
    "date-time": "2024-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "a@example.org",
    "uri": "https://example.org/",
    "url": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "hostname": "example.org",
    "binary": "AA==",
    "byte": "AA==",
    "duration": "P1D",
}


def is_schema(schema: Any) -> str | None:
    """What makes a value no valid JSON Schema of an object; None when nothing does."""
    if not isinstance(schema, Mapping):
        return "it is no object"
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema).check_schema(dict(schema))
    except SchemaError as exc:
        return str(exc.message)[:200]
    except Exception as exc:
        # of a schema from anywhere: a `$schema` of the wrong type, a pattern that is no expression, depth
        return f"{type(exc).__name__}: {exc}"[:200]
    return None


def accepts(schema: Mapping[str, Any] | None, value: Any) -> bool:
    """Whether a schema accepts a value; a schema that cannot be used accepts nothing."""
    if schema is None:
        return bool(value == {})
    from jsonschema.validators import validator_for
    from referencing import Registry

    try:
        # an empty registry: a schema must not make us fetch what it refers to
        return bool(validator_for(schema)(schema, registry=Registry()).is_valid(value))
    except Exception:
        return False


def make_input(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A small input that a tool's schema accepts; None where none is found."""
    if schema is None:
        return {}
    try:
        for value in _values(schema, schema, 0):
            if isinstance(value, dict) and accepts(schema, value):
                return value
    except (RecursionError, TypeError, ValueError, KeyError, AttributeError, re.error):
        return None
    return None


def broken_inputs(schema: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Inputs that a schema refuses, by what is wrong with them: `missing` a required field, or of a wrong `type`."""
    good = make_input(schema)
    if not schema or good is None:
        return {}
    found: dict[str, dict[str, Any]] = {}
    required = schema.get("required")
    for name in required if isinstance(required, list) else []:
        without = {key: value for key, value in good.items() if key != name}
        if name in good and not accepts(schema, without):
            found["missing"] = without
            break
    for name in good:
        for wrong in ({"an": ["object"]}, ["a list"], None):
            changed = {**good, name: wrong}
            if not accepts(schema, changed):
                return {**found, "type": changed}
    return found


def _values(schema: Any, root: Mapping[str, Any], depth: int) -> Iterator[Any]:
    """Candidates for a schema, the likeliest first."""
    if schema is True or schema == {}:
        yield "text"
        return
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return
    if "const" in schema:
        yield schema["const"]
        return
    for key in ("examples", "enum"):
        if isinstance(schema.get(key), list):
            yield from schema[key][:3]
    if "enum" in schema:
        return
    if "$ref" in schema:
        yield from _values(_resolve(schema["$ref"], root), root, depth + 1)
        return
    if isinstance(schema.get("allOf"), list):
        yield from _values(
            _merged([{k: v for k, v in schema.items() if k != "allOf"}, *schema["allOf"]], root), root, depth + 1
        )
        return
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            rest = {k: v for k, v in schema.items() if k != key}
            for option in schema[key]:
                yield from _values(_merged([rest, option], root), root, depth + 1)
            return
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind or _guess(schema)]
    for one in kinds:
        yield from _of_type(one, schema, root, depth)
    if "default" in schema:
        yield schema["default"]


def _of_type(kind: Any, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Iterator[Any]:
    if kind == "object":
        properties = schema.get("properties") or {}
        value = {}
        for name in schema.get("required") or []:
            value[name] = _first_accepted(properties.get(name, True), root, depth)
        yield value
        yield {name: _first_accepted(part, root, depth) for name, part in properties.items()}
    elif kind == "array":
        prefix = schema.get("prefixItems") or []
        count = max(int(schema.get("minItems") or 0), len(prefix))
        items = [_first_accepted(part, root, depth) for part in prefix]
        yield items + [
            _first_accepted(schema.get("items", True), root, depth) for _ in range(min(count, 100) - len(items))
        ]
    elif kind == "string":
        yield from _texts(schema)
    elif kind in ("integer", "number"):
        yield from _numbers(schema, whole=kind == "integer")
    elif kind == "boolean":
        yield from (True, False)
    elif kind == "null":
        yield None


def _texts(schema: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(known := _FORMATS.get(str(schema.get("format"))), str):
        yield known
    low, high = int(schema.get("minLength") or 0), schema.get("maxLength")
    pattern = schema.get("pattern")
    for word in _WORDS:
        text = word if len(word) >= low else (word * (low // len(word) + 1))[:low]
        text = text[: int(high)] if high is not None else text
        if pattern is None or re.search(pattern, text):
            yield text


def _numbers(schema: Mapping[str, Any], *, whole: bool) -> Iterator[Any]:
    low, high = (
        schema.get("minimum", schema.get("exclusiveMinimum")),
        schema.get("maximum", schema.get("exclusiveMaximum")),
    )
    step = schema.get("multipleOf")
    for value in (1, 0, low, high, low is not None and low + 1, high is not None and high - 1, step):
        if value is not None and value is not False:
            yield int(value) if whole else value
    if low is not None and high is not None and not whole:
        yield (low + high) / 2


def _first_accepted(schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    last: Any = "text"
    for value in _values(schema, root, depth + 1):
        last = value
        part = (
            {**schema, **{key: root[key] for key in ("$defs", "definitions") if key in root}}
            if isinstance(schema, Mapping)
            else {}
        )
        if accepts(part, value):
            return value
    return last


def _resolve(ref: Any, root: Mapping[str, Any]) -> Any:
    if not isinstance(ref, str) or not ref.startswith("#"):
        return {}
    found: Any = root
    for part in ref.removeprefix("#").strip("/").split("/"):
        if part:
            found = found[part.replace("~1", "/").replace("~0", "~")]
    return found


def _merged(parts: list[Any], root: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, Mapping) and "$ref" in part:
            part = {**_resolve(part["$ref"], root), **{k: v for k, v in part.items() if k != "$ref"}}
        for key, value in (part if isinstance(part, Mapping) else {}).items():
            if key == "properties" and isinstance(value, Mapping):
                merged[key] = {**merged.get(key, {}), **value}
            elif key == "required" and isinstance(value, list):
                merged[key] = [*merged.get(key, []), *value]
            else:
                merged[key] = value
    return merged


def _guess(schema: Mapping[str, Any]) -> str:
    if "properties" in schema or "required" in schema:
        return "object"
    if "items" in schema:
        return "array"
    return "number" if "minimum" in schema or "maximum" in schema else "string"
