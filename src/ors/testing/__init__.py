"""What authors call in their own tests: `check_environment` finds what goes wrong when others play an environment."""

from __future__ import annotations

from ors.testing.check import check_environment
from ors.testing.complaints import RULES, CheckReport, Complaint, EnvironmentCheckError, EnvironmentCheckWarning, Rule

__all__ = [
    "RULES",
    "CheckReport",
    "Complaint",
    "EnvironmentCheckError",
    "EnvironmentCheckWarning",
    "Rule",
    "check_environment",
]
