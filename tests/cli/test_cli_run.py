"""`ors run`: numbers that are right, results that survive a kill, and an end in order."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_commands import Command, clean_environment
from cli_terminal import Terminal

from ors.tasks import task_key

Run = Callable[..., subprocess.CompletedProcess[str]]
FILE = Path(__file__).with_name("cli_environments.py")
GAMES = str(FILE)
AGENTS = """
import asyncio, os, re, time
from pathlib import Path


async def right(session):
    number = int(re.search(r"\\d+", (await session.get_prompt())[0].text)[0])
    await session.call_tool("hint")
    await session.call_tool("submit", {"answer": number + 1})
    session.notes["asked"] = number


def wrong(session):
    session.call_tool("submit", {"answer": -1})


def mixed(session):
    if session.index % 4 == 0:
        session.call_tool("explode")
    elif session.index % 4 == 1:
        raise KeyError("mine")
    elif session.index % 4 == 2:
        return
    session.call_tool("submit", {"answer": session.index + 1})


def by_luck(session):
    session.call_tool("submit", {"answer": session.index + session.random.randrange(2)})


def slow(session):
    with Path(os.environ["PLAYED"]).open("a") as file:
        file.write(f"{session.index}.{session.repeat}\\n")
    time.sleep(0.01)
    session.call_tool("submit", {"answer": session.index + 1})


async def forever(session):
    Path(os.environ["PLAYED"]).touch()
    await asyncio.sleep(3600)


def secretive(session):
    session.notes["said"] = session.call_tool("reveal").blocks[0].text
    session.call_tool("submit", {"answer": session.index + 1})


