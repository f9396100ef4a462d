"""The texts of the protocols, where they are found: taken apart into sentences."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

FILES = {
    "data-types": "ors-data-types.md",
    "tasks-and-splits": "ors-tasks-and-splits.md",
    "task-api": "openenv-task-api.md",
}
STATES = re.compile(r"\b(must|should|required|returns|defaults?)\b", re.IGNORECASE)
"""What a sentence has that states something."""


def folder_of_texts() -> Path | None:
    """Where the texts are, by the environment variable ORS_SPECIFICATION_TEXTS."""
    named = os.environ.get("ORS_SPECIFICATION_TEXTS")
    return Path(named) if named else None


def units(text: str) -> Iterator[tuple[str, str]]:
    """Each sentence, item, row of a table and line of code, with the heading above it."""
    section, code = "", False
    for line in text.splitlines():
        if line.startswith("```"):
            code = not code
        elif not code and (heading := re.fullmatch(r"#+ (.*)", line)):
            section = heading[1].strip()
        elif code or line.startswith("|"):
            yield section, line.strip()
        else:
            item = re.sub(r"^\s*(?:[*-]|\d+[.])\s+", "", line).strip()
            for sentence in re.split(r"(?<=[.!?])(?:\*\*)?\s+(?=[A-Z`*\[])", item):
                if sentence:
                    yield section, sentence


def normal(text: str) -> str:
    """A text without its marks and without comments in its code."""
    lines = (re.sub(r"// \d[.].*", "", line) for line in text.splitlines())
    return re.sub(r"[\s*\\>]+", " ", " ".join(lines)).strip()
