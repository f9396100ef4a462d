"""Every environment under examples/ passes: over the network, as a stranger finds it."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import pytest

from ors.cli.targets import load_targets
from ors.conformance import check_server, rows_of
from served import Served

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if "(Environment)" in path.read_text("utf-8"))


def save_formulas(folder: Path) -> Path:
    """A data set with the columns of the one that the example would load from the network."""
    datasets = pytest.importorskip("datasets")
    image = pytest.importorskip("PIL.Image")
    rows = {"image": [image.new("RGB", (8, 8), colour) for colour in ("red", "blue")], "text": ["x", "x ^ { 2 }"]}
    split = datasets.Dataset.from_dict(rows).cast_column("image", datasets.Image())
    datasets.DatasetDict({"train": split, "test": split}).save_to_disk(str(folder))
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_an_example_passes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if name == "latex_ocr":
        monkeypatch.setenv("LATEX_OCR", str(save_formulas(tmp_path / "formulas")))
    if name in ("reasoning_gym", "anagrams") and importlib.util.find_spec("reasoning_gym") is None:
        pytest.skip("reasoning-gym is not installed: it needs a C compiler")
    classes = load_targets([str(EXAMPLES / f"{name}.py")])
    served = Served(classes)
    try:
        # it plays only with its key
        secrets = {"answer_key": "the-key-of-an-example"} if name == "sealed_answers" else {}
        report = asyncio.run(check_server(served.url, rows_of("ors"), timeout_s=30, max_requests=5000, secrets=secrets))
        assert [(f.row.id, f.env, f.reason) for f in report.findings if f.status == "fail"] == []
        assert report.environments == [cls.name().lower() for cls in classes]
        assert report.count("pass") > 120
        assert served.status()["sessions"] == 0
        assert report.notes == []
    finally:
        served.stop()
