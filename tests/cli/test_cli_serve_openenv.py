"""`ors serve` with what is written for OpenEnv: classes, applications, folders of the hub."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_commands import Command, addition, ask

from ors.cli.errors import CommandError
from ors.cli.targets import load_targets

ROOT = Path(__file__).resolve().parents[2]
COMPAT = os.pathsep.join([str(ROOT / "src"), str(ROOT / "compat" / "openenv" / "src")])
GAME = '''
from {package} import Action, Environment, Observation, State

class Move(Action):
    number: int

class Seen(Observation):
    total: int

class {name}(Environment[Move, Seen, State]):
    """Adds up."""

    def __init__(self):
        self.total, self.steps = 0, 0

    def reset(self):
        self.total, self.steps = 0, 0
        return Seen(total=0)

    def step(self, action: Move) -> Seen:
        self.total, self.steps = self.total + action.number, self.steps + 1
        return Seen(total=self.total, reward=1.0, done=self.total > 9)

    @property
    def state(self) -> State:
        return State(step_count=self.steps)
'''
APP = """
from ors.openenv import create_app
from game import Game, Move, Seen

app = create_app(lambda: Game(), Move, Seen, env_name="the_game")

@app.get("/extra")
def extra():
    return "there"
"""


def write(folder: Path, path: str, text: str) -> None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def game(name: str = "Game", package: str = "ors.openenv") -> str:
    return GAME.format(name=name, package=package)


def hub_folder(folder: Path) -> None:
    """As a package of the hub lies in its folder, with imports that fall back on others."""
    write(folder, "adding_env/__init__.py", "")
    write(folder, "adding_env/openenv.yaml", "spec_version: 1\nname: adding_env\napp: server.app:app\nport: 8000\n")
    write(folder, "adding_env/models.py", game(package="openenv.core.env_server"))
    write(folder, "adding_env/server/__init__.py", "")
    write(
        folder,
        "adding_env/server/app.py",
        "from openenv.core.env_server import create_app\n"
        "try:\n    from ..models import Game, Move, Seen\n"
        "except ImportError:\n    from models import Game, Move, Seen\n"
        'app = create_app(Game, Move, Seen, env_name="adding_env")\n',
    )


def plays(url: str, name: str) -> None:
    assert ask(f"{url}/list_environments") == [name]
    session = {"X-Session-ID": "mine"}
    assert ask(f"{url}/reset", {}, **session)["observation"]["total"] == 0
    assert ask(f"{url}/{name}/step", {"action": {"number": 4}}, **session)["observation"]["total"] == 4
    assert ask(f"{url}/step", {"action": {"number": 6}}, **session)["done"] is True
    assert ask(f"{url}/state", **session)["step_count"] == 2
    # and over the other protocol
    other = {"X-Session-ID": "other"}
    ask(f"{url}/create", {"split": "train", "index": 0}, **other)
    assert '"reward":1.0' in ask(f"{url}/call", {"name": "step", "input": {"number": 10}}, **other)


@pytest.mark.parametrize(
    ("target", "name"), [("game.py", "Game"), ("game:Game", "Game"), ("app.py", "the_game"), ("app:app", "the_game")]
)
def test_a_class_and_an_application(start: Callable[..., Command], tmp_path: Path, target: str, name: str) -> None:
    write(tmp_path, "game.py", game())
    write(tmp_path, "app.py", APP)
    command = start("serve", target, "--port", "0")
    url = command.address()
    plays(url, name)
    if name == "the_game":
        assert ask(f"{url}/extra") == "there"
        assert ask(f"{url}/health") == {"status": "healthy"}
    assert command.end() == 0


@pytest.mark.parametrize("target", ["adding_env", "./adding_env/"])
def test_a_folder_of_the_hub(start: Callable[..., Command], tmp_path: Path, target: str) -> None:
    hub_folder(tmp_path)
    command = start("serve", target, "--port", "0", PYTHONPATH=COMPAT)
    plays(command.address(), "adding_env")
    assert command.end() == 0


def test_both_kinds_on_one_port(start: Callable[..., Command], tmp_path: Path) -> None:
    write(tmp_path, "game.py", game())
    write(tmp_path, "sums.py", addition())
    url = start("serve", "sums.py", "game.py", "--port", "0").address()
    assert ask(f"{url}/list_environments") == ["addition", "Game"]
    assert ask(f"{url}/game/reset", {})["observation"]["total"] == 0
    assert ask(f"{url}/reset", {"split": "train", "index": 0})["observation"]["prompt"][0]["text"] == "What is 1 + 2?"


@pytest.mark.parametrize(("target", "port"), [("game.py", 8000), ("sums.py", 8080)])
def test_the_port_where_none_is_said(
    ors: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, target: str, port: int
) -> None:
    write(tmp_path, "game.py", game())
    write(tmp_path, "sums.py", addition())
    with socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", port))
            taken.listen()
        except OSError:
            pass  # somebody else has it, which is as good
        done = ors("serve", target)
    assert done.returncode != 0 and str(port) in done.stderr


# What is found, and what is refused


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a test, where nothing that it imports stays."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    # other tests have modules of such names too
    for name in [name for name in sys.modules if name.partition(".")[0] in ("server", "models", "app", "f")]:
        monkeypatch.delitem(sys.modules, name)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def found(*targets: str) -> list[Any]:
    return [getattr(each, "__name__", None) or each.entry.options["name"] for each in load_targets(targets)]


def test_classes_that_an_application_serves_are_not_served_twice(here: Path) -> None:
    write(here, "game.py", game())
    write(here, "app.py", APP)
    assert found("app.py") == ["the_game"]
    write(here, "both.py", game("Other") + APP)
    assert found("both.py") == ["the_game"]


def test_several_classes_and_bases_that_are_not_meant(here: Path) -> None:
    write(here, "two.py", game("Base") + "\nclass Real(Base):\n    pass\n")
    assert found("two.py") == ["Real"]
    assert found("two.py:Base") == ["Base"]


@pytest.mark.parametrize(
    ("files", "target", "words"),
    [
        ({"f/openenv.yaml": "name: f\n"}, "f", "server"),
        ({"f/openenv.yaml": "nothing: [\n"}, "f", "openenv.yaml"),
        ({"f/openenv.yaml": "name: f\napp: server:app\n", "f/server.py": "x = 1\n"}, "f", "app"),
        ({"f/openenv.yaml": "name: f\napp: server:app\n", "f/server.py": "app = 3\n"}, "f", "create_app"),
        ({"m.py": "import fastapi\napp = fastapi.FastAPI()\n"}, "m.py:app", "another package"),
        ({"f/other.txt": ""}, "f", "no environment"),
        ({"f/other.txt": ""}, "./f", "folder"),
    ],
)
def test_what_cannot_be_served(here: Path, files: dict[str, str], target: str, words: str) -> None:
    for path, text in files.items():
        write(here, path, text)
    with pytest.raises(CommandError) as refused:
        load_targets([target])
    assert words in str(refused.value), str(refused.value)
    assert "\n" not in str(refused.value)
