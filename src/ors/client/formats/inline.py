"""References written out, for providers that take none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ors.client.formats.errors import FormatError
from ors.client.formats.schema import Definitions, Schema, map_subschemas, use

__all__ = ["MOST_SCHEMAS", "inline"]

MOST_SCHEMAS = 5_000
"""A schema that is larger once written out is refused: no provider would take it, and it could be without bound."""
_REPEATS = (2, 1, 0)
"""How often a recursive definition is written out inside itself: as often as the bound on the size allows."""


class _TooLarge(Exception):
    pass


def inline(schema: Schema, tool: str) -> Schema:
    """`schema` with every reference written out and no definitions.

    A definition that contains itself is written out inside itself twice (less often where that grows too large); the
    next use says its type and, in its description, what it repeats. Raises FormatError for what stays too large.
    """
    definitions = Definitions(schema, tool)
    for repeats in _REPEATS:
        try:
            written: Schema = _Writer(definitions, repeats).write(schema, (), "")
        except _TooLarge as exc:
            place = exc.args[0]
            continue
        return written
    raise FormatError(
        f"tool {tool!r}: written out without references, its schema has more than {MOST_SCHEMAS:,} parts (it grew past "
        f"that at {place!r}); use fewer nested models"
    )


class _Writer:
    def __init__(self, definitions: Definitions, repeats: int) -> None:
        self._definitions = definitions
        self._repeats = repeats
        self._left = MOST_SCHEMAS

    def write(self, schema: Any, open_: tuple[str, ...], place: str) -> Any:
        if not isinstance(schema, Mapping):
            return schema
        self._left -= 1
        if self._left < 0:
            raise _TooLarge(place)
        if "$ref" in schema:
            reference = schema["$ref"]
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            target = self._definitions.find(reference)
            if open_.count(reference) > self._repeats:
                return use(self._stub(target, reference), beside)
            return self.write(use(target, beside), (*open_, reference), place)
        kept = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
        return map_subschemas(kept, lambda sub, where: self.write(sub, open_, f"{place}.{where}".lstrip(".")))

    def _stub(self, target: Any, reference: str) -> Schema:
        """What stands in the place of a definition that is not written out once more."""
        name = reference.rsplit("/", 1)[-1].lstrip("#")
        said = f"{name}, with the same structure as above." if name else "The same structure as the whole input."
        stub: Schema = {"description": said}
        if isinstance(target, Mapping):
            if "description" in target:
                stub["description"] = f"{target['description']}\n\n{said}"
            stub |= {key: target[key] for key in ("type", "enum", "const") if key in target}
            if stub.get("type") == "array":
                stub["items"] = {}
        return stub
