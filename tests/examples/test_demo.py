"""The demo as `make demo` runs it, in a reduced size: its table and its exit code."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from example_files import EXAMPLES, load

LINE = re.compile(r"^(?P<data_set>\w+) +(?P<agent>guess|knows) +(?P<episodes>\d+) +(?P<mean>[\d.]+|–) +(?P<rest>.*)$")


@pytest.fixture(autouse=True)
def _package_is_there():
    load("reasoning_gym")


def run_demo(*arguments, folder=EXAMPLES, columns="80"):
    return subprocess.run(
        [sys.executable, folder / "demo.py", *arguments],
        env={**os.environ, "COLUMNS": columns},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
    )


def lines(output):
    return [match.groupdict() for line in output.splitlines() if (match := LINE.match(line))]


@pytest.fixture
def copied(tmp_path):
    """The examples in a folder of their own: the demo writes a file beside itself."""
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__", "*.jsonl"))
    return folder


def results_in(folder):
    return [json.loads(line) for line in (folder / "demo-results.jsonl").read_text().splitlines()]


def test_the_agent_that_knows_reaches_one_on_every_data_set(copied):
    (copied / "demo-results.jsonl").write_text("what was left of another time\n")
    done = run_demo("--episodes", "2", folder=copied)
    assert (done.returncode, done.stderr) == (0, "")
    names = [cls.name() for cls in load("reasoning_gym").ENVIRONMENTS]
    assert len(names) >= 8
    rows = lines(done.stdout)
    assert [(row["data_set"], row["agent"]) for row in rows] == [
        (name, agent) for name in [*names, "all"] for agent in ("guess", "knows")
    ]
    assert {row["mean"] for row in rows if row["agent"] == "knows"} == {"1.00"}
    assert all(float(row["mean"]) < 1 for row in rows if row["data_set"] == "all" and row["agent"] == "guess")
    assert [row["episodes"] for row in rows] == ["2"] * (2 * len(names)) + [str(2 * len(names))] * 2
    for row in rows:
        interval, finished, failed, rate, p50, p99 = row["rest"].split()
        low, high = map(float, interval.split(".."))
        assert low <= float(row["mean"]) <= high
        assert (finished, failed) == ("100%", "0")
        assert float(rate) > 0
        assert 0 < float(p50) <= float(p99)
    assert max(map(len, done.stdout.partition("Where to look next")[0].splitlines()[1:])) <= 80
    assert len(results_in(copied)) == 4 * len(names)
    assert "Where to look next" in done.stdout
    named = re.findall(r"examples/\w+\.py", done.stdout.partition("Where to look next")[2])
    assert len(named) >= 6
    assert [name for name in named if not (EXAMPLES.parent / name).is_file()] == []


def test_failures_are_counted_by_kind_and_wrong_rewards_fail_the_demo(copied):
    file = copied / "reasoning_gym.py"
    line = "        reward = float(self.verifier.score_answer(answer, self.entry))\n"
    broken = '        if self.data_set == "survo":\n            raise RuntimeError("the verifier is out of order")\n'
    assert line in file.read_text()
    file.write_text(file.read_text().replace(line, line + broken))
    done = run_demo("--episodes", "2", folder=copied, columns="120")
    assert done.returncode == 1
    rows = {(row["data_set"], row["agent"]): row for row in lines(done.stdout)}
    assert rows["survo", "knows"]["mean"] == "–"  # a failure is no reward of 0
    assert rows["survo", "knows"]["rest"].split()[:3] == ["–", "–", "2"]
    assert rows["chain_sum", "knows"]["mean"] == "1.00"
    assert rows["all", "knows"]["mean"] == "1.00"
    assert re.search(r"4 × tool_failed  survo \d+: .*the verifier is out of order", done.stdout)
    assert "Where to look next" not in done.stdout


def test_an_agent_that_knows_and_is_paid_less_than_one_fails_the_demo(copied):
    file = copied / "reasoning_gym.py"
    line = "        reward = float(self.verifier.score_answer(answer, self.entry))\n"
    file.write_text(
        file.read_text().replace(line, f'{line}        reward *= 0.9 if self.data_set == "syllogism" else 1\n')
    )
    done = run_demo("--episodes", "2", folder=copied)
    assert done.returncode == 1
    rows = {(row["data_set"], row["agent"]): row["mean"] for row in lines(done.stdout)}
    assert rows["syllogism", "knows"] == "0.90"
    assert "The agent that knows the answers did not reach 1.00 on: syllogism\n" in done.stdout


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "kill"])
def test_an_interrupted_demo_tells_what_it_has(number, code, copied):
    command = [sys.executable, copied / "demo.py", "--episodes", "10000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8") as demo:
        deadline = time.monotonic() + 60
        while not ((copied / "demo-results.jsonl").is_file() and results_in_part(copied)):
            assert time.monotonic() < deadline, "nothing is played"
            time.sleep(0.02)
        demo.send_signal(number)
        said = demo.stdout.read()
        assert demo.wait(timeout=60) == code
    assert "Traceback" not in said
    assert "Interrupted; the server is stopped." in said
    played = int(re.search(r"([\d,]+) episodes? of split test played", said)[1].replace(",", ""))
    assert played == len(results_in(copied))


def results_in_part(folder):
    return (folder / "demo-results.jsonl").read_bytes().count(b"\n")


def test_a_server_that_cannot_start_says_why(tmp_path):
    (tmp_path / "broken.py").write_text("raise ValueError('this file is broken')\n")
    with (
        load("serving").ServerProcess(tmp_path / "broken.py") as server,
        pytest.raises(RuntimeError, match="(?s)did not start.*ValueError: this file is broken"),
    ):
        server.wait_until_ready()


def test_an_agent_that_presses_at_random_plays_lights_out_to_its_end(tmp_path):
    command = [
        sys.executable,
        "-m",
        "ors.cli",
        "run",
        "examples/lights_out.py",
        "-a",
        "examples/agents.py:press_at_random",
    ]
    command += ["--limit", "5", "--seed", "1", "-o", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=EXAMPLES.parent, capture_output=True, encoding="utf-8", timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    results = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert len(results) == 5
    for result in results:
        assert result["finished"]
        assert len(result["rewards"]) == len(result["call_seconds"]) > 1
