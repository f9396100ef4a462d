"""The demo as `make demo` runs it, in a reduced size: its table, its exit code, and that it leaves no server behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest
from example_files import EXAMPLES, load

LINE = re.compile(r"^(?P<data_set>\w+) +(?P<agent>naive|knows) +(?P<episodes>\d+) +(?P<mean>[\d.]+|–) +(?P<rest>.*)$")


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


def server_of(output):
    return int(re.search(r"\(process (\d+)\)", output)[1])


def is_running(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_the_agent_that_knows_reaches_one_on_every_data_set():
    done = run_demo("--episodes", "2")
    assert (done.returncode, done.stderr) == (0, "")
    names = [cls.name() for cls in load("reasoning_gym").ENVIRONMENTS]
    assert len(names) >= 8
    rows = lines(done.stdout)
    assert [(row["data_set"], row["agent"]) for row in rows] == [
        (name, agent) for name in [*names, "all"] for agent in ("naive", "knows")
    ]
    assert {row["mean"] for row in rows if row["agent"] == "knows"} == {"1.00"}
    assert all(float(row["mean"]) < 1 for row in rows if row["data_set"] == "all" and row["agent"] == "naive")
    assert [row["episodes"] for row in rows] == ["2"] * (2 * len(names)) + [str(2 * len(names))] * 2
    for row in rows:
        failures, rate, p50, p99 = row["rest"].split()
        assert failures == "0"
        assert float(rate) > 0
        assert 0 < float(p50) <= float(p99)
    assert "Where to look next" in done.stdout
    named = re.findall(r"examples/\w+\.py", done.stdout)
    assert len(named) >= 6
    assert [name for name in named if not (EXAMPLES.parent / name).is_file()] == []
    assert not is_running(server_of(done.stdout))


def test_failures_are_counted_by_kind_and_wrong_rewards_fail_the_demo(tmp_path):
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "reasoning_gym.py"
    line = "        reward = float(self.verifier.score_answer(answer, self.entry))\n"
    broken = (
        '        if self.data_set == "survo":\n'
        '            raise RuntimeError("the verifier is out of order")\n'
        '        if self.data_set == "syllogism":\n'
        "            reward *= 0.9\n"
    )
    assert line in file.read_text()
    file.write_text(file.read_text().replace(line, line + broken))
    done = run_demo("--episodes", "2", folder=folder, columns="120")
    assert done.returncode == 1
    rows = {(row["data_set"], row["agent"]): row for row in lines(done.stdout)}
    assert rows["survo", "knows"]["mean"] == "–"  # a failure is no reward of 0
    assert rows["survo", "knows"]["rest"].startswith("2 × tool raised")
    assert rows["syllogism", "knows"]["mean"] == "0.90"
    assert rows["chain_sum", "knows"]["mean"] == "1.00"
    assert float(rows["all", "knows"]["mean"]) == pytest.approx((20 + 1.8) / 22, abs=0.006)
    assert "survo, knows: tool raised: RuntimeError: the verifier is out of order" in done.stdout
    assert "syllogism: the agent that knows the answers did not reach 1.00" in done.stdout
    assert not is_running(server_of(done.stdout))


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
    ids=["ctrl-c", "kill", "kill-9"],
)
def test_however_the_demo_ends_its_server_ends_too(number, code):
    command = [sys.executable, EXAMPLES / "demo.py", "--episodes", "100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8") as demo:
        pid = server_of(demo.stdout.readline())
        assert is_running(pid)
        demo.send_signal(number)
        said = demo.stdout.read()
        assert demo.wait(timeout=60) == code
    assert "Traceback" not in said
    deadline = time.monotonic() + 30
    while is_running(pid):
        assert time.monotonic() < deadline, "the server outlived the demo"
        time.sleep(0.02)


def test_a_server_that_cannot_start_says_why(tmp_path):
    (tmp_path / "broken.py").write_text("raise ValueError('this file is broken')\n")
    with (
        load("serving").ServerProcess(tmp_path / "broken.py") as server,
        pytest.raises(RuntimeError, match="(?s)did not start.*ValueError: this file is broken"),
    ):
        server.wait_until_ready()
