"""The examples of the Open Reward Standard's text (Data Types, Tasks & Splits), each with the type it is an example of.

Where the text leaves something out (`{...}`, `...`), the copy holds an empty object or nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("data")


@dataclass(frozen=True)
class Example:
    """One value of one type."""

    type: str
    where: str
    value: Any


def _load() -> list[Example]:
    """Every example; one of `Split[]` is as many of `Split`, and what is of two types counts for both."""
    found = []
    for entry in json.loads((DATA / "ors_examples.json").read_text("utf-8")):
        name, where = entry["type"], f"{entry['page']}/{entry['section']}"
        values = entry["value"] if name.endswith("[]") else [entry["value"]]
        for value in values:
            found.append(Example(name.removesuffix("[]"), where, value))
            if name in ("RunToolSuccess", "RunToolError"):
                found.append(Example("RunToolOutput", where, value))
    return found


EXAMPLES = _load()
IDS = [f"{example.type}-{index}" for index, example in enumerate(EXAMPLES)]
TOOL_OUTPUT_SCHEMA = json.loads((DATA / "ors_tool_output_schema.json").read_text("utf-8"))
"""The JSON Schema that the text gives for `ToolOutput`."""
