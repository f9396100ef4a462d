"""Small faults of an OpenEnv server, each found by its row; and a server without them passes every row."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from ors.conformance import Report, check_server, probe_source, rows_of

from .faults_openenv import FAULTS, Faulty

ROWS = rows_of("openenv")
NEVER_FAULTY = {"OPENENV-REFUSAL-009"}
"""The probe takes more than one session."""


class Serving:
    """The probe, with a layer in front that makes one fault."""

    def __init__(self, folder: Path) -> None:
        file = folder / "openenv_probe_in_test.py"
        file.write_text(probe_source("ors.openenv"), "utf-8")
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
        self.layer = Faulty(module.app)
        config = uvicorn.Config(self.layer, host="127.0.0.1", port=0, log_config=None, ws="websockets-sansio")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive()
            self.thread.join(0.01)
        self.url = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(30)

    def visit(self, fault: Any = None, *only: str, timeout_s: float = 5.0) -> Report:
        self.layer.fault = fault
        try:
            return asyncio.run(check_server(self.url, ROWS, protocol="openenv", only=only, timeout_s=timeout_s))
        finally:
            self.layer.fault = None


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(tmp_path_factory.mktemp("probe"))
    try:
        yield serving
    finally:
        serving.stop()


def test_without_a_fault_every_row_passes(serving: Serving) -> None:
    report = serving.visit()
    assert [(f.row.id, f.status, f.reason) for f in report.findings if f.status != "pass"] == [
        ("OPENENV-REFUSAL-009", "not applicable", "the server takes more than one session")
    ]
    assert report.notes == []
    assert report.environments == ["conformanceprobe"]


def test_every_row_has_a_fault() -> None:
    assert {row.id for row in ROWS if row.check} - {row for row, _, _ in FAULTS} == NEVER_FAULTY


@pytest.mark.parametrize(
    ("row", "fault"), [(row, fault) for row, _, fault in FAULTS], ids=[f"{r} {n}" for r, n, _ in FAULTS]
)
def test_a_fault_is_found_by_its_row(serving: Serving, row: str, fault: Any) -> None:
    (finding,) = serving.visit(fault, row, timeout_s=1.0).findings
    assert (finding.row.id, finding.status) == (row, "fail"), finding.reason
    assert finding.reason
