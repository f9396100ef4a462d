"""`ors check` on a file: the author's check, with its table, its reports and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SOURCE = '''
import time
from ors import Environment, TextBlock, ToolOutput, tool


class Wrong(Environment):
    @classmethod
    def list_splits(cls):
        return ["train"]

    @classmethod
    def num_tasks(cls, split):
        return 3

    @classmethod
    def get_task(cls, split, index):
        return {"n": [1, 2, 3][index]}

    def get_prompt(self):
        return "Say a number."

    @tool
    async def say(self, number: int) -> ToolOutput:
        """Say it."""
        time.sleep(0.001)
        return ToolOutput(blocks=[TextBlock(text="said")], reward=0.0)
'''


def check(*words: str, cwd: Path | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [Path(sys.executable).with_name("ors"), "check", *words], capture_output=True, text=True, timeout=100, cwd=cwd
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("author")
    (folder / "wrong.py").write_text(SOURCE)
    return folder


def test_what_is_wrong_is_said_with_its_place_and_its_mend(folder: Path) -> None:
    code, out, err = check("wrong.py", "--junit", "junit.xml", "--markdown", "page.md", cwd=folder)
    assert (code, err) == (3, "")
    words = " ".join(out.split())
    assert "index-end" in words
    assert "Wrong.get_task" in words
    lines = SOURCE.splitlines()
    assert f"wrong.py:{lines.index('    def get_task(cls, split, index):') + 1}" in words
    assert f"wrong.py:{lines.index('        time.sleep(0.001)') + 1}" in words
    assert "Wrong: 1 error, 1 warning" in words
    suites = ElementTree.parse(folder / "junit.xml").getroot()
    assert {case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None} == {
        "index-end",
        "blocking",
    }
    page = (folder / "page.md").read_text()
    assert "| error | index-end | Wrong.get_task " in page


def test_levels_and_rules_are_chosen(folder: Path) -> None:
    code, out, _ = check("wrong.py", "--level", "may", "--json", cwd=folder)
    (report,) = json.loads(out)
    assert code == 3
    assert {complaint["rule"] for complaint in report["complaints"]} == {"index-end", "blocking", "parameter-doc"}
    assert report["environment"] == "Wrong"
    assert not report["ok"]
    code, out, _ = check("wrong.py", "--only", "blocking", "--level", "must", "--json", cwd=folder)
    assert code == 0
    assert json.loads(out)[0]["complaints"] == []


def test_an_area_of_rules_is_chosen(folder: Path) -> None:
    code, out, _ = check("wrong.py", "--only", "tool", "--only", "index", "--level", "may", "--json", cwd=folder)
    (report,) = json.loads(out)
    assert code == 3
    assert [complaint["rule"] for complaint in report["complaints"]] == ["index-end"]
    assert {"index", "index-end", "tool-doc", "tool-raises"} <= {*report["checked"]}
    assert not {"prompt", "tools"} & {*report["checked"]}


OPENENV = """
from ors.openenv import Action, Environment, Observation, State, create_app


class Say(Action):
    text: str


class Parrot(Environment):
    def __init__(self, greeting="hello"):
        super().__init__()
        self._state, self._greeting = State(), greeting

    def reset(self, seed=None):
        self._state = State()
        return Observation(metadata={"said": self._greeting})

    def step(self, action):
        return Observation(metadata={"said": action.text}, done=True, reward=1.0)

    @property
    def state(self):
        return self._state


def make() -> Parrot:
    return Parrot("good morning")
"""


@pytest.mark.parametrize("made", ["Parrot", "make"])
def test_what_create_app_made_is_checked_with_its_models(made: str, tmp_path: Path) -> None:
    (tmp_path / "parrot.py").write_text(
        f"{OPENENV}\n\napp = create_app({made}, Say, Observation, env_name='parrot_env')\n"
    )
    code, out, err = check("parrot.py", "--env", "parrot_env", "--json", cwd=tmp_path)
    (report,) = json.loads(out)
    assert (code, err) == (3, "")
    assert [complaint["rule"] for complaint in report["complaints"]] == ["step-after-done"]
    assert report["environment"] == "Parrot"
    assert report["skipped"] == {}


def test_an_address_without_a_scheme_is_a_server() -> None:
    code, _, err = check("127.0.0.1:9")
    assert code == 1
    assert "nothing answers at http://127.0.0.1:9" in err


def test_nothing_is_said_of_an_example() -> None:
    code, out, err = check(str(EXAMPLES / "museum.py"))
    assert (code, err) == (0, "")
    assert "Museum: nothing to complain of" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["wrong.py", "--only", "nothing"], "there is no such rule"),
        (["wrong.py", "--env", "right"], "there is no such environment"),
        (["no_such_file.py"], "there is no such file"),
    ],
)
def test_what_cannot_be_done_is_said(words: list[str], said: str, folder: Path) -> None:
    code, _, err = check(*words, cwd=folder)
    assert code == 2
    assert said in " ".join(err.split())
