"""What a check of an environment says: complaints as data, and how they reach the author who ran it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ors.errors import ORSError

if TYPE_CHECKING:
    from ors.testing.report import CheckReport

__all__ = ["LEVELS", "Complaint", "EnvironmentCheckError", "EnvironmentCheckWarning", "Level"]

Level: TypeAlias = Literal["error", "warning", "note"]
"""How bad it is: training goes wrong, training may go wrong, it could be better."""

LEVELS: tuple[Level, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Complaint:
    """One thing that is wrong with an environment.

    rule: the id of the rule, as in `RULES`. message: what was seen. method: whose code it is, `Class.method`.
    file and line: where in the author's code; None where nobody knows. mend: what to do about it.
    """

    rule: str
    level: Level
    message: str
    method: str
    file: str | None
    line: int | None
    mend: str

    @property
    def place(self) -> str:
        """`file:line`, relative to the current folder where that is shorter; empty where it is not known."""
        if self.file is None:
            return ""
        try:
            near = os.path.relpath(self.file)
        except ValueError:  # another drive
            near = self.file
        shown = near if len(near) < len(self.file) else self.file
        return shown if self.line is None else f"{shown}:{self.line}"

    def as_json(self) -> dict[str, Any]:
        """All of it, for programs."""
        return asdict(self)

    def __str__(self) -> str:
        where = f" ({self.place})" if self.file else ""
        return f"{self.rule}: {self.method}{where}: {self.message}. Mend: {self.mend}"


class EnvironmentCheckWarning(UserWarning):
    """An environment works, but something about it will surprise whoever trains on it. `complaint` has it as data."""

    def __init__(self, complaint: Complaint) -> None:
        super().__init__(str(complaint))
        self.complaint = complaint


class EnvironmentCheckError(ORSError, AssertionError):
    """An environment does not do what is asked of every environment.

    `report` holds the whole report, `complaints` those of the level error. It is an AssertionError too, so that tests
    show it as what it is: a failure and no accident.
    """

    def __init__(self, report: CheckReport) -> None:
        self.report = report
        self.complaints: Sequence[Complaint] = report.errors
        super().__init__(_worded(report))


def _worded(report: CheckReport) -> str:
    count = len(report.errors)
    lines = [f"{report.name} has {count} {'fault' if count == 1 else 'faults'}:"]
    for complaint in report.errors:
        where = f" ({complaint.place})" if complaint.file else ""
        lines += ["", f"[{complaint.rule}] {complaint.method}{where}", f"    {complaint.message}"]
        lines.append(f"    Mend: {complaint.mend}")
    if report.warnings:
        rules = ", ".join(dict.fromkeys(complaint.rule for complaint in report.warnings))
        lines += ["", f"Warnings besides: {rules}."]
    return "\n".join(lines)
