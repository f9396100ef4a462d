"""What holds for every file of the repository."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "ors"
MODULES = sorted(SOURCE.rglob("*.py"))
DOCS = sorted((ROOT / "docs").rglob("*.md"))

# Written so that none of these patterns fits its own text.
NOT_OURS = {
    "a path of somebody's machine": re.compile(r"(?<![\w.])/(?:work|root|home/\w+|Users/\w+|opt/(?:wheels|pypi))[/]"),
    "a package registry's host": re.compile(
        r"pypi[.]org|pythonhosted[.]org|npmjs[.](?:org|com)|debian[.]org|crates[.]io"
    ),
    "a document that is not in the repository": re.compile(r"(?:DESIGN|RULINGS)[.]md|shared[/](?:facts|spec|bench)"),
}


def files_of_the_repository() -> list[Path]:
    """What git tracks."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def strange(text: str) -> Iterator[str]:
    """What a text says that no file of the repository may say."""
    for number, line in enumerate(text.splitlines(), 1):
        for kind, pattern in NOT_OURS.items():
            if found := pattern.search(line):
                yield f"line {number}: {kind}: {found[0]}"


def test_no_file_names_a_machine_or_a_registry() -> None:
    found = {}
    for path in files_of_the_repository():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue  # an image or other data
        if lines := list(strange(text)):
            found[str(path.relative_to(ROOT))] = lines
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "cache = '/home/" + "ada/.cache'",
        "open('/roo" + "t/key')",
        "pip install --index-url https://pypi" + ".org/simple",
        "see DESIGN" + ".md",
    ],
)
def test_such_a_line_is_found(text: str) -> None:
    assert len(list(strange(text))) == 1


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_module_is_short(path: Path) -> None:
    lines = len(path.read_text("utf-8").splitlines())
    assert lines <= 400, f"{lines} lines: a module holds one noun; split it"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_module_and_its_public_names_have_docstrings(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    missing = [] if ast.get_docstring(tree) else ["the module"]
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            overloaded = any(getattr(mark, "id", "") == "overload" for mark in node.decorator_list)
            if not overloaded and not ast.get_docstring(node):
                missing.append(node.name)
    assert missing == []


def declared_dependencies() -> set[str]:
    """Every package that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    lines = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for group in (*project["project"]["optional-dependencies"].values(), *project["dependency-groups"].values()):
        lines += [line for line in group if isinstance(line, str)]
    return {re.match(r"[\w.-]+", line)[0].lower() for line in lines}  # type: ignore[index]


def test_every_dependency_is_explained_and_no_other() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    explained = re.findall(r"^\| `([\w.-]+)` \|", text, re.MULTILINE)
    assert len(explained) == len(set(explained))
    assert set(explained) == declared_dependencies()


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    pages = {str(path.relative_to(ROOT / "docs")) for path in DOCS}
    assert set(re.findall(r"[\w/-]+\.md", navigation)) == pages
