"""Small faults, one at a time, each found by the row that it belongs to; and a server without them passes every row."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from . import faults_calls, faults_discovery, faults_sessions  # noqa: F401 - they declare the faults
from .mutating import FAULTS, Fault
from .serving import ROWS, ServedProbe, visit, visiting

OF_ROWS = [one for one in FAULTS.values() if one.row != "ORS-TEST"]
QUICK = [one for one in OF_ROWS if not one.options.get("slow")]
SLOW = [one for one in OF_ROWS if one.options.get("slow")]
NEVER_FAULTY = {"ORS-REPLAY-007"}
"""It takes a minute."""


@pytest.fixture(scope="module")
def served() -> Iterator[ServedProbe]:
    with ServedProbe() as server:
        yield server


def options(one: Fault) -> dict[str, float]:
    return {key: value for key, value in one.options.items() if key in ("timeout_s",)}


def test_without_a_fault_every_row_passes_and_nothing_is_left_behind(served: ServedProbe) -> None:
    before = served.status()
    report = visit(served.url)
    assert [(f.row.id, f.env, f.reason) for f in report.findings if f.status == "fail"] == []
    assert [f.row.id for f in report.findings if f.status == "not applicable"] == ["ORS-REPLAY-007"]
    assert report.notes == []
    after = served.status()
    assert (after["sessions"], after["calls"]) == (0, 0)
    assert after["opened"] - before["opened"] > 20


def test_every_row_has_a_fault() -> None:
    assert {row.id for row in ROWS if row.check} - {one.row for one in OF_ROWS} == NEVER_FAULTY
    assert len(OF_ROWS) >= 60


@pytest.mark.parametrize("one", QUICK, ids=lambda one: one.name)
def test_a_fault_is_found_by_its_row(served: ServedProbe, one: Fault) -> None:
    (finding,) = visit(served.url, one.row, fault=one.name, **options(one)).findings
    assert (finding.row.id, finding.status) == (one.row, "fail"), finding.reason
    assert finding.reason
    assert served.status()["sessions"] == 0


def test_faults_that_take_time_are_found_by_their_rows(served: ServedProbe) -> None:
    async def all_at_once() -> list[tuple[str, str]]:
        reports = await asyncio.gather(*(visiting(served.url, one.row, fault=one.name) for one in SLOW))
        return [(report.findings[0].row.id, report.findings[0].status) for report in reports]

    assert asyncio.run(all_at_once()) == [(one.row, "fail") for one in SLOW]
