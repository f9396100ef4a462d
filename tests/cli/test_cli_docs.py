"""The screens in the documentation are what the commands show: they are played again here."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from cli_terminal import Terminal

from ors.cli import _COMMANDS, app

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/terminal.md", "docs/evaluating.md", "docs/index.md")
Run = Callable[..., subprocess.CompletedProcess[str]]
Play = Callable[..., Terminal]


def screens() -> list[tuple[str, str]]:
    """Every command line in a screen, and what is shown after it."""
    found: list[tuple[str, str]] = []
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        for body in re.findall(r"^```(?:text|console)\n((?:.*\n)*?)```$", text, re.MULTILINE):
            found += re.findall(r"^\$ (ors .*)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE)
    return found


def screen_of(command: str) -> str:
    (shown,) = (after for line, after in screens() if line == command)
    return shown


@pytest.mark.parametrize("line", sorted({line for line, _ in screens()}))
def test_every_command_line_can_be_parsed(line: str) -> None:
    _, name, *words = shlex.split(line)
    assert name in _COMMANDS
    command = typer.main.get_command(app).get_command(None, name)  # type: ignore[attr-defined]
    command.make_context(name, words).close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the pages have in their folder: the README's environment, their agent, a package from `ors init`."""
    readme = (ROOT / "README.md").read_text("utf-8")
    (tmp_path / "addition.py").write_text(re.findall(r"^```python\n((?:.*\n)*?)```$", readme, re.MULTILINE)[0])
    page = (ROOT / "docs" / "evaluating.md").read_text("utf-8")
    (tmp_path / "my_agent.py").write_text(re.findall(r"^```python\n((?:.*\n)*?)```$", page, re.MULTILINE)[0])
    return tmp_path


def trimmed(text: str) -> str:
    """Without blanks at the ends of lines, and without times, which are never the same."""
    lines = [line.rstrip() for line in text.splitlines()]
    text = "\n".join(lines).strip()
    return re.sub(r"\b\d+(\.\d+)? s\b", "… s", text)


@pytest.mark.parametrize(
    "line",
    [
        line
        for line, shown in screens()
        if line.split()[1] in ("envs", "tools", "tasks", "call", "init") and shown.strip()
    ],
)
def test_what_is_shown_is_what_is_printed(ors: Run, folder: Path, line: str) -> None:
    done = ors(*shlex.split(line)[1:], COLUMNS="80")
    assert done.returncode == 0
    assert trimmed(done.stdout + done.stderr) == trimmed(screen_of(line))


def test_the_table_of_a_run(ors: Run, folder: Path) -> None:
    line = "ors run addition.py --agent my_agent.py:adds --limit 200"
    done = ors(*shlex.split(line)[1:], COLUMNS="80")
    assert done.returncode == 0
    assert until_the_speed(done.stdout) == until_the_speed(screen_of(line))


def until_the_speed(table: str) -> list[str]:
    """The words of a table without how fast it was, and how wide that made it."""
    rows = [line.split() for line in table.splitlines()]
    return [" ".join(row[:-3] if row[:1] == ["addition"] else row) for row in rows if row and "─" not in row[0]][:3]


SESSIONS = {
    "ors play word_game --split test --index 3": [
        "",
        "500",
        "",
        "many",
        "50",
        'guess {"number": 75}',
        "\x03",
    ],
    "ors play examples/clock_reading.py --split test --index 3": ["", "13", "10", "27"],
}


@pytest.mark.parametrize("line", SESSIONS)
def test_a_session_of_a_person(terminal: Play, ors: Run, folder: Path, line: str) -> None:
    if "word_game" in line:
        assert ors("init", "word_game").returncode == 0
        words = shlex.split(line.replace("word_game", "word_game/word_game/__init__.py"))[1:]
        words[1] = "word_game"
        env = {"PYTHONPATH": str(folder / "word_game")}
    else:
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        words, env = shlex.split(line)[1:], {}
    play = terminal(*words, TERM="dumb", COLORTERM="", **env)
    for text in SESSIONS[line]:
        play.wait_for(r"(?:> |= )$")
        play.press(text) if text == "\x03" else play.type(text)
    assert play.end() == (130 if "\x03" in SESSIONS[line] else 0)
    shown = re.sub(r"/\S*/ors-play-\w+", "/tmp/ors-play-r87i7ohb", play.text)
    assert trimmed(shown) == trimmed(screen_of(line))
