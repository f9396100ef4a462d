"""What authors call in their tests: `check_environment`, and the rules that it checks.

from ors.testing import check_environment

def test_the_environment():
    check_environment(MyEnvironment)
"""

from __future__ import annotations

from ors.testing.check import check_environment, examine
from ors.testing.complaints import Complaint, EnvironmentCheckError, EnvironmentCheckWarning, Level
from ors.testing.report import CheckReport
from ors.testing.rules import RULES, Rule

__all__ = [
    "RULES",
    "CheckReport",
    "Complaint",
    "EnvironmentCheckError",
    "EnvironmentCheckWarning",
    "Level",
    "Rule",
    "check_environment",
    "examine",
]
