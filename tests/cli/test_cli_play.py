"""`ors play` in a real terminal: what a person sees, types, mistypes, and leaves behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_commands import Command
from cli_terminal import Terminal

FILE = Path(__file__).with_name("cli_environments.py")
Start = Callable[..., Command]
Play = Callable[..., Terminal]


@pytest.fixture(autouse=True)
def games(tmp_path: Path) -> Path:
    """The environments in the folder that commands run in."""
    return Path(shutil.copy(FILE, tmp_path / "games.py"))


@pytest.fixture
def teardowns(tmp_path: Path) -> Path:
    """Where the environments note that a session of theirs has ended."""
    return tmp_path / "teardowns"


def test_an_episode_with_mistakes(terminal: Play, teardowns: Path) -> None:
    play = terminal("play", "games.py:Sums", "-s", "train", "-i", "41", TEARDOWNS=str(teardowns))
    play.wait_for(r"sums, task 41 of train")
    play.wait_for(r"What is 41 \+ 1\?")
    play.wait_for(r"3 +hint +Ask for a hint, which costs\.")
    play.wait_for(r"> $")
    play.type("nothing")
    play.wait_for("there is no tool 'nothing'")
    play.type("?")
    play.wait_for("the prompt again")
    play.type("t")
    play.wait_for(r"answer: integer\. The sum\.")
    play.type("p")
    play.wait_for(r"What is 41 \+ 1\?")
    play.type("3")
    play.wait_for(r"It is one more\.")
    play.wait_for(r'metadata \{"hints": 1\}')
    play.wait_for(r"reward -0\.25")
    play.type("fail")
    play.wait_for("Tool 'fail' failed: not today")
    play.type("explode")
    play.wait_for(r"the tool broke \(tool_failed\): .*out of order")
    play.type("rude")
    play.wait_for(re.escape(r"\x1b[2J\x1b]0;owned\x07clean"))
    play.type("reveal")
    play.wait_for("printed by the tool")
    play.wait_for("none")
    play.type("submit {broken")
    play.wait_for("is no JSON")
    play.type("sub")
    play.wait_for(r"answer \(integer\) The sum\.")
    play.wait_for("answer = ")
    play.type("")
    play.wait_for("answer is needed")
    play.type("five")
    play.wait_for("five is not an integer")
    play.wait_for("answer = $")
    play.press("\x04")
    play.wait_for("not called")
    play.type('submit {"answer": 42}')
    play.wait_for("Right.")
    play.wait_for(r"reward \+1 +0\.75 in all")
    play.wait_for(r"The episode is finished: 6 calls, reward 0\.75 \(last 1, greatest 1\), \d+ s\.")
    play.wait_for(r"This task again: ors play games.py:Sums --env sums --split train --index 41")
    assert play.end() == 0
    assert b"owned\x07" not in play.raw
    assert teardowns.read_text() == "torn down\n"


def test_every_kind_of_input_and_images(terminal: Play, tmp_path: Path) -> None:
    (tmp_path / "tags.json").write_text('["from a file"]')
    play = terminal("play", "games.py", "-e", "forms", "--images", "pictures", "--task", '{"number": 1}')
    play.wait_for("forms, a task of your own")
    play.wait_for("Look:")
    play.wait_for("▀▀\n▀▀")  # two pixels by three in half blocks, the last line of a height made even
    assert b"38;2;255;0;0" in play.raw
    play.wait_for(r"\[image: image/png, 2×3, 76 bytes\] saved as pictures/image-1.png")
    assert (tmp_path / "pictures" / "image-1.png").read_bytes()[:4] == b"\x89PNG"
    play.wait_for("> $")
    play.type("1")
    play.wait_for(r"title \(text\) What it is called\.")
    play.type('"""')
    play.wait_for("… ")
    play.type("two")
    play.type('lines"""')
    play.wait_for(r"colour \(one of red, green\)")
    play.wait_for(r"2 +green")
    play.type("blue")
    play.wait_for("blue is none of red, green")
    play.type("2")
    play.wait_for(r"count \(integer; default 3\)")
    play.type("")
    play.wait_for(r"ratio \(number; optional\)")
    play.type("half")
    play.wait_for("half is not a number")
    play.type("0.5")
    play.wait_for(r"loud \(yes or no; default false\)")
    play.type("maybe")
    play.wait_for("neither yes nor no")
    play.type("y")
    play.wait_for(r"size \(JSON.*; optional\)")
    play.type('{"width": 10}')
    play.wait_for("10 is greater than the maximum of 9")
    play.type('{"width":')
    play.wait_for("… ")
    play.type("4}")
    play.wait_for(r"tags \(JSON array; default \[\]\)")
    play.type("@absent.json")
    play.wait_for(r"absent\.json cannot be read: No such file")
    play.type("@tags.json")
    play.wait_for(re.escape(r"'two\nlines' green 3 0.5 True width=4 height=2 ['from a file']"))
    play.wait_for(r"saved as pictures/image-2\.png")
    play.wait_for(r"reward \+0\.5")
    play.type("answer")
    play.wait_for(r"text = ")
    play.type("over")
    play.wait_for("Heard.")
    play.wait_for(r"The episode is finished: 2 calls, reward 1\.5 \(last 1, greatest 1\)")
    assert play.end() == 0


