"""docs/faults.md and the tests agree: every fault has its test, every test its fault."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
HERE = Path(__file__).parent
SERVERS, CLIENTS = "test_ors_faults.py", "test_client_faults.py"

FAULTS = {
    "7.1": [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14, 15, 16, 17, 19],
    "7.2": [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    "7.3": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    "7.4": [1, 2, 3, 4, 5, 6, 7, 8],
}
"""The numbers of the faults, by section."""
OF_CLIENTS_ALONE = {
    *("7.1.4", "7.1.10", "7.1.16", "7.1.17"),
    *("7.2.6", "7.2.7", "7.2.8", "7.2.9", "7.2.10", "7.3.9", "7.3.11", "7.4.7"),
}


def rows(side: str) -> dict[str, list[str]]:
    """The cells of every row about servers or about clients, by number, in the order of the page."""
    of_servers, _, of_clients = PAGE.read_text("utf-8").partition("## Faults of clients")
    found: dict[str, list[str]] = {}
    for line in (of_servers if side == SERVERS else of_clients).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"7\.\d\.\d+", cells[0]):
            assert cells[0] not in found, f"{cells[0]} stands there twice"
            found[cells[0]] = cells[1:]
    return found


def names_of_tests(side: str) -> set[str]:
    """The names of the tests."""
    tree = ast.parse((HERE / side).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_fault_is_listed_and_in_order() -> None:
    every = {f"{section}.{number}" for section, numbers in FAULTS.items() for number in numbers}
    assert set(rows(SERVERS)) | set(rows(CLIENTS)) == every
    assert set(rows(SERVERS)) == every - OF_CLIENTS_ALONE
    assert set(rows(CLIENTS)) >= OF_CLIENTS_ALONE
    for side in (SERVERS, CLIENTS):
        numbers = [tuple(map(int, number.split("."))) for number in rows(side)]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize(("side", "columns"), [(SERVERS, 3), (CLIENTS, 4)])
def test_every_fault_has_its_tests_and_every_test_its_fault(side: str, columns: int) -> None:
    named: set[str] = set()
    for number, cells in rows(side).items():
        assert len(cells) == columns and all(cells[:2]), number
        found = re.findall(r"`(test_\w+)`", cells[-1])
        assert found, f"{number} has no test"
        for name in found:
            assert name.startswith(f"test_{number.replace('.', '_')}_"), f"{name} is not {number}'s"
        named |= set(found)
    assert named == names_of_tests(side)
