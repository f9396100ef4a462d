"""What `ors.tasks` exports, and what it costs to import it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ors.tasks


def test_names_are_sorted_and_come_from_where_type_checkers_see_them() -> None:
    assert ors.tasks.__all__ == sorted(set(ors.tasks.__all__))
    assert dir(ors.tasks) == ors.tasks.__all__
    tree = ast.parse(Path(ors.tasks.__file__).read_text("utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (alias.name, node.module) for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == set(ors.tasks._HOME_OF.items())
    assert {name for name, _ in seen} | {"Seeds"} == set(ors.tasks.__all__)
    with pytest.raises(AttributeError, match="module 'ors.tasks' has no attribute 'Nothing'"):
        ors.tasks.Nothing  # noqa: B018


@pytest.mark.parametrize("name", ors.tasks.__all__)
def test_name_is_importable_and_documented(name: str) -> None:
    assert getattr(ors.tasks, name).__doc__


def test_sources_load_nothing_heavy() -> None:
    program = (
        "from ors.tasks import Csv, Folder, Generated, InMemory, Jsonl, union, task_json, task_key\n"
        "import sys\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {
        "asyncio",
        "pydantic",
        "msgspec",
        "numpy",
        "pyarrow",
        "datasets",
        "aiohttp",
        "starlette",
        "gzip",
        "ors.core",
    }
    assert heavy & set(done.stdout.split()) == set()