def test_what_is_not_named_is_asked_for(terminal: Play) -> None:
    play = terminal("play", "games.py")
    play.wait_for("Which environment?")
    play.wait_for(r"2 +forms")
    play.type("3")
    play.wait_for("3 is none of them")
    play.type("sums")
    play.wait_for("Which split?")
    play.wait_for(r"\[train\] > ")
    play.type("2")
    found = play.wait_for(r"sums, task (\d) of held out")
    assert int(found[1]) in range(5)
    play.wait_for("> $")
    play.press("\x04")
    play.wait_for("The episode is left before its end: 0 calls, no reward")
    play.wait_for(rf"--split 'held out' --index {found[1]}")
    assert play.end() == 0


def test_ctrl_d_at_the_first_question(terminal: Play) -> None:
    play = terminal("play", "games.py")
    play.wait_for("> $")
    play.press("\x04")
    play.wait_for("error: nothing was chosen; name what to play")
    assert play.end() == 2


@pytest.mark.parametrize("where", ["menu", "form"])
def test_ctrl_c_leaves_nothing_behind(terminal: Play, teardowns: Path, where: str, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    play = terminal("play", "games.py:Forms", "-s", "train", TEARDOWNS=str(teardowns), TMPDIR=str(spool))
    play.wait_for(rf"saved as {spool}/ors-play-\w+/image-1\.png")
    play.wait_for("> $")
    if where == "form":
        play.type("paint")
        play.wait_for("title = ")
    play.press("\x03")
    play.wait_for("The episode is left before its end")
    assert play.end() == 130
    assert "Traceback" not in play.text
    assert teardowns.read_text() == "torn down\n"
    assert list(spool.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_kill_ends_the_episode_too(terminal: Play, teardowns: Path, number: int, code: int) -> None:
    play = terminal("play", "games.py:Sums", "-s", "train", TEARDOWNS=str(teardowns))
    play.wait_for("> $")
    os.kill(play.process.pid, number)
    assert play.end() == code
    assert "Traceback" not in play.text
    assert teardowns.read_text() == "torn down\n"


def test_on_a_server_elsewhere_that_goes_away(terminal: Play, start: Start, teardowns: Path) -> None:
    server = start("serve", "games.py:Sums", "--port", "0", TEARDOWNS=str(teardowns))
    url = server.address()
    first = terminal("play", url, "-s", "train", "-i", "1")
    first.wait_for("> $")
    first.press("\x03")
    assert first.end() == 130
    assert teardowns.read_text() == "torn down\n"
    play = terminal("play", url, "-s", "train", "-i", "1")
    play.wait_for("> $")
    assert server.end() == 0
    play.type("hint")
    play.wait_for("the call failed: |the session is lost", seconds=90)
    assert "Traceback" not in play.text
    play.press("\x03")
    assert play.end(90) == 130


def test_without_a_terminal_it_plays_what_is_piped_in(ors: Callable[..., object], tmp_path: Path) -> None:
    import subprocess
    import sys

    from cli_commands import clean_environment

    done = subprocess.run(
        [sys.executable, "-m", "ors.cli", "play", "games.py:Sums", "-s", "train", "-i", "1"],
        cwd=tmp_path,
        env=clean_environment(TMPDIR=str(tmp_path)),
        input="submit\n2\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Right.\n" in done.stdout
    assert "\x1b" not in done.stdout
    assert list(tmp_path.glob("ors-play-*")) == []
