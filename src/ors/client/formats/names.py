"""Names of tools and parameters that a provider refuses."""

from __future__ import annotations

import re

from ors.client.formats.errors import FormatError
from ors.client.formats.schema import Schema

__all__ = ["check_name", "check_parameters"]


def check_name(name: str, pattern: re.Pattern[str], provider: str) -> str:
    """The name, if the provider takes it. Raises FormatError.

    A refused name is an error and not rewritten: the model's calls would name a tool that the environment has not.
    """
    if not pattern.fullmatch(name):
        raise FormatError(f"tool {name!r}: {provider} takes names that match {pattern.pattern}; rename the tool")
    return name


def check_parameters(schema: Schema, tool: str, pattern: re.Pattern[str], provider: str) -> Schema:
    """The schema, if the provider takes the names of its parameters. Raises FormatError."""
    for name in schema["properties"]:
        if not pattern.fullmatch(name):
            raise FormatError(
                f"tool {tool!r}: {provider} takes names of parameters that match {pattern.pattern}; rename {name!r}"
            )
    return schema
