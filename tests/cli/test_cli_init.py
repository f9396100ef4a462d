"""`ors init`: what it makes runs as it is: it is built, tested, linted, served and played."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_commands import Command, ask, clean_environment

Start = Callable[..., Command]
Run = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, *words: str, code: int = 0) -> str:
    """Run a command there; its output."""
    scripts = str(Path(sys.executable).parent)
    env = clean_environment(PATH=f"{scripts}{os.pathsep}{os.environ['PATH']}", PYTHONWARNINGS="error")
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def project(ors: Run, tmp_path: Path) -> Path:
    done = ors("init", "word-game")
    assert (done.returncode, done.stderr) == (0, "")
    assert "cd word-game\n  ors play word_game\n" in done.stdout
    return tmp_path / "word-game"


def test_all_that_the_readme_says_works(project: Path, start: Start, tmp_path: Path) -> None:
    readme = (project / "README.md").read_text()
    commands = re.findall(r"^\$ (.*)$", readme, re.MULTILINE)
    assert commands == [
        "python -m pytest",
        "ors play word_game",
        "ors run word_game --agent word_game.agent:bisect --limit 50",
        "ors serve word_game",
    ]
    assert re.search(r"^\d+ passed", run(project, *commands[0].split(), "-q").splitlines()[-1])
    assert "There is" not in run(project, "bash", "-c", f"echo q | {commands[1]} --split test")
    table = run(project, *commands[2].split())
    assert re.search(r"^wordgame +50 +1\.00 +0\.93\.\.1\.00 +100% +0 ", table, re.MULTILINE)
    url = start(*commands[3].split()[1:], "--port", "0", PYTHONPATH=str(project)).address()
    assert ask(f"{url}/list_environments") == ["wordgame"]
    for path in re.findall(r"^\| `(.*?)` \|", readme, re.MULTILINE):
        assert (project / path).is_file()


def test_it_builds_into_a_package_with_what_belongs_there(project: Path, tmp_path: Path) -> None:
    build = (sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path / "dist"))
    run(project, *build)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as built:
        names = {name for name in built.namelist() if ".dist-info/" not in name}
        assert names == {f"word_game/{name}.py" for name in ("__init__", "agent", "environment")}
        metadata = built.read(f"{wheel.name.rpartition('-py3')[0]}.dist-info/METADATA").decode()
    assert "Name: word-game\n" in metadata
    assert "Requires-Dist: ors-kit>=" in metadata


def test_nothing_is_left_to_fill_in_and_nothing_to_complain_of(project: Path) -> None:
    files = [path for path in project.rglob("*") if path.is_file()]
    assert len(files) == 7
    for path in files:
        assert "{{" not in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444
    assert stat.S_IMODE(project.stat().st_mode) & 0o055 == 0o055


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("json", "a module 'json' is installed"),
        ("pytest", "a module 'pytest' is installed"),
        ("ors", "a module 'ors' is installed"),
        ("3d", "cannot be the name of a package"),
        ("class", "cannot be the name of a package"),
        ("wörter", "cannot be the name of a package"),
        ("taken", "is there and not empty"),
        ("file", "is a file"),
    ],
)
def test_names_that_cannot_be(here: Run, tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "diary.txt").write_text("dear diary")
    (tmp_path / "file").write_text("")
    before = sorted(tmp_path.rglob("*"))
    done = here("init", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_a_path_and_an_empty_folder(here: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert here("init", "empty").returncode == 0
    assert here("init", "deep/in/there/My Game").returncode == 0
    assert (tmp_path / "deep/in/there/My Game/my_game/environment.py").is_file()
    assert "class MyGame(Environment)" in (tmp_path / "deep/in/there/My Game/my_game/environment.py").read_text()
