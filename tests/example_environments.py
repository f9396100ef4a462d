"""The environments under examples/, loaded as the command line loads them, with the data and secrets that they need."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

import formulas
from ors.cli.targets import load_targets

__all__ = ["NAMES", "load", "secrets_of"]

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if "(Environment)" in path.read_text("utf-8"))


def load(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """The classes of an example; what is kept of its tasks is kept in the folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if name in ("reasoning_gym", "anagrams") and importlib.util.find_spec("reasoning_gym") is None:
        pytest.skip("reasoning-gym is not installed: it needs a C compiler")
    if name == "latex_ocr":
        monkeypatch.setenv("LATEX_OCR", formulas.save(tmp_path))
    # an example may be named as a package that an earlier test has loaded
    for loaded in [other for other in sys.modules if other.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, loaded)
    return load_targets([str(EXAMPLES / f"{name}.py")])


def secrets_of(name: str) -> dict[str, str]:
    """What its sessions need."""
    return {"answer_key": "the-key-of-an-example"} if name == "sealed_answers" else {}
