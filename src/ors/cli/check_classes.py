"""`ors check TARGET`: the check that authors run, on classes, without a network."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import typer

from ors.cli.errors import NOT_ALL_WELL, CommandError
from ors.cli.showing import console, plain, table, write_file

if TYPE_CHECKING:
    from ors.testing import CheckReport, Complaint

__all__ = ["check_classes"]

_LEVELS = {"must": ("error",), "should": ("error", "warning"), "may": ("error", "warning", "note")}
_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def check_classes(
    source: str,
    *,
    env: str | None,
    level: str,
    only: Sequence[str],
    secrets: Mapping[str, str],
    as_json: bool,
    junit: Path | None,
    markdown: Path | None,
) -> None:
    """Check every environment of a target, or the one that is named. Exits with 3 when a rule is broken."""
    from ors.cli.targets import load_targets
    from ors.testing import RULES
    from ors.testing.check import report_on

    for rule in only:
        if rule not in RULES:
            raise CommandError(f"--only {rule}: there is no such rule; they are {', '.join(RULES)}")
    classes = [cls for cls in load_targets([source]) if env is None or cls.__name__.lower() == env.lower()]
    if not classes:
        raise CommandError(f"--env {env}: there is no such environment in '{source}'")
    skip = [rule for rule in RULES if only and rule not in only]
    reports = [report_on(cls, secrets=secrets, skip=skip) for cls in classes]
    for report in reports:
        report.complaints = [complaint for complaint in report.complaints if complaint.level in _LEVELS[level]]
    for path, make in ((junit, _as_junit), (markdown, _as_markdown)):
        if path is not None:
            write_file(path, make(reports))
    if as_json:
        sys.stdout.write(json.dumps([_as_data(report) for report in reports], indent=2, ensure_ascii=False) + "\n")
    else:
        _show(reports)
    if any(report.complaints for report in reports):
        raise typer.Exit(NOT_ALL_WELL)


def _show(reports: Sequence[CheckReport]) -> None:
    from rich.text import Text

    screen = console()
    rows = [
        (
            Text(complaint.level, style=_COLOURS[complaint.level]),
            complaint.rule.id,
            plain(complaint.method),
            plain(f"{complaint.message}. {complaint.rule.mend}."),
        )
        for report in reports
        for complaint in report.complaints
    ]
    if rows:
        screen.print(table(("Level", "Rule", "Where", "What is wrong, and what to do"), rows))
        for report in reports:
            for complaint in report.complaints:
                if complaint.place:
                    screen.print(f"  {plain(complaint.method)}: {plain(complaint.place)}", soft_wrap=True)
    for report in reports:
        counts = [(len(report.of(level)), level) for level in _LEVELS["may"]]  # type: ignore[arg-type]
        found = ", ".join(f"{count} {level}{'s' if count > 1 else ''}" for count, level in counts if count)
        screen.print(
            f"\n{plain(report.environment)}: {found or 'nothing to complain of'}; "
            f"{len(report.checked)} rules in {report.seconds:.1f} s.",
            soft_wrap=True,
        )
        for rule, why in report.skipped.items():
            screen.print(f"  {rule} could not be looked at: {plain(why)}", soft_wrap=True)


def _as_data(report: CheckReport) -> dict[str, Any]:
    return {
        "environment": report.environment,
        "ok": report.ok,
        "complaints": [_complaint(complaint) for complaint in report.complaints],
        "checked": report.checked,
        "skipped": report.skipped,
        "seconds": round(report.seconds, 3),
    }


def _complaint(complaint: Complaint) -> dict[str, Any]:
    return {
        "rule": complaint.rule.id,
        "level": complaint.level,
        "message": complaint.message,
        "mend": complaint.rule.mend,
        "method": complaint.method,
        "file": complaint.file,
        "line": complaint.line,
    }


def _as_junit(reports: Sequence[CheckReport]) -> str:
    from ors.conformance.report import xml_text

    suites = ElementTree.Element("testsuites", name="ors check")
    for report in reports:
        broken = {complaint.rule.id for complaint in report.complaints}
        suite = ElementTree.SubElement(
            suites,
            "testsuite",
            name=report.environment,
            tests=str(len(report.checked) + len(report.skipped)),
            failures=str(len(broken)),
            skipped=str(len(report.skipped)),
            time=f"{report.seconds:.3f}",
        )
        for rule in [*report.checked, *report.skipped]:
            case = ElementTree.SubElement(suite, "testcase", classname=report.environment, name=rule)
            for complaint in report.complaints:
                if complaint.rule.id == rule:
                    failure = ElementTree.SubElement(case, "failure", message=xml_text(complaint.message))
                    failure.text = xml_text(str(complaint))
            if rule in report.skipped:
                ElementTree.SubElement(case, "skipped", message=xml_text(report.skipped[rule]))
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _as_markdown(reports: Sequence[CheckReport]) -> str:
    lines: list[str] = []
    for report in reports:
        lines += [f"# {report.environment}", "", f"{len(report.checked)} rules.", ""]
        if report.complaints:
            lines += ["| Level | Rule | Where | What is wrong | What to do |", "| --- | --- | --- | --- | --- |"]
        for complaint in report.complaints:
            cells = (
                complaint.level,
                complaint.rule.id,
                f"{complaint.method} {complaint.place}",
                complaint.message,
                complaint.rule.mend,
            )
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)
