"""`ors schema`: the data types and the routes, for other languages."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from ors.cli.errors import reporting

__all__ = ["schema"]


def schema(
    format: Annotated[
        Literal["json-schema", "typescript", "openapi"],
        typer.Option(
            "--format",
            "-f",
            help="json-schema: draft-07, a definition for each type. typescript: the same types, declared. "
            "openapi: every route of a server.",
        ),
    ] = "json-schema",
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Print the data types, or the routes, for other languages."""
    with reporting(debug=debug):
        text = _printed(format)
        print(text.rstrip("\n"), flush=True)


def _printed(format: str) -> str:
    if format == "openapi":
        from ors.server.openapi import static_document

        return json.dumps(json.loads(static_document()), indent=2, ensure_ascii=False)
    from ors.schema import json_schema, typescript

    return typescript() if format == "typescript" else json.dumps(json_schema(), indent=2, ensure_ascii=False)
