"""Commands run as a person runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_commands import Command, clean_environment
from cli_terminal import Terminal, terminal_environment
from typer.testing import CliRunner

from ors.cli import app


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Start `ors` with some words in the temporary folder; every one that runs is ended afterwards."""
    running: list[Command] = []

    def run(*words: str, **env: str) -> Command:
        running.append(Command(list(words), tmp_path, clean_environment(**env)))
        return running[-1]

    yield run
    for command in running:
        command.close()


@pytest.fixture
def ors(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `ors` with some words in the temporary folder until it ends."""

    def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ors.cli", *words],
            cwd=tmp_path,
            env=clean_environment(**env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Start `ors` with some words in the temporary folder, in a terminal of its own."""
    running: list[Terminal] = []

    def run(*words: str, columns: int = 80, **env: str) -> Terminal:
        running.append(Terminal(list(words), tmp_path, terminal_environment(clean_environment(), **env), columns))
        return running[-1]

    yield run
    for one in running:
        one.close()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The same in this process, for what is about words and answers and not about processes: it is quicker."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("ORS_")]:
        monkeypatch.delenv(name)

    def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
        done = CliRunner().invoke(app, list(words), env={"NO_COLOR": "1", "COLUMNS": "200", **env}, prog_name="ors")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

    return run
