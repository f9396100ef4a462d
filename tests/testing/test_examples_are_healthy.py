"""Nothing is said of the environments under examples/, with every rule looked at that can be."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

import formulas
from ors.cli.targets import load_targets
from ors.testing.check import report_on

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if "(Environment)" in path.read_text("utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_said_of_an_example(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if name in ("reasoning_gym", "anagrams") and importlib.util.find_spec("reasoning_gym") is None:
        pytest.skip("reasoning-gym is not installed: it needs a C compiler")
    if name == "latex_ocr":
        monkeypatch.setenv("LATEX_OCR", formulas.save(tmp_path))
    for loaded in [other for other in sys.modules if other.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, loaded)
    secrets = {"answer_key": "the-key-of-an-example"} if name == "sealed_answers" else {}
    for number, cls in enumerate(load_targets([str(EXAMPLES / f"{name}.py")])):
        # a process for each of a dozen classes of one file would show nothing more
        # the data that this test has for it are the same in both splits
        skip = ["split-overlap"] if name == "latex_ocr" else []
        report = report_on(cls, secrets=secrets, samples=3, new_process=number == 0, skip=skip)
        assert report.of("error") + report.of("warning") == [], str(report)
        assert report.skipped == {}
        assert {"setup", "shared-state", "tool-output", "secret-output"} <= {*report.checked}
