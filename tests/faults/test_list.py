"""docs/faults.md and the tests agree: every fault has its test, every test its fault."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
TESTS = Path(__file__).with_name("test_ors_faults.py")

FAULTS = {
    "7.1": [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14, 15, 16, 17, 19],
    "7.2": [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    "7.3": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    "7.4": [1, 2, 3, 4, 5, 6, 7, 8],
}
"""The numbers of the faults, by section."""


def rows() -> dict[str, list[str]]:
    """The cells of every row of the page, by number."""
    found: dict[str, list[str]] = {}
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"7\.\d\.\d+", cells[0]):
            assert cells[0] not in found, f"{cells[0]} stands there twice"
            found[cells[0]] = cells[1:]
    return found


def names_of_tests() -> set[str]:
    """The names of the tests."""
    tree = ast.parse(TESTS.read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_fault_is_listed_once_and_in_order() -> None:
    page = PAGE.read_text("utf-8")
    assert set(rows()) == {f"{section}.{number}" for section, numbers in FAULTS.items() for number in numbers}
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        numbers = [
            tuple(map(int, found.split("."))) for found in re.findall(r"^\| (7\.\d\.\d+) \|", part, re.MULTILINE)
        ]
        assert numbers == sorted(numbers)


def test_every_fault_of_servers_has_its_tests_and_every_test_its_fault() -> None:
    named: set[str] = set()
    for number, cells in rows().items():
        found = re.findall(r"`(test_\w+)`", cells[-1])
        if len(cells) == 2:
            continue  # a client's
        assert len(cells) == 3 and all(cells), number
        assert found, f"{number} has no test"
        for name in found:
            assert name.startswith(f"test_{number.replace('.', '_')}_"), f"{name} is not {number}'s"
        named |= set(found)
    assert named == names_of_tests()


def test_faults_of_clients_have_no_test_here() -> None:
    clients = {number for number, cells in rows().items() if len(cells) == 2}
    assert len(clients) == 12
    for number in clients:
        assert not [name for name in names_of_tests() if name.startswith(f"test_{number.replace('.', '_')}_")]
