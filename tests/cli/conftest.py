"""Commands run as a person runs them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_commands import Command, clean_environment


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
