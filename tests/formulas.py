"""A data set of two formulas and their pictures, with the columns of the guide's LaTeX OCR; no network is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

__all__ = ["FORMULAS", "save"]

FORMULAS = [r"\frac { a } { b }", r"x ^ { 2 } + y ^ { 2 }"]


def save(folder: Path) -> str:
    """Save it where the example is told to look; the first picture is red, the second blue."""
    datasets = pytest.importorskip("datasets")
    from PIL import Image

    pictures = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    rows = datasets.Dataset.from_dict({"image": pictures, "text": FORMULAS}).cast_column("image", datasets.Image())
    datasets.DatasetDict({"train": rows, "test": rows}).save_to_disk(str(folder / "formulas"))
    return str(folder / "formulas")