agent = right
number = 3
"""


@pytest.fixture(autouse=True)
def agents(tmp_path: Path) -> Path:
    """Agents in a file whose name no other test imports."""
    path = tmp_path / f"agents_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(AGENTS)
    return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def keys_of(path: Path) -> Counter[tuple[int, int]]:
    return Counter((line["index"], line["repeat"]) for line in lines_of(path))


def numbers(done: subprocess.CompletedProcess[str], code: int = 0) -> Any:
    """The JSON that a run printed, and nothing else."""
    assert (done.returncode, done.stderr) == (code, ""), done.stderr
    return json.loads(done.stdout)


def test_the_numbers(here: Run, agents: Path, tmp_path: Path) -> None:
    words = ("run", f"{GAMES}:Sums", "-a", f"{agents}:right", "-a", f"{agents}:wrong", "-s", "train", "-n", "20")
    said = numbers(here(*words, "--output", "out.jsonl", "--json"))
    right, wrong = said["results"]
    assert (right["agent"], right["env"], right["split"]) == (f"{agents}:right", "sums", "train")
    assert (right["mean"], right["episodes"], right["finished"], right["failed"], right["calls"]) == (
        0.75,
        20,
        1,
        0,
        40,
    )
    assert (wrong["mean"], wrong["low"], wrong["calls"]) == (0, 0, 20)
    assert 0.1 < wrong["high"] < 0.2
    assert right["episodes_per_s"] > 0
    assert 0 < right["call_p50_ms"] <= right["call_p99_ms"]
    assert [total["mean"] for total in said["totals"]] == [0.75, 0]
    assert (said["episodes"], said["planned"], said["played_now"], said["failures"]) == (40, 40, 40, [])
    lines = lines_of(tmp_path / "out.jsonl")
    assert len(lines) == 40
    mine = {line["index"]: line for line in lines if line["agent"] == f"{agents}:right"}
    assert sorted(mine) == list(range(20))
    assert mine[7]["rewards"] == [-0.25, 1]
    assert mine[7]["reward"] == 0.75
    assert mine[7]["notes"] == {"asked": 7}
    assert set(mine[7]) >= {"env", "split", "index", "repeat", "finished", "failure", "session", "seconds", "seed"}


@pytest.mark.parametrize(("how", "mean"), [("last", 1.0), ("max", 1.0), ("sum", 0.75)])
def test_rewards_count_as_one_says(here: Run, agents: Path, how: str, mean: float) -> None:
    said = numbers(here("run", f"{GAMES}:Sums", "-a", f"{agents}", "-n", "3", "--reward", how, "--json"))
    assert said["results"][0]["mean"] == mean
    assert said["results"][0]["split"] == "held out"  # the split of type test


def test_failures_have_kinds_and_are_in_no_mean(here: Run, agents: Path) -> None:
    words = ("run", f"{GAMES}:Sums", "-a", f"{agents}:mixed", "-s", "train", "-n", "40")
    said = numbers(here(*words, "--json"), code=3)
    row = said["results"][0]
    assert row["failures"] == {"tool_failed": 10, "agent_raised": 10}
    assert (row["mean"], row["rewarded"], row["unrewarded"], row["finished"]) == (1.0, 10, 10, 0.5)
    assert {one["kind"] for one in said["failures"]} == {"tool_failed", "agent_raised"}
    shown = here(*words)
    assert shown.returncode == 3
    assert re.search(r"10 × tool_failed  sums \d+: .*out of order", shown.stdout)
    assert re.search(r"10 × agent_raised  sums \d+: KeyError: 'mine' \(agents_\w+\.py, line \d+\)", shown.stdout)
    assert "10 episodes ended without any reward" in shown.stdout
    assert numbers(here(*words, "--unpaid", "0", "--json"), code=3)["results"][0]["mean"] == 0.5


def test_a_mean_that_is_too_low(here: Run, agents: Path) -> None:
    words = ("run", f"{GAMES}:Sums", "-a", str(agents), "-n", "3", "--json", "--require")
    assert numbers(here(*words, "0.75"))["results"][0]["mean"] == 0.75
    numbers(here(*words, "0.76"), code=3)


def test_a_seed_picks_the_tasks_and_the_luck(here: Run, agents: Path, tmp_path: Path) -> None:
    def play(name: str, *words: str) -> dict[tuple[int, int], float]:
        done = here("run", f"{GAMES}:Sums", "-a", f"{agents}:by_luck", "-s", "train", "-n", "10", "-o", name, *words)
        assert done.returncode == 0
        return {(line["index"], line["repeat"]): line["reward"] for line in lines_of(tmp_path / name)}

    first = play("first", "--seed", "1", "--repeat", "3")
    assert first == play("again", "--seed", "1", "--repeat", "3", "--concurrency", "1")
    other = play("other", "--seed", "2", "--repeat", "3")
    assert first.keys() != other.keys()
    assert len(first) == 30
    assert len({index for index, _ in first}) == 10
    assert set(first.values()) == {0.0, 1.0}
    refused = here(
        "run", f"{GAMES}:Sums", "-a", f"{agents}:by_luck", "-s", "train", "-n", "1200", "-o", "first", "--seed", "3"
    )
    assert refused.returncode == 2
    assert "results of another --seed" in refused.stderr


def test_every_environment_and_a_table_for_people(here: Run, agents: Path) -> None:
    done = here("run", GAMES, "-a", f"{agents}:mixed", "-n", "2", COLUMNS="80")
    assert done.returncode == 3
    assert [line.split()[0] for line in done.stdout.splitlines() if re.match(r"\w+ +2|all", line)] == [
        "sums",
        "forms",
        "all",
    ]
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert re.search(r"4 episodes of split held out played in [\d.]+ s\.", done.stdout)


def test_secrets_reach_the_environment(here: Run, agents: Path, tmp_path: Path) -> None:
    words = ("run", f"{GAMES}:Sums", "-a", f"{agents}:secretive", "-n", "1", "-o", "out", "--secret", "KEY=12345678")
    assert here(*words).returncode == 0
    assert lines_of(tmp_path / "out")[0]["notes"] == {"said": "KEY=8"}
    assert "12345678" not in (tmp_path / "out").read_text()


def test_the_log_of_a_target(here: Run, agents: Path, tmp_path: Path) -> None:
    assert here("run", f"{GAMES}:Sums", "-a", f"{agents}:mixed", "-n", "1", "--log", "log.txt").returncode == 3
    assert re.search(r"INFO +episode ended .*env=sums .*failed=1", (tmp_path / "log.txt").read_text())
    refused = here("run", "http://127.0.0.1:9", "-a", f"{agents}:mixed", "--log", "log.txt")
    assert refused.returncode == 2
    assert "a server elsewhere has a log of its own" in refused.stderr


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("absent.py:agent", "there is no file absent.py"),
        ("no_such_module:agent", "there is no module 'no_such_module'"),
        ("{file}:rihgt", "do you mean 'right'?"),
        ("{file}:number", "is of type int; an agent is a function"),
        ("{file}:a-b", "after the colon stands the name of a function"),
        ("a b", "is no agent"),
    ],
)
def test_what_is_no_agent(here: Run, agents: Path, agent: str, said: str) -> None:
    done = here("run", f"{GAMES}:Sums", "-a", agent.format(file=agents))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--retry-failed",), "--retry-failed needs --output"),
        (("--env", "sum"), "do you mean 'sums'?"),
        (("--split", "tests"), "there is no split of sums 'tests'"),
        (("-o", "notes.txt"), "line 1 is no result"),
        (("-o", "absent/out"), "No such file or directory"),
    ],
)
def test_what_cannot_be_run(here: Run, agents: Path, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "notes.txt").write_text("dear diary\n")
    done = here("run", f"{GAMES}:Sums", "-a", str(agents), *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_failures_are_played_again_when_one_says_so(here: Run, agents: Path, tmp_path: Path) -> None:
    words = ("run", f"{GAMES}:Sums", "-a", f"{agents}:mixed", "-s", "train", "-n", "12", "-o", "out", "--json")
    first = numbers(here(*words), code=3)
    assert (first["played_now"], len(first["failures"])) == (12, 2)
    assert numbers(here(*words), code=3)["played_now"] == 0
    again = numbers(here(*words, "--retry-failed"), code=3)
    assert (again["played_now"], again["episodes"]) == (6, 12)
    assert keys_of(tmp_path / "out") == Counter({(index, 0): 1 for index in range(12)})


def test_a_kill_at_any_moment_loses_no_result_and_plays_none_twice(agents: Path, tmp_path: Path) -> None:
    out, played = tmp_path / "out.jsonl", tmp_path / "played"
    command = [sys.executable, "-m", "ors.cli", "run", f"{GAMES}:Sums", "-a", f"{agents}:slow", "-s", "train"]
    command += ["--limit", "150", "--repeat", "2", "-c", "4", "-o", str(out), "--json"]
    env = clean_environment(PLAYED=str(played))
    for wanted in (3, 60, 150):
        process = subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not (out.exists() and out.read_bytes().count(b"\n") >= wanted):
            assert time.monotonic() < deadline, "nothing is played"
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.003)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        # as a kill within the writing of a line leaves it
        whole = out.read_bytes()
        out.write_bytes(whole + whole[: 20 + wanted])
    recorded = keys_of_whole_lines(out)
    before = Counter(played.read_text().split())
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    said = numbers(done)
    assert keys_of(out) == Counter({(index, repeat): 1 for index in range(150) for repeat in range(2)})
    assert (said["episodes"], said["planned"]) == (300, 300)
    assert said["played_now"] == 300 - len(recorded)
    assert said["results"][0]["mean"] == 1.0
    # an episode whose result was kept was begun no more
    after = Counter(played.read_text().split())
    assert not [key for key in recorded if after[f"{key[0]}.{key[1]}"] != before[f"{key[0]}.{key[1]}"]]
    # and whatever was begun more than once had been cut off by a kill: three kills, four at a time
    assert sum(count - 1 for count in after.values()) <= 3 * 4


def test_a_full_disk_ends_the_run_and_the_same_command_goes_on(agents: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "ors.cli",
        "run",
        f"{GAMES}:Sums",
        "-a",
        f"{agents}:wrong",
        "-s",
        "train",
        "-n",
        "30",
    ]
    command += ["-o", str(out), "--json"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    env = clean_environment()
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, preexec_fn=limit)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"error: .*/out: File too large; .* the same command goes on from there\n", done.stderr)
    assert out.stat().st_size == 4000
    assert not out.read_bytes().endswith(b"\n")
    kept = len(keys_of_whole_lines(out))
    said = numbers(subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60))
    assert (said["episodes"], said["played_now"]) == (30, 30 - kept)
    assert keys_of(out) == Counter({(index, 0): 1 for index in range(30)})


def keys_of_whole_lines(path: Path) -> set[tuple[int, int]]:
    whole = path.read_bytes().splitlines(keepends=True)[:-1]
    return {(line["index"], line["repeat"]) for line in map(json.loads, whole)}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupted_run_ends_its_sessions_and_says_how_to_go_on(
    agents: Path, tmp_path: Path, number: int, code: int
) -> None:
    played, teardowns = tmp_path / "played", tmp_path / "teardowns"
    command = [sys.executable, "-m", "ors.cli", "run", f"{GAMES}:Sums", "-a", f"{agents}:forever", "-s", "train"]
    env = clean_environment(PLAYED=str(played), TEARDOWNS=str(teardowns))
    process = subprocess.Popen(
        [*command, "-c", "5", "-o", "out"],
        env=env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not played.exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (code, "")
    assert "1,200 are left: the same command goes on with them." in out
    assert 1 <= teardowns.read_text().count("torn down\n") <= 5
    assert (tmp_path / "out").read_bytes() == b""


def test_a_server_that_goes_away_does_not_turn_what_is_left_into_failures(
    start: Callable[..., Command], here: Run, agents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ors.cli.running._GONE_S", 1.0)
    monkeypatch.setenv("PLAYED", str(tmp_path / "played"))
    server = start("serve", GAMES, "--port", "0")
    url, out = server.address(), tmp_path / "out"

    def kill_soon() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (out.exists() and out.read_bytes().count(b"\n") > 5):
            time.sleep(0.005)
        server.process.kill()

    killer = threading.Thread(target=kill_soon)
    killer.start()
    done = here("run", url, "-a", f"{agents}:slow", "-e", "sums", "-s", "train", "-c", "2", "-o", "out")
    killer.join()
    assert done.returncode == 1
    assert done.stderr == "The server answers no more: stopped; --retry-failed plays again what has failed.\n"
    assert "are left: the same command goes on with them" in done.stdout
    lines = lines_of(out)
    assert 5 < len(lines) < 1200
    assert len([line for line in lines if line["failure"]]) <= 2


def test_progress_on_a_terminal(terminal: Callable[..., Terminal], agents: Path, tmp_path: Path) -> None:
    shutil.copy(FILE, tmp_path / "games.py")
    run = terminal("run", "games.py:Sums", "-a", f"{agents.name}:slow", "-s", "train", "-n", "100", PLAYED="played")
    run.wait_for(r"Playing .*\d+/100 .*reward 1\.00")
    run.wait_for(r"100 episodes of split train played")
    assert run.end() == 0


def test_results_name_their_tasks_and_those_of_changed_tasks_are_played_again(
    here: Run, agents: Path, tmp_path: Path
) -> None:
    """The file of tasks gets another second row between two runs."""
    target = tmp_path / f"env_{agents.stem}.py"
    target.write_text(
        "from ors import Environment, ToolOutput, tool\n"
        "from ors.tasks import Jsonl\n"
        "class Sums(Environment):\n"
        "    tasks = Jsonl({'test': 'rows.jsonl'})\n"
        "    def get_prompt(self): return 'Go.'\n"
        "    @tool\n"
        "    def submit(self, answer: int) -> ToolOutput:\n"
        "        return ToolOutput(blocks='Noted.', reward=1.0, finished=True)\n"
    )
    rows = [{"number": number} for number in range(4)]

    def play() -> Any:
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        done = here("run", str(target), "-a", f"{agents}:wrong", "-o", "out.jsonl", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["played_now"], done.stderr

    assert play() == (4, "")
    assert [line["task_key"] for line in sorted(lines_of(tmp_path / "out.jsonl"), key=lambda line: line["index"])] == [
        task_key(row) for row in rows
    ]
    assert play() == (0, "")
    rows[1] = {"number": 100}
    played, said = play()
    assert (played, said.count("\n")) == (1, 1) and "1 results are of tasks that have changed" in said
    assert play() == (0, "")
