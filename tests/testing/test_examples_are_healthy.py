"""Nothing is said of the environments under examples/, with every rule looked at that can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from example_environments import NAMES, load, secrets_of
from ors.testing.check import report_on


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_said_of_an_example(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for number, cls in enumerate(load(name, monkeypatch, tmp_path)):
        # a process for each of a dozen classes of one file would show nothing more
        report = report_on(cls, secrets=secrets_of(name), samples=3, new_process=number == 0)
        assert report.of("error") + report.of("warning") == [], str(report)
        assert report.skipped == {}
        assert {"setup", "shared-state", "tool-output", "secret-output"} <= {*report.checked}
