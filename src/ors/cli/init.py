"""`ors init`: a package with an environment, a test and a README that run as they are."""

from __future__ import annotations

import importlib.machinery
import importlib.resources
import keyword
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ors._version import __version__
from ors.cli.arguments import Debug, examples
from ors.cli.errors import CommandError, reporting

__all__ = ["HELP_END", "init"]

HELP_END = examples("ors init my_game", "ors init ~/environments/word-puzzles")

_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "gitignore": ".gitignore",
    "init": "{package}/__init__.py",
    "environment": "{package}/environment.py",
    "agent": "{package}/agent.py",
    "test_environment": "tests/test_environment.py",
}
"""The templates, and where each belongs."""


def init(
    name: Annotated[
        str,
        typer.Argument(
            help="The name of the package, or a path that ends in it; the folder is made.", show_default=False
        ),
    ],
    debug: Debug = False,
) -> None:
    """Start a package with an environment, a test and a README.

    All of it runs as it is: play it, test it, serve it, then make it yours.
    """
    with reporting(debug=debug):
        folder = Path(name).expanduser()
        package = _package_of(folder.resolve().name)
        words = {
            "project": package.replace("_", "-"),
            "package": package,
            "class": "".join(part[:1].upper() + part[1:] for part in package.split("_")),
            "version": __version__,
        }
        _write(folder, package, words)
        here = os.path.relpath(folder)
        print(
            f"{folder} is a package with an environment, an agent, a test and a README. Try it:\n\n"
            f"  cd {here}\n"
            f"  ors play {package}\n"
            f"  ors run {package} --agent {package}.agent:bisect --limit 50\n"
            f"  python -m pytest\n\n"
            f"Then write your own in {package}/environment.py; README.md says how to go on."
        )


def _package_of(name: str) -> str:
    """The name as Python can import it. Raises CommandError."""
    package = re.sub(r"[-. ]+", "_", name).lower()
    if not package.isidentifier() or not package.isascii() or keyword.iskeyword(package) or package.startswith("_"):
        raise CommandError(f"'{name}' cannot be the name of a package: letters, digits, - and _, a letter first")
    taken = package in sys.stdlib_module_names or package in ("tests", "ors")
    if not taken:
        # a package of this name in the current folder is no obstacle: only what is installed would be hidden
        here = [entry for entry in sys.path if entry not in ("", os.getcwd())]
        taken = importlib.machinery.PathFinder.find_spec(package, here) is not None
    if taken:
        raise CommandError(f"a module '{package}' is installed, which a package of that name would hide; take another")
    return package


def _write(folder: Path, package: str, words: dict[str, str]) -> None:
    """Make the folder with all that is in it, or nothing at all. Raises CommandError."""
    if folder.is_dir() and any(folder.iterdir()):
        raise CommandError(f"the folder {folder} is there and not empty; name one that is not there yet")
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder} is a file; name a folder that is not there yet")
    templates = importlib.resources.files("ors.cli") / "templates"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            for template, place in _FILES.items():
                text = (templates / f"{template}.template").read_text("utf-8")
                for word, value in words.items():
                    text = text.replace(f"{{{{{word}}}}}", value)
                path = made / place.format(package=package)
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, "utf-8")
            made.chmod(0o777 & ~_umask())
            made.replace(folder)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except OSError as exc:
        raise CommandError(f"{folder} cannot be written: {exc.strerror or exc}") from exc


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
