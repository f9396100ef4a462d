"""The public names: what `ors` exports, that each is documented, and what importing them costs."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import ors

HEAVY = {
    "aiohttp",
    "asyncio",
    "fastapi",
    "httptools",
    "httpx",
    "msgspec",
    "numpy",
    "rich",
    "starlette",
    "typer",
    "uvicorn",
    "uvloop",
}
"""What a program that only defines an environment must not pay for."""
SERVING = ("ors.server", "ors.faces", "ors.hosts", "ors.runtime", "ors.core", "ors.cli")


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after a statement."""
    program = f"{statement}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def heavy_in(modules: set[str]) -> set[str]:
    """Those of the modules that belong to a server or to a heavy package."""
    packages = {name for name in modules if name in HEAVY}
    return packages | {name for name in modules if name.startswith(SERVING)}


def test_names_are_sorted_and_listed_once() -> None:
    assert ors.__all__ == sorted(set(ors.__all__))
    assert dir(ors) == ors.__all__


@pytest.mark.parametrize("name", ors.__all__)
def test_name_is_importable(name: str) -> None:
    namespace: dict[str, object] = {}
    exec(f"from ors import {name}", namespace)
    assert namespace[name] is getattr(ors, name)


def test_type_checkers_see_the_same_names_from_the_same_modules() -> None:
    tree = ast.parse(Path(ors.__file__).read_text("utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (alias.name, node.module) for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == set(ors._HOME_OF.items())
    assert {name for name, _ in seen} | {"__version__"} == set(ors.__all__)


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'ors' has no attribute 'Nothing'"):
        ors.Nothing  # noqa: B018


@pytest.mark.parametrize("name", sorted(set(ors.__all__) - {"__version__"}))
def test_name_is_documented(name: str) -> None:
    value = getattr(ors, name)
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        # an alias: the text stands below its assignment
        assert name in documented_assignments(ors._HOME_OF[name])
        return
    assert value.__doc__
    assert value.__doc__.strip()
    if inspect.isclass(value):
        undocumented = [
            member
            for member, attribute in vars(value).items()
            if not member.startswith(("_", "model_"))
            and (callable(attribute) or isinstance(attribute, classmethod | staticmethod | property))
            and not inspect.getdoc(getattr(value, member))
        ]
        assert undocumented == []


def documented_assignments(module: str) -> set[str]:
    """Names assigned at the top of a module with a string right below."""
    source = Path(sys.modules[module].__file__ or "").read_text("utf-8")
    body = ast.parse(source).body
    names: set[str] = set()
    for node, following in zip(body, body[1:], strict=False):
        if not (isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)):
            continue
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names.update(target.id for target in targets if isinstance(target, ast.Name))
    return names


@pytest.mark.parametrize(
    "statement",
    [
        "import ors",
        "from ors import Environment, tool, ToolOutput",
        "from ors import " + ", ".join(sorted(set(ors.__all__) - {"Server"})),
    ],
    ids=["package", "authoring", "all but Server"],
)
def test_import_is_light(statement: str) -> None:
    assert heavy_in(loaded_by(statement)) == set()


def test_import_of_the_package_alone_loads_no_pydantic() -> None:
    assert "pydantic" not in loaded_by("import ors")


def test_the_server_is_what_loads_the_machinery() -> None:
    assert {"asyncio", "msgspec", "ors.server"} <= heavy_in(loaded_by("from ors import Server"))
