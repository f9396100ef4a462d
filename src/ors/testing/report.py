"""The report of a check, as data and in the forms that programs and pages read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree

from ors.testing.complaints import LEVELS, Complaint, Level
from ors.testing.rules import RULES, Rule

__all__ = ["CheckReport", "as_json", "as_junit", "as_markdown"]


@dataclass(frozen=True)
class CheckReport:
    """What came of checking one environment.

    name: the environment's class. complaints: errors first. passed: ids of rules that were checked and hold.
    unseen: ids of rules that could not be checked, and why. seconds: how long it took.
    """

    name: str
    complaints: tuple[Complaint, ...]
    passed: tuple[str, ...]
    unseen: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def errors(self) -> tuple[Complaint, ...]:
        """The complaints that break training."""
        return self.of("error")

    @property
    def warnings(self) -> tuple[Complaint, ...]:
        """The complaints that are worth a look."""
        return self.of("warning")

    @property
    def notes(self) -> tuple[Complaint, ...]:
        """What could be better."""
        return self.of("note")

    @property
    def ok(self) -> bool:
        """Whether there are no errors; warnings and notes may be there."""
        return not self.errors

    def of(self, level: Level) -> tuple[Complaint, ...]:
        """The complaints of a level."""
        return tuple(complaint for complaint in self.complaints if complaint.level == level)

    def down_to(self, level: Level) -> CheckReport:
        """The same without the rules of lower levels."""
        kept = {id for id, rule in RULES.items() if LEVELS.index(rule.level) <= LEVELS.index(level)}
        return CheckReport(
            self.name,
            tuple(complaint for complaint in self.complaints if complaint.rule in kept),
            tuple(id for id in self.passed if id in kept),
            {id: why for id, why in self.unseen.items() if id in kept},
            self.seconds,
        )

    def findings(self) -> list[tuple[Rule, str, tuple[Complaint, ...], str]]:
        """Every rule in order, with `pass`, `fail` or `not applicable`, its complaints, and why it was not checked."""
        found = []
        for id, rule in RULES.items():
            broken = tuple(complaint for complaint in self.complaints if complaint.rule == id)
            if broken:
                found.append((rule, "fail", broken, ""))
            elif id in self.passed:
                found.append((rule, "pass", (), ""))
            elif id in self.unseen:
                found.append((rule, "not applicable", (), self.unseen[id]))
        return found


def as_json(reports: Sequence[CheckReport]) -> str:
    """Reports as JSON."""
    told = [
        {
            "environment": report.name,
            "ok": report.ok,
            "seconds": round(report.seconds, 3),
            "counts": {
                "pass": len(report.passed),
                "fail": len({complaint.rule for complaint in report.complaints}),
                "not applicable": len(report.unseen),
            },
            "rules": [
                {
                    "id": rule.id,
                    "level": rule.level,
                    "text": rule.text,
                    "status": status,
                    "reason": why or "; ".join(complaint.message for complaint in broken),
                    "complaints": [complaint.as_json() for complaint in broken],
                }
                for rule, status, broken, why in report.findings()
            ],
        }
        for report in reports
    ]
    return json.dumps({"environments": told}, indent=2, ensure_ascii=False)


def as_junit(reports: Sequence[CheckReport]) -> str:
    """Reports as JUnit XML: a suite for each environment, a case for each rule."""
    suites = ElementTree.Element("testsuites", name="ors check")
    for report in reports:
        findings = report.findings()
        suite = ElementTree.SubElement(
            suites,
            "testsuite",
            name=report.name,
            tests=str(len(findings)),
            failures=str(sum(status == "fail" for _, status, _, _ in findings)),
            skipped=str(sum(status == "not applicable" for _, status, _, _ in findings)),
            errors="0",
            time=f"{report.seconds:.3f}",
        )
        for rule, status, broken, why in findings:
            area = rule.id.partition("-")[0]
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"{report.name}.{area}", name=f"{rule.id} {rule.text}"
            )
            if status == "fail":
                said = "; ".join(complaint.message for complaint in broken)
                failure = ElementTree.SubElement(case, "failure", message=_xml(said), type=rule.level)
                failure.text = _xml("\n".join(str(complaint) for complaint in broken))
            elif status == "not applicable":
                ElementTree.SubElement(case, "skipped", message=_xml(why))
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def as_markdown(reports: Sequence[CheckReport]) -> str:
    """Reports as a page: a table of all rules for each environment, then its complaints."""
    lines: list[str] = []
    for report in reports:
        lines += [f"# {_cell(report.name)}", "", f"{summary(report)}", ""]
        lines += ["| Rule | Level | What is asked | |", "| --- | --- | --- | --- |"]
        for rule, status, _, why in report.findings():
            lines.append(
                f"| {rule.id} | {rule.level} | {_cell(rule.text)} | {_cell(f'{status}: {why}' if why else status)} |"
            )
        for complaint in report.complaints:
            where = f" (`{complaint.place}`)" if complaint.file else ""
            lines += ["", f"## {complaint.rule}", "", f"`{complaint.method}`{where}: {_cell(complaint.message)}.", ""]
            lines.append(f"Mend: {_cell(complaint.mend)}.")
        lines.append("")
    return "\n".join(lines)


def summary(report: CheckReport) -> str:
    """One line about a report."""
    counts = [(len(report.of(level)), level) for level in LEVELS]
    said = ", ".join(f"{count} {level}{'' if count == 1 else 's'}" for count, level in counts if count)
    return (
        f"{report.name}: {len(report.passed)} rules hold, {said or 'no complaint'}, "
        f"{len(report.unseen)} not applicable; {report.seconds:.1f} s."
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _xml(text: str) -> str:
    """Without what XML 1.0 cannot hold."""
    return "".join(
        c if c in "\t\n\r" or (c >= " " and not 0xD800 <= ord(c) < 0xE000 and c not in "\ufffe\uffff") else "\ufffd"
        for c in text
    )
