"""Planted faults are found at their very line, and each rule has one; of what is healthy nothing is said."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ors.testing import RULES
from ors.testing.check import report_on

from . import faults, planted, test_check_openenv

FILE = planted.__file__
MARK = re.compile(r"# FAULT ([\w-]+)")
DEFINED = re.compile(r"    (?:(?:async )?def (\w+)|(\w+): ClassVar)")


def marked() -> Iterator[tuple[str, str, str, int]]:
    """The class, the rule, the method and the line of each fault."""
    cls = method = ""
    for number, line in enumerate(Path(FILE).read_text("utf-8").splitlines(), 1):
        if found := re.match(r"class (\w+)", line):
            cls = found[1]
        elif found := DEFINED.match(line):
            method = found[1] or found[2]
        if found := MARK.search(line):
            yield cls, found[1], method, number


FAULTS = list(marked())


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    planted.HELD.set()
    for file in planted.NeverCloses.opened:
        file.close()
    planted.NeverCloses.opened.clear()


@pytest.mark.parametrize(("name", "rule", "method", "line"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_a_fault_is_found_at_its_line(name: str, rule: str, method: str, line: int) -> None:
    planted.HELD.clear()
    report = report_on(getattr(planted, name), samples=3, new_process=False, timeout_s=1.5 if rule == "hangs" else 60)
    found = [complaint for complaint in report.complaints if complaint.rule.id == rule]
    assert [(one.method, one.file, one.line) for one in found] == [(f"{name}.{method}", FILE, line)], str(report)
    others = {one.rule.id for one in report.complaints if one.level != "note"} - {rule}
    assert others <= FOLLOWING.get(name, set()), str(report)


FOLLOWING = {
    "AsksBeforeReset": {"index"},
    "HangingInALoop": {"blocking"},
    "Hole": {"prompt-answer"},  # of the tasks before the hole, whose answers stand in the question
    "RaisesSecret": {"tool-raises"},
}
"""Rules that a fault breaks beside its own."""


def test_every_rule_has_a_fault() -> None:
    openenv = {"reset", "step", "state", "close", "reward"}
    assert openenv <= {rule for rule in RULES if re.search(rf'"{rule}"', Path(test_check_openenv.__file__).read_text())}
    with_faults = {rule for _, rule, _, _ in FAULTS} | {cls.RULE for cls in faults.FAULTS} | openenv
    assert with_faults == set(RULES)


@pytest.mark.parametrize("cls", [planted.Walk, planted.ForOneAtATime])
def test_nothing_is_said_of_a_healthy_one(cls: type) -> None:
    report = report_on(cls)
    assert report.complaints == []
    assert {"reset-again", "step-after-done", "leak-tasks", "order-process"} <= {*report.checked}
    assert report.skipped.keys() <= {"shared-state"}


@pytest.mark.parametrize("cls", [planted.Drawing, planted.Rolling, planted.Choosing])
def test_nothing_is_said_of_what_only_looks_like_a_fault(cls: type) -> None:
    state = random.getstate()
    report = report_on(cls, new_process=False)
    assert report.complaints == []
    assert report.skipped.keys() == ({"shared-state"} if cls is planted.Rolling else set())
    assert random.getstate() == state


@pytest.mark.parametrize("cls", [planted.Hanging, planted.HangingInALoop])
def test_code_that_hangs_ends_the_check_and_nothing_else(cls: type, capsys: pytest.CaptureFixture[str]) -> None:
    planted.HELD.clear()
    sleep = time.sleep
    begun = time.monotonic()
    report = report_on(cls, samples=2, timeout_s=1.5)
    assert time.monotonic() - begun < 30
    assert [complaint.rule.id for complaint in report.of("error")] == ["hangs"]
    # what was put in the places of others is gone, although that code still runs
    assert time.sleep is sleep
    print("heard")
    assert capsys.readouterr().out == "heard\n"
    assert report_on(faults.Healthy, samples=2, new_process=False).complaints == []


def test_a_secret_is_not_in_the_report_of_it() -> None:
    secret = "sk-a-key-of-somebody"
    report = report_on(planted.RaisesSecret, samples=2, new_process=False, secrets={"judge_key": secret})
    assert {complaint.rule.id for complaint in report.of("error")} == {"secret-output"}
    assert secret not in str(report)
    assert "[judge_key]" in str(report)
