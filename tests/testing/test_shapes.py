"""Public environments, in shape: nothing is said of them, but what is so."""

from __future__ import annotations

from typing import Any

import pytest

from ors.testing.check import report_on

from . import shapes


@pytest.mark.parametrize("cls", shapes.SHAPES, ids=lambda cls: cls.__name__)
def test_only_what_is_so_is_said_of_it(cls: Any) -> None:
    secrets = {"openai_api_key": "sk-of-nobody-at-all"} if cls is shapes.PublicGoods else {}
    report = report_on(cls, samples=4, secrets=secrets, new_process=cls in (shapes.Houses, shapes.Sums))
    assert {complaint.rule.id for complaint in report.complaints} == cls.SAID, str(report)
    assert {"setup", "tool-output", "shared-state", "leak-files", "secret-output"} <= {*report.checked}
    assert report.skipped == {}


def test_they_are_of_at_least_five_repositories() -> None:
    assert len({cls.LIKE for cls in shapes.SHAPES}) >= 5
