"""The page for operators lists every setting as the code has it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from ors.settings import Settings

PAGE = Path(__file__).resolve().parents[1] / "docs" / "operating.md"


def shown(value: Any) -> str:
    """A default, for people."""
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and value >= 1 << 20 and value % (1 << 20) == 0:
        return f"{value >> 30} GiB" if value % (1 << 30) == 0 else f"{value >> 20} MiB"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,g}" if value < 1000 else f"{value:,.0f}"
    return f"`{value}`"


def table() -> str:
    """The settings as a table; `description` comes from the code, where a setting without one would stand out."""
    rows = ["| Setting | Default | What it does |", "| --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        assert field.description, f"the setting {name} has no description"
        rows.append(f"| `{name}` | {shown(field.default)} | {field.description} |")
    return "\n".join(rows) + "\n"


def test_the_page_has_the_table() -> None:
    expected = table()
    assert expected in PAGE.read_text("utf-8"), f"docs/operating.md must hold:\n\n{expected}"


def test_every_option_and_variable_on_the_page_exists() -> None:
    page = PAGE.read_text("utf-8")
    told = "".join(
        subprocess.run(
            [sys.executable, "-m", "ors.cli", command, "--help"], capture_output=True, text=True, check=True
        ).stdout
        for command in ("serve", "schema")
    )
    options = set(re.findall(r"--[a-z][a-z-]*", page))
    assert {"--host", "--port", "--insecure", "--reload", "--format", "--max-sessions"} <= options
    assert options - set(re.findall(r"--[a-z][a-z-]*", told)) == set()
    variables = set(re.findall(r"ORS_[A-Z][A-Z_]*", page)) - {"ORS_BUILD_SHA"}
    assert variables - set(re.findall(r"ORS_[A-Z][A-Z_]*", told)) == set()
