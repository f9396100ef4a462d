"""`check_environment`: each planted fault is found by its rule, at its line; healthy environments are left in peace."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from pathlib import Path
from typing import Any

import pytest

from ors.testing import RULES, CheckReport, EnvironmentCheckError, EnvironmentCheckWarning, check_environment
from ors.testing.check import report_on

from . import faults
from .faults import FAULTS, AwaitsWell, Healthy, Listing


def test_there_are_enough_faults_and_every_rule_of_these_environments_has_one() -> None:
    assert len(FAULTS) >= 25
    of_openenv = {"reset", "step", "state", "close"}
    unplanted = RULES.keys() - {cls.RULE for cls in FAULTS} - of_openenv
    # these two need a fault that is shown with other means
    assert unplanted == {"task-methods", "tool-format"}


@pytest.mark.parametrize("cls", FAULTS, ids=lambda cls: cls.__name__)
def test_a_fault_is_found_where_it_is(cls: Any) -> None:
    report = report_on(cls, splits=["train"], samples=4, new_process=cls.RULE == "order-process")
    found = [complaint for complaint in report.complaints if complaint.rule.id == cls.RULE]
    assert found, str(report)
    complaint = found[0]
    named = cls.METHOD if cls.RULE == "blocking" else f"{cls.__name__}.{cls.METHOD}" if cls.METHOD else cls.__name__
    assert complaint.method == named
    assert cls.WORDS in complaint.message
    lines, first = inspect.getsourcelines(cls)
    if (
        cls.RULE not in ("leak-threads", "leak-files", "leak-processes")
        and complaint.method != f"{cls.__name__}.teardown"
    ):
        assert complaint.file == faults.__file__
        assert complaint.line is not None
        inherited = cls.METHOD and cls.METHOD not in vars(cls) and cls.RULE != "blocking"
        assert inherited or first <= complaint.line <= first + len(lines)
    # what else is said follows from it
    errors = {c.rule.id for c in report.complaints if c.level == "error"} - {cls.RULE}
    assert errors <= FOLLOWING.get(cls.__name__, set()), str(report)


FOLLOWING: dict[str, set[str]] = {}
"""Rules that a fault breaks beside its own."""


@pytest.mark.parametrize("cls", [Healthy, Listing, AwaitsWell], ids=lambda cls: cls.__name__)
def test_nothing_is_said_of_a_healthy_one(cls: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = check_environment(cls)
    assert report.complaints == []
    assert report.skipped == {}
    assert {"order-process", "shared-state", "blocking", "task-round-trip"} <= {*report.checked}


def test_an_error_is_raised_with_everything_that_was_found() -> None:
    with pytest.raises(EnvironmentCheckError) as raised:
        check_environment(faults.NegativeIndex, new_process=False)
    assert isinstance(raised.value, AssertionError)
    assert isinstance(raised.value.report, CheckReport)
    said = str(raised.value)
    assert "NegativeIndex: 1 error" in said
    assert "faults.py:" in said
    assert "raise IndexError" in said


def test_a_warning_is_a_warning() -> None:
    with pytest.warns(EnvironmentCheckWarning, match="tool-doc: NoDocstring.skip"):
        report = check_environment(faults.NoDocstring, new_process=False)
    assert report.ok
    assert [complaint.rule.id for complaint in report.complaints] == ["tool-doc"]


def test_a_rule_can_be_left_out() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = check_environment(faults.NoDocstring, skip=["tool-doc"], new_process=False)
    assert report.complaints == []
    assert "tool-doc" not in report.checked


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((int,), TypeError, "is no environment"),
        (("Healthy",), TypeError, "give the class"),
    ],
)
def test_what_is_no_environment_is_refused(arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        check_environment(*arguments)


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no rule 'nothing'"):
        check_environment(Healthy, skip=["nothing"])
    with pytest.raises(ValueError, match="samples"):
        check_environment(Healthy, samples=1)


def test_it_runs_where_a_loop_is_running_already() -> None:
    async def test() -> CheckReport:
        return check_environment(Healthy, new_process=False, samples=2)

    assert asyncio.run(test()).ok


def test_a_class_in_a_function_is_checked_as_far_as_it_can_be() -> None:
    class Local(Healthy):
        """Only here."""

    report = check_environment(Local, samples=2)
    assert "new process" in report.skipped["order-process"]


def test_whatever_a_server_can_write_is_a_task() -> None:
    class Rich(Healthy):
        """Its tasks hold more than JSON's own kinds."""

        @classmethod
        def get_task(cls, split: str, index: int) -> Any:
            return {**super().get_task(split, index), "at": Path("a/b"), "of": {3, 1}, "raw": b"abc"}

        def get_prompt(self) -> Any:
            # an episode gets what a client would have sent
            assert (self.task_spec["at"], self.task_spec["of"], self.task_spec["raw"]) == ("a/b", [1, 3], "YWJj")
            return super().get_prompt()

    report = report_on(Rich, samples=2, new_process=False)
    assert {complaint.rule.id for complaint in report.complaints} == {"task-round-trip"}


def test_a_time_out_of_the_authors_is_told_as_it_is() -> None:
    class Late(Healthy):
        """Its setup gives up."""

        async def setup(self) -> None:
            raise TimeoutError("no answer from the game")

    (complaint,) = report_on(Late, samples=2, new_process=False).complaints
    assert (complaint.rule.id, complaint.message) == ("setup", "it raises TimeoutError: no answer from the game")


def test_it_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    check_environment(Healthy, new_process=False, samples=2)
    assert capsys.readouterr() == ("", "")


def test_every_rule_is_on_the_page() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "checking.md").read_text("utf-8")
    for rule in RULES.values():
        assert f"| `{rule.id}` | {rule.level} | {rule.text} | {rule.mend} |" in page
