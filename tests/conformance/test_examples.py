"""Every environment under examples/ passes: over the network, as a stranger finds it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from example_environments import NAMES, load, secrets_of
from ors.conformance import check_server, rows_of
from served import Served


@pytest.mark.parametrize("name", NAMES)
def test_an_example_passes(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    classes = load(name, monkeypatch, tmp_path)
    served = Served(classes)
    try:
        options = {"timeout_s": 30, "max_requests": 5000, "secrets": secrets_of(name)}
        report = asyncio.run(check_server(served.url, rows_of("ors"), **options))
        assert [(f.row.id, f.env, f.reason) for f in report.findings if f.status == "fail"] == []
        assert report.environments == [cls.name().lower() for cls in classes]
        assert report.count("pass") > 120
        assert served.status()["sessions"] == 0
        assert report.notes == []
    finally:
        served.stop()
