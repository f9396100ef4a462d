"""The demo: real episodes of real tasks, played over HTTP against a real server. Run it with `make demo`.

It is one `ors run`. Two agents of `agents.py` play every data set of `reasoning_gym.py`, 32 episodes at once. One
guesses. The other knows the answers: it generates the item again from the split and index of the task, as only somebody
outside the server can who has the package. It has to reach a mean reward of 1.00, and no episode may fail; else the
demo ends with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "demo-results.jsonl"
KNOWS = f"{HERE.name}/agents.py:knows"
NEXT = """
Where to look next
  examples/reasoning_gym.py   the environments that were just played
  examples/agents.py          the agents that played them
  examples/demo-results.jsonl what came of each episode, a line for each
  examples/lights_out.py      many steps, state, a reward for each step
  examples/clock_reading.py   an image in the prompt
  examples/sealed_answers.py  a secret that each session brings
  examples/museum.py          a folder of files
  examples/driver.py          the protocol from the other side, without a client
To play one yourself: .venv/bin/ors play examples/lights_out.py
To serve one: .venv/bin/ors serve examples/lights_out.py, then open http://127.0.0.1:8080/docs
To start your own: .venv/bin/ors init my_game"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Play real episodes against a real server.")
    parser.add_argument("--episodes", type=int, default=20, help="episodes of each agent on each data set")
    count = parser.parse_args().episodes
    if not 1 <= count <= 10_000:
        parser.error("--episodes is a number from 1 to 10000")
    RESULTS.unlink(missing_ok=True)  # else what was played before would not be played again
    words = ["run", f"{HERE.name}/reasoning_gym.py", "--agent", f"{HERE.name}/agents.py:guess", "--agent", KNOWS]
    words += ["--split", "test", "--limit", str(count), "--seed", "1", "--concurrency", "32"]
    words += ["--output", f"{HERE.name}/{RESULTS.name}"]
    print(f"$ ors {shlex.join(words)}\n", flush=True)
    code = ors(words)
    if code > 128:
        print("Interrupted; the server is stopped.")
        return code
    if code:
        return 1
    missed = short_of_one(RESULTS)
    if missed:
        print(f"\nThe agent that knows the answers did not reach 1.00 on: {', '.join(missed)}")
        return 1
    print(NEXT)
    return 0


def ors(words: list[str]) -> int:
    """Run the command in this process, so that nothing outlives it, and return its exit code."""
    from ors.cli import app

    os.chdir(HERE.parent)
    for name in [name for name in os.environ if name.startswith("ORS_")]:
        del os.environ[name]  # what is set for other servers (keys, limits) is not meant for this one
    return int(app(words, prog_name="ors", standalone_mode=False) or 0)


def short_of_one(results: Path) -> list[str]:
    """The data sets on which the agent that knows got less than it has to."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    return sorted({line["env"] for line in lines if line["agent"] == KNOWS and line["reward"] != 1.0})


if __name__ == "__main__":
    sys.exit(main())
