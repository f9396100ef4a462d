"""JSON Schema → the `Schema` of Google's function declarations, a part of OpenAPI 3.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ors.client.formats.schema import Schema, add_note, merge

__all__ = ["narrow"]

_KEPT = {
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties", "required"),
}
_FORMATS = {
    "string": ("date-time", "enum"),
    "number": ("float", "double"),
    "integer": ("int32", "int64"),
}
_OTHER = {
    "string": ("contentEncoding", "contentMediaType", "contentSchema"),
    "number": ("exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "integer": ("exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems", "additionalItems"),
    "object": (
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedProperties",
    ),
}
_OF_ANY_TYPE = ("not", "if", "then", "else", "allOf", "deprecated", "readOnly", "writeOnly")
_TYPES = ("string", "number", "boolean", "object", "array", "null")
_ITEMS = ("string", "number", "boolean", "object", "null")
"""What the items of an array are where nothing is said of them: somewhere arrays of arrays have to end."""
_SIGNS = {
    "object": (*_KEPT["object"], *_OTHER["object"], "properties"),
    "array": (*_KEPT["array"], *_OTHER["array"], "items", "prefixItems"),
    "string": (*_KEPT["string"], *_OTHER["string"]),
    "number": (*_KEPT["number"], *_OTHER["number"]),
}


def narrow(schema: Any) -> Schema:
    """What Google's `Schema` can say of a JSON Schema without references; the rest is said in the description.

    `anyOf` stands alone, as some of the service's models demand: what stood beside it is in each of its options. Null
    is `nullable`. Every schema has a type.
    """
    if not isinstance(schema, Mapping):
        return narrow({}) if schema is not False else add_note({"type": "string"}, {"not": {}})
    schema = _merged(dict(schema))
    for key in ("anyOf", "oneOf"):
        if key in schema:
            base = {name: value for name, value in schema.items() if name != key}
            return _union([(base, option) for option in schema[key]])
    if "const" in schema:
        allowed = [schema.pop("const")]
        schema["enum"] = [value for value in schema["enum"] if value in allowed] if "enum" in schema else allowed
    kinds = _kinds(schema)
    if "enum" in schema:
        groups = _groups(schema.pop("enum"), kinds if "type" in schema else [])
        if len(groups) != 1:
            return _union([(schema, group) for group in groups])
        schema |= groups[0]
        kinds = [schema["type"]]
    if len(kinds) != 1:
        base = {name: value for name, value in schema.items() if name != "type"}
        return _union([(_of_type(base, kind), {"type": kind}) for kind in kinds])
    return _plain(schema, kinds[0])


def _merged(schema: Schema) -> Schema:
    """`schema` with the parts of `allOf` merged into it, as far as one set of keywords can say them."""
    parts, left = list(schema.pop("allOf", [])), []
    while parts:
        part = parts.pop(0)
        if isinstance(part, Mapping):
            parts = [*part.get("allOf", []), *parts]
            schema = merge({key: value for key, value in part.items() if key != "allOf"}, schema)
            left += schema.pop("allOf", [])
    return {**schema, "allOf": left} if left else schema


def _kinds(schema: Schema) -> list[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    if kind:
        return list(kind)
    # a keyword that is about one type only tells what its author meant
    return [name for name, signs in _SIGNS.items() if any(sign in schema for sign in signs)][:1] or list(_TYPES)


def _groups(values: list[Any], kinds: list[str]) -> list[Schema]:
    """The values of an enum, by type: only those of strings can be listed, others are said in the description."""
    found: dict[str, list[Any]] = {}
    for value in values:
        found.setdefault(_type_of(value, kinds), []).append(value)
    groups: list[Schema] = []
    for kind, members in found.items():
        if kind == "string" and all(members):
            groups.append({"type": kind, "enum": members})
        elif kind == "null" or (kind == "boolean" and len(members) == 2):
            groups.append({"type": kind})
        else:
            groups.append({"type": kind, "unlisted": members})
    return groups or [{"type": "string", "unlisted": []}]


def _type_of(value: Any, kinds: list[str]) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "integer" if isinstance(value, int) and ("integer" in kinds or "number" not in kinds) else "number"
    if value is None:
        return "null"
    return "string" if isinstance(value, str) else "array" if isinstance(value, (list, tuple)) else "object"


def _union(pairs: list[tuple[Schema, Any]]) -> Schema:
    """One schema for what fits one of the pairs, each a schema and what else holds there."""
    default: dict[str, Any] = {}
    narrowed: list[Schema] = []
    nullable = False
    for base, option in pairs:
        default |= {"default": base["default"]} if "default" in base else {}
        if option is False:
            continue
        shared = {key: value for key, value in base.items() if key != "default"}
        result = narrow(merge(dict(option), shared) if isinstance(option, Mapping) else shared)
        for one in result.get("anyOf", [result]):
            nullable = nullable or one.get("type") == "null" or one.get("nullable", False)
            bare = {key: value for key, value in one.items() if key != "nullable"}
            if bare not in narrowed:
                narrowed.append(bare)
    options = [one for one in narrowed if one["type"] != "null"]
    if not options:
        return {**(narrowed[0] if narrowed else narrow(False)), **default}
    if nullable:
        options = [{**one, "nullable": True} for one in options]
    if default:
        fitting = [i for i, one in enumerate(options) if _fits(default["default"], one)] or [0]
        options[fitting[0]] = {**options[fitting[0]], **default}
    return options[0] if len(options) == 1 else {"anyOf": options}


def _fits(value: Any, option: Schema) -> bool:
    kind = _type_of(value, [option["type"]])
    return kind == option["type"] and ("enum" not in option or value in option["enum"])


def _of_type(schema: Schema, kind: str) -> Schema:
    """`schema` without the keywords that say something of other types only."""
    family = "number" if kind == "integer" else kind
    others = {sign for name, signs in _SIGNS.items() if name != family for sign in signs}
    return {key: value for key, value in schema.items() if key not in others}


def _plain(schema: Schema, kind: str) -> Schema:
    """The schema of one type."""
    out: Schema = {"type": kind}
    out |= {key: schema[key] for key in ("title", "description", "default", "enum") if key in schema}
    if schema.get("examples"):
        out["example"] = schema["examples"][0]
    out |= {key: schema[key] for key in _KEPT.get(kind, ()) if key in schema}
    noted: Schema = {"enum": schema["unlisted"]} if "unlisted" in schema else {}
    if "format" in schema:
        (out if schema["format"] in _FORMATS.get(kind, ()) else noted)["format"] = schema["format"]
    noted |= {key: schema[key] for key in (*_OTHER.get(kind, ()), *_OF_ANY_TYPE) if key in schema}
    if len(schema.get("examples", ())) > 1:
        noted["examples"] = schema["examples"]
    if isinstance(noted.get("additionalProperties"), bool):
        del noted["additionalProperties"]  # only listed properties are generated in any case
    if kind == "object" and schema.get("properties"):
        out["properties"] = {name: narrow(sub) for name, sub in schema["properties"].items()}
        out["required"] = [name for name in out.get("required", []) if name in out["properties"]]
    if kind == "object" and not out.get("required"):
        out.pop("required", None)
    if kind == "array":
        if "prefixItems" in schema:
            noted["prefixItems"] = schema["prefixItems"]
        out["items"] = _items(schema)
    return add_note(out, noted)


def _items(schema: Schema) -> Schema:
    """What each item of an array fits: the order of a tuple's items is said in its description."""
    options = list(schema.get("prefixItems", []))
    rest = schema.get("items")
    if rest is not None and rest is not False:
        options.append(rest)
    elif rest is None and schema.get("maxItems", len(options) + 1) > len(options):
        options.append({"type": list(_ITEMS)})
    return _union([({}, option) for option in options or [{"type": list(_ITEMS)}]])
