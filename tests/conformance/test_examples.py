"""Every environment under examples/ passes: over the network, as a stranger finds it."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path

import pytest

import formulas
from ors.cli.targets import load_targets
from ors.conformance import check_server, rows_of
from served import Served

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if "(Environment)" in path.read_text("utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_passes(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if name in ("reasoning_gym", "anagrams") and importlib.util.find_spec("reasoning_gym") is None:
        pytest.skip("reasoning-gym is not installed: it needs a C compiler")
    if name == "latex_ocr":
        monkeypatch.setenv("LATEX_OCR", formulas.save(tmp_path))
    # an example may be named as a package that an earlier test has loaded
    for loaded in [other for other in sys.modules if other.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, loaded)
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
