"""The servers that there are, graded by the check: what is kept of each is what comes today."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import grading
from .grading import DOCUMENTS, GRADES, PAGE, ROWS, SERVERS, SHORT, Report, found, graded, grades, page
from .peers import PINS


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    return graded(tmp_path_factory.mktemp("graded"))


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_does_what_is_kept_of_it(server: str, reports: dict[str, Report]) -> None:
    report = reports[server]
    assert found(report) == grades()[server]["found"]
    # the probe and its second environment were both found by the check itself
    assert report.environments == list(SERVERS[server].environments)
    assert report.notes == []
    assert report.requests < 1000


def test_ours_fails_none() -> None:
    assert grades()["ors-kit"]["found"] == {}
    assert all(what.startswith("not applicable") for what in grades()["ors-kit, OpenEnv"]["found"].values())


@pytest.mark.parametrize("server", SERVERS)
def test_every_failure_has_its_reason_and_nothing_else_has(server: str) -> None:
    kept = grades()[server]
    failed = {id for id, what in kept["found"].items() if what.startswith("fail: ")}
    assert set(kept["why"]) == failed
    assert all(len(why) > 20 for why in kept["why"].values())
    about = SERVERS[server]
    assert kept["version"] == PINS.get(about.peer or "")
    assert set(kept["found"]) <= {row.id for row in ROWS[about.protocol] if row.check}


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "python tests/interop/grading.py writes it anew"


def test_a_change_of_the_data_changes_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    changed = tmp_path / "grades.json"
    changed.write_text(GRADES.read_text("utf-8").replace('"ORS-CALL-017"', '"ORS-CALL-016"'), "utf-8")
    monkeypatch.setattr(grading, "GRADES", changed)
    assert page() != PAGE.read_text("utf-8")


def test_every_document_has_a_short_name() -> None:
    assert SHORT.keys() == DOCUMENTS.keys()
