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
from ors.cli.showing import console, plain, table

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
    timeout_s: float,
    as_json: bool,
    junit: Path | None,
    markdown: Path | None,
) -> None:
    """Check every environment of a target, or the one that is named. Exits with 3 when a rule is broken."""
    from ors.cli.targets import load_targets
    from ors.testing import RULES
    from ors.testing.check import report_on

    chosen: set[str] = set()
    for one in only:
        found = {rule for rule in RULES if rule == one.lower() or rule.startswith(f"{one.lower()}-")}
        if not found:
            raise CommandError(f"--only {one}: there is no such rule; they are {', '.join(RULES)}")
        chosen |= found
    subjects = [_subject(value) for value in load_targets([source])]
    subjects = [one for one in subjects if env is None or env.lower() in (one[0].__name__.lower(), one[1].lower())]
    if not subjects:
        raise CommandError(f"--env {env}: there is no such environment in '{source}'")
    skip = [rule for rule in RULES if chosen and rule not in chosen]
    reports = [
        report_on(cls, secrets=secrets, skip=skip, timeout_s=timeout_s, **options) for cls, _, options in subjects
    ]
    for report in reports:
        report.complaints = [complaint for complaint in report.complaints if complaint.level in _LEVELS[level]]
    for path, make in ((junit, _as_junit), (markdown, _as_markdown)):
        if path is not None:
            try:
                path.write_text(make(reports), "utf-8")
            except OSError as exc:
                raise CommandError(f"{path} cannot be written: {exc.strerror}") from exc
    if as_json:
        sys.stdout.write(json.dumps([_as_data(report) for report in reports], indent=2, ensure_ascii=False) + "\n")
    else:
        _show(reports)
    if any(report.complaints for report in reports):
        raise typer.Exit(NOT_ALL_WELL)


def _subject(value: Any) -> tuple[type[Any], str, dict[str, Any]]:
    """The class of an environment, its name, and what else is known of it. Raises CommandError."""
    from ors.server.entries import Entry

    entry = getattr(value, "entry", None)
    if not isinstance(entry, Entry):
        name = value.name() if callable(getattr(value, "name", None)) else value.__name__
        return value, str(name), {}
    from ors.adapters.openenv.factory import Factory

    cls = Factory(entry.make).cls
    if cls is None:
        raise CommandError("what makes this environment is a function that does not say what it makes: annotate it")
    return cls, str(entry.options.get("name") or cls.__name__), {"make": entry.make, "action_cls": entry.action_cls}


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
                    failure = ElementTree.SubElement(case, "failure", message=_xml(complaint.message))
                    failure.text = _xml(str(complaint))
            if rule in report.skipped:
                ElementTree.SubElement(case, "skipped", message=_xml(report.skipped[rule]))
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _xml(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)


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
