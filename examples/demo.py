"""The demo: real episodes of real tasks, played over HTTP against a real server. Run it with `make demo`.

Two agents play every data set of `reasoning_gym.py`, 32 episodes at once. One guesses. The other knows the answers: it
generates the item again from the task's split and index, as only somebody outside the server can who has the package.
It has to reach a mean reward of 1.00, and no episode may fail; else the demo ends with exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import math
import re
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from driver import Blocks, Driver, Episode, Failure, Move, text_of
from serving import ServerProcess, load

HERE = Path(__file__).resolve().parent
FILE = HERE / "reasoning_gym.py"
AT_ONCE = 32
SPLIT = "test"


def guess(question: str) -> str:
    """The naive agent's answer: the last word or number of the question."""
    return str(re.findall(r"[\w.]*\w", question)[-1])


@dataclass
class Row:
    """A line of the table: one agent on one data set."""

    data_set: str
    agent: str
    episodes: list[Episode] = field(default_factory=list)

    @property
    def rewards(self) -> list[float]:
        return [sum(episode.rewards) for episode in self.episodes if episode.failure is None]

    @property
    def failures(self) -> collections.Counter[str]:
        return collections.Counter(episode.failure.kind for episode in self.episodes if episode.failure)

    def cells(self, at_once: int) -> list[str]:
        """What the table says of it. The mean is of the episodes that were played to their end."""
        rewards = self.rewards
        calls = sorted(seconds for episode in self.episodes for seconds in episode.call_seconds)
        # As many are always under way, so this is how many end each second when nothing but such episodes is played.
        rate = at_once * len(self.episodes) / sum(episode.seconds for episode in self.episodes)
        return [
            self.data_set,
            self.agent,
            str(len(self.episodes)),
            f"{math.fsum(rewards) / len(rewards):.2f}" if rewards else "–",
            ", ".join(f"{count} × {kind}" for kind, count in self.failures.most_common()) or "0",
            f"{rate:.0f}",
            f"{percentile(calls, 0.50) * 1000:.1f}" if calls else "–",
            f"{percentile(calls, 0.99) * 1000:.1f}" if calls else "–",
        ]


def percentile(ordered: list[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass
class Job:
    """An episode to play: its line, its task, what the question must be, and the answer if the agent knows it."""

    row: Row
    index: int
    question: str
    answer: str | None

    def act(self, shown: Blocks) -> Move:
        """Submit the answer, or a guess."""
        question = text_of(shown)
        if question != self.question:
            raise Failure("wrong question", "the prompt is not the task's own")
        return "submit", {"answer": guess(question) if self.answer is None else self.answer}


def plan(count: int) -> tuple[list[Row], list[Job]]:
    """The lines of the table, and `count` episodes for each; their tasks are spread over the whole split.

    All items are generated here, before the clock starts: what is measured is the server, not the agent's memory.
    """
    module = load(FILE)
    stride = len(module.SEEDS[SPLIT]) // count
    rows, jobs = [], []
    for environment in module.ENVIRONMENTS:
        items = [(index, environment.item(SPLIT, index)) for index in range(0, stride * count, stride)]
        for agent in ("naive", "knows"):
            row = Row(environment.name(), agent)
            rows.append(row)
            knows = agent == "knows"
            jobs += [Job(row, index, item["question"], item["answer"] if knows else None) for index, item in items]
    return rows, jobs


async def play(url: str, jobs: list[Job], console: Console) -> None:
    """Play all episodes, and add each to its line."""
    left = iter(jobs)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=AT_ONCE), timeout=aiohttp.ClientTimeout(total=60)
    ) as http:
        driver = Driver(url, http)
        with Progress(*columns, console=console) as progress:
            bar = progress.add_task("Playing", total=len(jobs))

            async def work() -> None:
                for job in left:
                    episode = await driver.play(job.row.data_set, {"split": SPLIT, "index": job.index}, job.act)
                    job.row.episodes.append(episode)
                    progress.update(bar, advance=1, description=job.row.data_set)

            async with asyncio.TaskGroup() as workers:
                for _ in range(AT_ONCE):
                    workers.create_task(work())
            progress.update(bar, description="Played")


def report(rows: list[Row], console: Console) -> bool:
    """Print the table, and say whether all is as it has to be."""
    at_once = min(AT_ONCE, sum(len(row.episodes) for row in rows))
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    for heading in ("\ndata set", "\nagent"):
        table.add_column(heading, no_wrap=True)
    for heading in ("\nepisodes", "mean\nreward", "\nfailures", "episodes\nper s", "call p50\nms", "call p99\nms"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row.cells(at_once), end_section=row is rows[-1])
    for agent in dict.fromkeys(row.agent for row in rows):
        played = [episode for row in rows if row.agent == agent for episode in row.episodes]
        table.add_row(*Row("all", agent, played).cells(at_once), style="bold")
    console.print(table)

    well = True
    for row in rows:
        for episode in row.episodes:
            if episode.failure:
                well = False
                console.print(f"{row.data_set}, {row.agent}: {episode.failure}", style="red", markup=False)
                break
        if row.agent == "knows" and any(reward != 1.0 for reward in row.rewards):
            well = False
            console.print(f"{row.data_set}: the agent that knows the answers did not reach 1.00", style="red")
    return well


NEXT = """
Where to look next
  examples/reasoning_gym.py   the environments that were just played
  examples/lights_out.py      many steps, state, a reward for each step
  examples/clock_reading.py   an image in the prompt
  examples/sealed_answers.py  a secret that each session brings
  examples/museum.py          a folder of files
  examples/driver.py          the protocol from the other side: how these episodes were played
To serve one: .venv/bin/ors serve examples/lights_out.py, then open http://127.0.0.1:8080/docs"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Play real episodes against a real server.")
    parser.add_argument("--episodes", type=int, default=20, help="episodes of each agent on each data set")
    count = parser.parse_args().episodes
    if not 1 <= count <= 10_000:
        parser.error("--episodes is a number from 1 to 10000")
    # A closed terminal and a plain `kill` stop the server on the way out, as Ctrl-C does.
    for name in ("SIGTERM", "SIGHUP"):
        if number := getattr(signal, name, None):
            signal.signal(number, lambda received, _frame: sys.exit(128 + received))
    console = Console(highlight=False)
    try:
        well = demo(count, console)
    except KeyboardInterrupt:
        console.print("Interrupted; the server is stopped.")
        return 130
    if well:
        console.print(NEXT, markup=False, soft_wrap=True)
    return 0 if well else 1


def demo(count: int, console: Console) -> bool:
    """Serve, play, report; return whether all went as it has to."""
    started = time.perf_counter()
    with ServerProcess(FILE) as server:
        with console.status("Starting a server"):
            rows, jobs = plan(count)  # while the server imports the package, we do
            server.wait_until_ready()
        console.print(f"A server with {FILE.name} runs at {server.url} (process {server.process.pid}).")
        asyncio.run(play(server.url, jobs, console))
        well = report(rows, console)
        if code := server.stop():
            well = False
            console.print(f"The server ended with exit code {code}.", style="red")
        if not well:
            console.print("The server's last words:")
            console.print(*server.log_text().splitlines()[-20:], sep="\n", markup=False, soft_wrap=True)
    console.print(f"{time.perf_counter() - started:.1f} s in all; the server is stopped.")
    return well


if __name__ == "__main__":
    sys.exit(main())
