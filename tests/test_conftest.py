"""Where skips are forbidden, a skip in a test, in a fixture and at import fails; an expected failure does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

IN_A_TEST = """
import pytest

@pytest.fixture
def missing():
    pytest.skip("no node")

def test_body():
    pytest.skip("no node")

def test_fixture(missing):
    pass

@pytest.mark.skipif(True, reason="no node")
def test_mark():
    pass

@pytest.mark.xfail(reason="known")
def test_expected():
    raise AssertionError

def test_passes():
    pass
"""
AT_IMPORT = 'import pytest\npytest.skip("no node", allow_module_level=True)\n'


@pytest.mark.parametrize(
    ("forbid", "summary"),
    [("1", "1 failed, 1 passed, 1 xfailed, 3 errors"), ("0", "1 passed, 4 skipped, 1 xfailed")],
)
def test_skips(tmp_path: Path, forbid: str, summary: str) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_inside.py").write_text(IN_A_TEST)
    (tmp_path / "test_import.py").write_text(AT_IMPORT)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors"],
        cwd=tmp_path,
        env={**os.environ, "ORS_FORBID_SKIPS": forbid},
        capture_output=True,
        text=True,
        check=False,
    )
    assert summary in run.stdout, run.stdout
    assert run.returncode == int(forbid)
    if forbid == "1":
        assert "this was skipped: Skipped: no node" in run.stdout
