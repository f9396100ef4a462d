"""JSON Schemas of tools: where subschemas stand, references followed, and a root that every provider takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from ors.client.formats.errors import FormatError

__all__ = ["Definitions", "Schema", "add_note", "map_subschemas", "merge", "object_root", "tidy"]

Schema = dict[str, Any]

_OF_NAMES = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_OF_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = (
    "items",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "contentSchema",
    "not",
    "if",
    "then",
    "else",
)
_GREATER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_LESSER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_SAID_ONCE = ("title", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment")
"""Keywords that check nothing: where two schemas are joined, the one nearer to the use is kept."""


def map_subschemas(schema: Schema, convert: Callable[[Any, str], Any]) -> Schema:
    """A copy of `schema` with `convert(subschema, where)` in the place of each direct subschema.

    Only places that hold schemas are touched: a property may be called `title` or `items`, a default may be any value.
    """
    out: Schema = {}
    for key, value in schema.items():
        if key in _OF_NAMES and isinstance(value, Mapping):
            out[key] = {name: convert(sub, f"{key}.{name}") for name, sub in value.items()}
        elif (key in _OF_LISTS or key == "items") and isinstance(value, list):
            out[key] = [convert(sub, f"{key}.{i}") for i, sub in enumerate(value)]
        elif key in _SINGLE:
            out[key] = convert(value, key)
        else:
            out[key] = _copied(value)
    return out


def tidy(schema: Any, name: str | None = None) -> Any:
    """A deep copy without the titles that pydantic makes of names, which tell a model nothing; others are kept."""
    if not isinstance(schema, Mapping):
        return _copied(schema)
    out = map_subschemas(dict(schema), lambda sub, where: tidy(sub, _name_at(where)))
    title = out.get("title")
    if isinstance(title, str) and name is not None and _plain(title) == _plain(name):
        del out["title"]
    if isinstance(out.get("items"), list):  # the way of tuples before 2020-12
        out["prefixItems"] = out.pop("items")
        if "additionalItems" in out:
            out["items"] = out.pop("additionalItems")
    return out


class Definitions:
    """What the references of one tool's schema point to."""

    def __init__(self, schema: Schema, tool: str) -> None:
        self._schema = schema
        self.tool = tool

    def find(self, reference: Any) -> Any:
        """The schema that a `$ref` names. Raises FormatError for one that leads nowhere or out of the document."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise FormatError(f"tool {self.tool!r}: the reference {reference!r} is not inside its schema")
        found: Any = self._schema
        for part in unquote(reference[1:]).split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(part)] if isinstance(found, list) else found[part]
            except (KeyError, IndexError, ValueError, TypeError):
                raise FormatError(f"tool {self.tool!r}: the reference {reference!r} leads nowhere") from None
        return found

    def follow(self, schema: Any) -> Any:
        """`schema` with what its own `$ref` names merged into it, until it has none; inner references stay."""
        seen: set[str] = set()
        while isinstance(schema, Mapping) and "$ref" in schema:
            reference = schema["$ref"]
            if reference in seen:
                raise FormatError(f"tool {self.tool!r}: the reference {reference!r} leads to itself")
            target = self.find(reference)
            seen.add(reference)
            schema = use(target, {key: value for key, value in schema.items() if key != "$ref"})
        return schema


def use(target: Any, beside: Schema) -> Any:
    """The schema that a reference with keywords beside it stands for."""
    if not isinstance(target, Mapping):
        return {**beside, "not": {}} if target is False else beside
    return merge(dict(target), beside)


def merge(first: Schema, second: Schema) -> Schema:
    """One schema for what fits both; what cannot be said in one set of keywords stays under `allOf`.

    Of what only describes, `second` is nearer to the use and wins, but both descriptions are kept.
    """
    out, left = dict(first), {}
    for key, value in second.items():
        if key not in out or out[key] == value or key in _SAID_ONCE:
            out[key] = value
        elif key == "description":
            out[key] = value if str(out[key]) in str(value) else f"{value}\n\n{out[key]}"
        elif key == "required":
            out[key] = [*out[key], *(name for name in value if name not in out[key])]
        elif key in ("properties", "$defs", "definitions"):
            both = out[key]
            out[key] = {**both, **{n: _merge_any(both[n], sub) if n in both else sub for n, sub in value.items()}}
        elif key == "enum":
            out[key] = [item for item in out[key] if item in value]
        elif key == "type" and (common := _common_types(out[key], value)) is not None:
            out[key] = common
        elif key in _GREATER:
            out[key] = max(out[key], value)
        elif key in _LESSER:
            out[key] = min(out[key], value)
        elif key == "allOf":
            out[key] = [*out[key], *value]
        else:
            left[key] = value
    if left:
        out["allOf"] = [*out.get("allOf", []), left]
    return out


def object_root(schema: Schema, tool: str, *, keep_unions: bool = False) -> Schema:
    """A tidy copy of a tool's input schema whose root is a plain object, as model providers ask for.

    A reference at the root is followed, `allOf` merged, and a union of objects becomes one object with the properties
    of all of them; which belong together then stands in its description. `keep_unions` leaves unions as they are.
    Raises FormatError where the input is no object.
    """
    root = tidy(schema, str(schema.get("title", "")))
    root = _flat(root, Definitions(root, tool), keep_unions)
    kind = root.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise FormatError(f"tool {tool!r}: its input is of type {kind!r}, and providers take objects only")
    noted: Schema = {} if keep_unions else {key: root.pop(key) for key in ("not", "enum", "const") if key in root}
    root = {"type": "object", **root, "properties": root.get("properties", {})}
    root["type"] = "object"
    return add_note(root, noted)


def add_note(schema: Schema, noted: Mapping[str, Any]) -> Schema:
    """`schema` with keywords that its reader would refuse said in its description, as the JSON they were."""
    if not noted:
        return schema
    text = json.dumps(noted, ensure_ascii=False)
    before = schema.get("description")
    return {**schema, "description": f"{before}\n\nJSON Schema: {text}" if before else f"JSON Schema: {text}"}


def _flat(schema: Schema, definitions: Definitions, keep_unions: bool, depth: int = 0) -> Schema:
    schema = definitions.follow(schema)
    if not isinstance(schema, Mapping) or depth > 20:
        raise FormatError(f"tool {definitions.tool!r}: its schema is no description of an object")
    schema = dict(schema)
    for part in schema.pop("allOf", []):
        schema = merge(_flat(part, definitions, keep_unions, depth + 1), schema)
    for key in () if keep_unions else ("anyOf", "oneOf"):
        if key in schema:
            options = [_flat(option, definitions, False, depth + 1) for option in schema.pop(key)]
            options = [option for option in options if option.get("type") != "null"]
            schema = _join(schema, key, options, definitions.tool)
    return schema


def _join(base: Schema, key: str, options: list[Schema], tool: str) -> Schema:
    """One object for what fits `base` and one of the options."""
    for option in options:
        if option.get("type", "object") != "object":
            raise FormatError(f"tool {tool!r}: its input may be a {option['type']}, and providers take objects only")
    if len(options) == 1:
        return merge(options[0], base)
    found: dict[str, list[Any]] = {}
    for option in options:
        for name, sub in option.get("properties", {}).items():
            if sub not in (subs := found.setdefault(name, [])):
                subs.append(sub)
    properties = {name: subs[0] if len(subs) == 1 else {"anyOf": subs} for name, subs in found.items()}
    required = [
        name for name in options[0].get("required", []) if all(name in option.get("required", []) for option in options)
    ]
    joined = merge({"properties": properties, "required": required}, base)
    return add_note(joined, {key: [_summary(option) for option in options]})


def _summary(option: Schema) -> Schema:
    said: Schema = {key: option[key] for key in ("title", "description", "required") if key in option}
    kinds = {}
    for name, sub in option.get("properties", {}).items():
        kinds[name] = {"const": sub["const"]} if isinstance(sub, Mapping) and "const" in sub else {}
    return {**said, "properties": kinds} if kinds else said


def _common_types(one: Any, other: Any) -> Any:
    """The types in both, or None where they have none in common."""
    ones, others = ([types] if isinstance(types, str) else list(types) for types in (one, other))
    common = [kind for kind in ones if kind in others or (kind == "integer" and "number" in others)]
    common += [kind for kind in others if kind == "integer" and "number" in ones and kind not in common]
    return None if not common else common[0] if len(common) == 1 else common


def _merge_any(first: Any, second: Any) -> Any:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return merge(dict(first), dict(second))
    return second if first is True else first if second is True else False


def _name_at(where: str) -> str | None:
    key, _, name = where.partition(".")
    return name if key in ("properties", "$defs", "definitions") else None


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, (list, tuple)) else value
