"""The check of a call's input against a listed JSON Schema, for tools that have no model of their own."""

from __future__ import annotations

from typing import Any

__all__ = ["SchemaCheck"]


class SchemaCheck:
    """A compiled schema. A null schema accepts only `{}`."""

    def __init__(self, schema: dict[str, Any] | None) -> None:
        self.schema = schema
        self._validator: Any = None
        if schema is not None:
            from jsonschema.validators import validator_for

            kind = validator_for(schema)
            kind.check_schema(schema)
            self._validator = kind(schema)

    def describe(self, value: Any) -> str | None:
        """What is wrong with an input, without repeating it; None when nothing is."""
        if self._validator is None:
            return None if value == {} else "this tool takes no input"
        error = next(self._validator.iter_errors(value), None)
        if error is None:
            return None
        where = ".".join(str(part) for part in error.absolute_path)
        what = (
            error.message
            if error.validator in ("required", "additionalProperties")
            else f"does not fit its schema ({error.validator})"
        )
        return f"{where}: {what}" if where else str(what)
