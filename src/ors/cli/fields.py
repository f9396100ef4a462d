"""The fields of a tool's input, from its schema: what kind of value each takes, and text → value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Field", "faults_of"]

_KINDS = ("boolean", "integer", "number", "string")
_YES = {"y": True, "yes": True, "true": True, "1": True, "n": False, "no": False, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a tool's input. kind: boolean, integer, number, string, choice, or json for all others."""

    name: str
    kind: str
    schema: Mapping[str, Any]
    root: Mapping[str, Any]
    required: bool
    nullable: bool = False

    @classmethod
    def all_of(cls, schema: Mapping[str, Any] | None) -> list[Field] | None:
        """The fields of a schema; None where it is no plain list of fields, and takes one JSON object as a whole."""
        if schema is None:
            return []
        root = schema
        schema = _resolved(schema, root)
        if any(word in schema for word in ("oneOf", "anyOf", "allOf", "if", "patternProperties")):
            return None
        properties = schema.get("properties", {})
        if schema.get("type", "object") != "object" or not isinstance(properties, Mapping):
            return None
        if not properties and schema.get("additionalProperties", True) is not False and "properties" not in schema:
            return None
        listed = schema.get("required")
        required = listed if isinstance(listed, list) else ()
        return [cls._of(name, part, root, name in required) for name, part in properties.items()]

    @classmethod
    def _of(cls, name: str, schema: Any, root: Mapping[str, Any], required: bool) -> Field:
        whole: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
        plain = _resolved(whole, root)
        options = plain.get("anyOf") or plain.get("oneOf")
        nullable = False
        checked = whole
        if isinstance(options, list):
            others = [_resolved(option, root) for option in options if isinstance(option, Mapping)]
            real = [option for option in others if option.get("type") != "null"]
            nullable = len(real) < len(others)
            if len(real) == 1:
                kept = {key: value for key, value in plain.items() if key not in ("anyOf", "oneOf")}
                plain = {**kept, **real[0], **{key: kept[key] for key in ("description", "default") if key in kept}}
                checked = plain  # what is wrong with a value is said of the one thing that it can be
        kind = plain.get("type")
        if isinstance(kind, list):
            nullable = nullable or "null" in kind
            kinds = [one for one in kind if one != "null"]
            kind = kinds[0] if len(kinds) == 1 else None
        if isinstance(plain.get("enum"), list) and plain["enum"]:
            kind = "choice"
        elif "const" in plain:
            kind, plain = "choice", {**plain, "enum": [plain["const"]]}
        elif kind not in _KINDS:
            kind = "json"
        definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
        return cls(name, kind, plain, {**definitions, **checked}, required, nullable)

    @property
    def choices(self) -> list[Any]:
        """The values that there are to choose from."""
        return list(self.schema.get("enum", ())) if self.kind == "choice" else []

    @property
    def has_default(self) -> bool:
        """Whether the tool has a value of its own for it."""
        return "default" in self.schema

    @property
    def description(self) -> str:
        """What the field is for."""
        said = self.schema.get("description")
        return said if isinstance(said, str) else ""

    @property
    def told(self) -> str:
        """The kind of the field in words, with its limits, and what leaving it out means."""
        words = {"string": "text", "boolean": "yes or no", "choice": "one of", "json": "JSON"}.get(self.kind, self.kind)
        if self.kind == "choice":
            words += " " + ", ".join(map(_shown, self.choices[:12])) + (", …" if len(self.choices) > 12 else "")
        if self.kind == "json" and isinstance(self.schema.get("type"), str):
            words += f" {self.schema['type']}"
        low, high = self.schema.get("minimum"), self.schema.get("maximum")
        if low is not None and high is not None:
            words += f" from {low} to {high}"
        elif low is not None or high is not None:
            words += f", at least {low}" if low is not None else f", at most {high}"
        if self.has_default and self.schema["default"] is not None:
            return f"{words}; default {_shown(self.schema['default'])}"
        return words if self.required else f"{words}; optional"

    def value_of(self, text: str) -> Any:
        """The value that a text stands for. Raises ValueError in words."""
        if self.nullable and text.strip() == "null":
            return None
        value = self._parsed(text)
        faults = faults_of(value, self.root)
        if faults:
            raise ValueError(faults)
        return value

    def _parsed(self, text: str) -> Any:
        word = text.strip()
        if self.kind == "string":
            return text
        if self.kind == "boolean":
            if word.lower() not in _YES:
                raise ValueError(f"{word or 'nothing'} is neither yes nor no")
            return _YES[word.lower()]
        if self.kind == "choice":
            return self._chosen(word)
        if self.kind in ("integer", "number"):
            try:
                return int(word) if self.kind == "integer" or word.lstrip("+-").isdigit() else _finite(word)
            except ValueError:
                article = "an" if self.kind == "integer" else "a"
                raise ValueError(f"{word or 'nothing'} is not {article} {self.kind}") from None
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise ValueError(f"this is no JSON: {exc}") from None

    def _chosen(self, word: str) -> Any:
        for choice in self.choices:
            if word == _shown(choice) or (isinstance(choice, str) and word == choice):
                return choice
        same = [choice for choice in self.choices if isinstance(choice, str) and choice.lower() == word.lower()]
        if len(same) == 1:
            return same[0]
        raise ValueError(f"{word or 'nothing'} is none of {', '.join(map(_shown, self.choices[:20]))}")


def faults_of(value: Any, schema: Mapping[str, Any]) -> str:
    """What is wrong with a value by a schema, in words; empty where nothing is."""
    from jsonschema import Draft202012Validator

    try:
        # the server's check is what counts: a schema that cannot be used here must not keep anybody from playing
        errors = list(Draft202012Validator(dict(schema)).iter_errors(value))
    except Exception:
        return ""
    words = []
    for error in errors[:3]:
        where = ".".join(str(part) for part in error.absolute_path)
        words.append(f"{where}: {error.message[:300]}" if where else error.message[:300])
    return "; ".join(words)


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema without the reference to another part of the same document that it may start with."""
    for _ in range(20):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        found: Any = root
        for part in reference[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            return schema
        schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def _finite(word: str) -> float:
    value = float(word)
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("no number")
    return value


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
