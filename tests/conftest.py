"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

FORBID_SKIPS = os.environ.get("ORS_FORBID_SKIPS", "") not in ("", "0")
"""Where everything that tests need is installed, a skipped test is a test that nobody notices is gone."""


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    return _refuse_skip(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    return _refuse_skip(report)


def _refuse_skip(report: Any) -> Any:
    expected_to_fail = hasattr(report, "wasxfail")
    if FORBID_SKIPS and report.outcome == "skipped" and not expected_to_fail:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"ORS_FORBID_SKIPS is set, and this was skipped: {reason}"
    return report
