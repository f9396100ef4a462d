"""What holds for every command: help with examples that are right, completion, speed of the help."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from cli_commands import clean_environment

from ors.cli import _COMMANDS, app

Run = Callable[..., subprocess.CompletedProcess[str]]
WITH_EXAMPLES = sorted(set(_COMMANDS) - {"serve", "schema"})


def command_of(name: str) -> object:
    group = typer.main.get_command(app)
    return group.get_command(None, name)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", _COMMANDS)
def test_the_list_says_what_the_command_itself_says(name: str) -> None:
    module = importlib.import_module(f"ors.cli.{name}")
    assert ast.get_docstring(ast.parse(Path(module.__file__ or "").read_text()))
    assert (getattr(module, name).__doc__ or "").splitlines()[0] == _COMMANDS[name]


def test_the_help_of_all_names_every_command_and_exit_code(here: Run) -> None:
    text = here("--help").stdout
    for name, words in _COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(words[:30])}", text, re.MULTILINE)
    for code in (0, 1, 2, 3, 130):
        assert re.search(rf"^ +{code} ", text, re.MULTILINE)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_the_help_can_be_parsed(here: Run, name: str) -> None:
    text = here(name, "--help").stdout
    assert text.startswith(f"Usage: ors {name}")
    lines = re.findall(rf"^ +(ors {name} .*)$", text.partition("Examples:")[2], re.MULTILINE)
    assert len(lines) >= 2
    for line in lines:
        words = shlex.split(line.partition(" > ")[0])[2:]
        try:
            command_of(name).make_context(name, words).close()  # type: ignore[attr-defined]
        except typer.Exit:
            pass  # an option that does its work and is done


def test_the_help_loads_no_more_than_it_shows() -> None:
    program = "import sys, json\nfrom ors.cli import app\napp(['--help'], standalone_mode=False)\n"
    program += "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage:")
    loaded = json.loads(done.stderr)
    for heavy in ("aiohttp", "pydantic", "rich", "fastapi", "uvicorn", "asyncio", "ors.client", "ors.settings"):
        assert heavy not in loaded


def complete(*words: str) -> list[str]:
    """What the shell is told when Tab is pressed at the end of these words."""
    env = clean_environment(
        _ORS_COMPLETE="complete_bash", COMP_WORDS=" ".join(["ors", *words]), COMP_CWORD=str(len(words))
    )
    done = subprocess.run([sys.executable, "-m", "ors.cli"], env=env, capture_output=True, text=True, timeout=60)
    return done.stdout.split()


def test_the_shell_completes_commands_options_and_choices() -> None:
    assert complete("sp") == ["splits"]
    assert "--concurrency" in complete("run", "--con")
    assert complete("tools", "x.py", "--format", "openai") == ["openai", "openai-chat"]


def test_the_completion_script_can_be_shown() -> None:
    env = clean_environment(SHELL="/bin/bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    done = subprocess.run(
        [sys.executable, "-m", "ors.cli", "--show-completion", "bash"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert "_ORS_COMPLETE=complete_bash" in done.stdout
    script = subprocess.run(["bash", "-n"], input=done.stdout, text=True, capture_output=True)
    assert script.returncode == 0


def test_a_command_that_there_is_not(here: Run) -> None:
    done = here("env")
    assert done.returncode == 2
    assert "Did you mean 'envs'" in done.stderr
    assert os.environ.get("ORS_ABSENT") is None
