"""Every fault is found by the rule that it breaks, at its own line; of healthy environments nothing is said."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ors.testing import RULES, examine

from . import faults, healthy

SOURCE = Path(faults.__file__).read_text("utf-8").splitlines()
MARK = re.compile(r"# FAULT ([\w-]+)(?: (\w+)\.(\w+))?$")


def marked() -> Iterator[tuple[str, str, str, int]]:
    """The class, the rule, the method and the line of each fault."""
    cls = method = ""
    for number, line in enumerate(SOURCE, 1):
        if found := re.match(r"class (\w+)", line):
            cls, method = found[1], ""
        elif found := re.match(r"    (?:(?:async )?def (\w+)|(\w+): ClassVar)", line):
            method = found[1] or found[2]
        if found := MARK.search(line):
            yield found[2] or cls, found[1], found[3] or method, number


FAULTS = list(marked())


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    for process in faults.LEFT[1:]:
        process.communicate(b"\n")
    del faults.LEFT[1:]
    for cls in (faults.LeavesFiles, faults.NeverCloses):
        for file in cls.opened.values():
            file.close()
        cls.opened.clear()


@pytest.mark.parametrize(("name", "rule", "method", "line"), FAULTS, ids=[f"{fault[1]}-{fault[0]}" for fault in FAULTS])
def test_a_fault_is_found(name: str, rule: str, method: str, line: int) -> None:
    cls = getattr(faults, name)
    options: dict[str, Any] = {"timeout_s": 0.5} if cls is faults.Hanging else {}
    # a process for each would take long; those that are healthy, and those whose fault it shows, are asked of one
    skip = () if rule == "task-order" else "task-order"
    report = examine(cls, tasks=2, skip=skip, **options)
    found = [complaint for complaint in report.complaints if complaint.rule == rule]
    assert found, report.complaints
    assert [(complaint.method, complaint.line) for complaint in found] == [(f"{name}.{method}", line)]
    assert found[0].file == inspect.getsourcefile(faults)
    assert found[0].level == RULES[rule].level
    assert found[0].mend
    # nothing else is said of it, but what follows from it
    others = {complaint.rule for complaint in report.complaints if complaint.level != "note"} - {rule}
    assert others <= FOLLOWS.get(name, set()), report.complaints


FOLLOWS = {"RaisesSecret": {"tool-raises"}}


def test_there_are_many() -> None:
    assert len(FAULTS) >= 60
    unplanted = set(RULES) - {rule for _, rule, _, _ in FAULTS}
    assert unplanted == set()


@pytest.mark.parametrize("cls", [healthy.Healthy, healthy.Busy, healthy.Walk])
def test_nothing_is_said_of_what_is_healthy(cls: type) -> None:
    report = examine(cls)
    assert report.complaints == ()
    assert len(report.passed) > 20
