"""Schemas as pydantic emits them, of models made by hypothesis; and the same schemas as others would write them."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from typing import Annotated, Any, Literal

from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, create_model

# names that are also keywords of JSON Schema are names all the same
NAMES = [
    *("title", "default", "items", "properties", "type", "description", "enum", "anyOf", "required", "const", "format"),
    *(
        "definitions",
        "examples",
        "minimum",
        "path",
        "query",
        "count",
        "value_2",
        "left",
        "name",
        "options",
        "x",
        "not_",
    ),
]
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).map(
    lambda text: f"About {text}."
)
_COUNTER = iter(range(10**9))

Pair = tuple[Any, st.SearchStrategy[Any]]
"""An annotation, and what may be the default of a field of it."""


def _number(name: str) -> str:
    return f"{name}{next(_COUNTER)}"


@st.composite
def scalars(draw: st.DrawFn) -> Pair:
    kinds: list[Pair] = [
        (str, st.text(max_size=8)),
        (int, st.integers()),
        (float, st.floats(allow_nan=False, allow_infinity=False)),
        (bool, st.booleans()),
        (Any, st.none() | st.integers() | st.text(max_size=4)),
        (datetime.date, st.dates()),
        (datetime.datetime, st.datetimes()),
        (uuid.UUID, st.uuids()),
        (decimal.Decimal, st.just(decimal.Decimal("1.5"))),
        (Annotated[int, Field(ge=draw(st.integers(-5, 5)), lt=draw(st.integers(6, 9)))], st.just(5)),
        (Annotated[int, Field(multiple_of=draw(st.integers(1, 4)))], st.just(0)),
        (Annotated[float, Field(gt=draw(st.floats(-1, 0)), le=draw(st.floats(1, 2)))], st.just(0.5)),
        (Annotated[str, Field(min_length=draw(st.integers(0, 3)), max_length=7, pattern="^[a-z]*$")], st.just("abc")),
        (Annotated[str, Field(examples=draw(st.lists(st.text(max_size=3), min_size=1, max_size=2)))], st.just("")),
    ]
    return draw(st.sampled_from(kinds))


@st.composite
def choices(draw: st.DrawFn) -> Pair:
    values = st.one_of(st.text(max_size=5), st.integers(-3, 3), st.booleans(), st.none())
    of_text = draw(st.booleans())
    members = draw(
        st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=4, unique=True)
        if of_text
        else st.lists(values, min_size=1, max_size=4, unique_by=lambda value: (type(value), value))
    )
    if draw(st.booleans()):
        return Literal[tuple(members)], st.sampled_from(members)
    distinct = list({repr(m): m for m in members if not isinstance(m, bool)}.values()) or ["only"]
    made = enum.Enum(_number("Choice"), {f"member_{i}": value for i, value in enumerate(distinct)})
    made.__doc__ = draw(st.none() | TEXT)
    return made, st.sampled_from(list(made))


def _containers(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    @st.composite
    def contained(draw: st.DrawFn) -> Pair:
        kind = draw(st.sampled_from(["list", "tuple", "tail", "dict", "optional", "union", "model", "tagged", "tree"]))
        one, default = draw(inner)
        if kind == "list":
            return Annotated[list[one], Field(min_length=draw(st.integers(0, 2)))], st.just([])
        if kind == "tuple":
            return tuple[one, draw(inner)[0]], st.nothing()
        if kind == "tail":
            return tuple[one, ...], st.just(())
        if kind == "dict":
            return dict[str, one], st.just({})
        if kind == "optional":
            return one | None, st.none() | default
        if kind == "union":
            return one | draw(inner)[0] | draw(scalars())[0], default
        if kind == "model":
            return draw(models(inner)), st.nothing()
        if kind == "tagged":
            options = [
                create_model(_number("Option"), kind=(Literal[tag], ...), held=(draw(inner)[0], ...)) for tag in "ab"
            ]
            return Annotated[options[0] | options[1], Field(discriminator="kind")], st.nothing()
        name = _number("Tree")
        tree = create_model(name, __doc__=draw(st.none() | TEXT), held=(one, ...), below=(list[name], []))
        tree.model_rebuild(_types_namespace={name: tree})
        return tree, st.nothing()

    return contained()


ANNOTATIONS: st.SearchStrategy[Pair] = st.recursive(scalars() | choices(), _containers, max_leaves=5)


@st.composite
def models(draw: st.DrawFn, annotations: st.SearchStrategy[Pair] = ANNOTATIONS) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=0, max_size=4, unique=True)):
        annotation, defaults = draw(annotations)
        said = {key: draw(TEXT) for key in draw(st.sets(st.sampled_from(["description", "title"])))}
        if not defaults.is_empty and draw(st.booleans()):
            said["default"] = draw(defaults)
        fields[name] = (annotation, Field(**said))
    config = ConfigDict(extra="forbid") if draw(st.booleans()) else None
    return create_model(_number("Input"), __config__=config, __doc__=draw(st.none() | TEXT), **fields)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """The schema of a model, in pydantic's spelling or in another one."""
    schema = draw(models()).model_json_schema()
    if draw(st.booleans()):
        spellings = draw(st.sets(st.sampled_from(["types", "definitions", "allOf", "oneOf", "enum"])))
        return respelled(schema, spellings)
    return schema


def respelled(schema: Any, spellings: set[str], place: str = "schema") -> Any:
    """A schema that means the same: lists of types, `definitions`, `$ref` inside `allOf`, `oneOf`, `enum` of one."""
    if place == "names":
        return {name: respelled(sub, spellings) for name, sub in schema.items()}
    if place == "list":
        return [respelled(sub, spellings) for sub in schema]
    if not isinstance(schema, dict):
        return schema
    places = {"properties": "names", "$defs": "names", "anyOf": "list", "oneOf": "list", "prefixItems": "list"}
    places |= {"items": "schema", "additionalProperties": "schema"}
    out = {key: respelled(sub, spellings, places[key]) if key in places else sub for key, sub in schema.items()}
    if "$ref" in out and "definitions" in spellings:
        out["$ref"] = out["$ref"].replace("#/$defs/", "#/definitions/")
    if "$defs" in out and "definitions" in spellings:
        out["definitions"] = out.pop("$defs")
    if "$ref" in out and "allOf" in spellings:
        out["allOf"] = [{"$ref": out.pop("$ref")}]
    if "const" in out and "enum" in spellings:
        out["enum"] = [out.pop("const")]
    options = out.get("anyOf", [])
    if "types" in spellings and len(options) == 2 and options[1] == {"type": "null"}:
        one = options[0]
        if isinstance(one.get("type"), str) and not {"enum", "const"} & set(one) and not set(one) & set(out):
            del out["anyOf"]
            return {**out, **one, "type": [one["type"], "null"]}
    if options and "oneOf" in spellings:
        out["oneOf"] = out.pop("anyOf")
    return out
