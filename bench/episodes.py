"""Episodes: how many in a second with which client on which server, and thousands of sessions open at once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from cores import on_core
from disturbance import CALM, children_s, core_busy_s
from failures import noting
from peers import clean_environ
from servers import ORS_SDK, OURS, Running, Subject, serving
from wire import KEY

AT_ONCE = 64
OPEN = 4096
PROGRAM = Path(__file__).resolve().parent / "episode_client.py"


@dataclass(frozen=True)
class Pair:
    """A client on a server."""

    client: str
    server: Subject

    @property
    def name(self) -> str:
        return f"{self.client} on {self.server.name}"

    @property
    def python(self) -> Path:
        return ORS_SDK.python if self.client == ORS_SDK.name else Path(sys.executable)


BOTH_OURS = Pair(OURS.name, OURS)
BY_HAND = Pair("aiohttp", OURS)
THEIRS_ON_OURS = Pair(ORS_SDK.name, OURS)
BOTH_THEIRS = Pair(ORS_SDK.name, ORS_SDK)
PAIRS = (BOTH_OURS, BY_HAND, THEIRS_ON_OURS, BOTH_THEIRS)


@dataclass(frozen=True)
class Episodes:
    """One round of one pair."""

    per_s: float
    client_cpu_us: float
    server_cpu_us: float
    others: float


@dataclass(frozen=True)
class Open:
    """Sessions that one process has open at once."""

    sessions: int
    failures: int
    failed: list[str]
    seconds: float
    kib: float
    """Resident memory of the client for each, with no connection open."""
    busy_kib: float
    """The same right after all have been used at once, each over a connection of its own."""


@dataclass
class EpisodeCosts:
    """What was found of episodes."""

    rounds: dict[str, list[Episodes]]
    open: Open | None = None

    def middle(self, pair: Pair, metric: str) -> float | None:
        """The median over the rounds, or None where the pair was not measured."""
        samples = self.rounds.get(pair.name)
        return float(median(getattr(one, metric) for one in samples)) if samples else None


def measure_episodes(subjects: Iterable[Subject], rounds: int, seconds: float, attempts: int) -> EpisodeCosts:
    """Every pair once in each round, each on a fresh server; the order turns."""
    allowed = set(subjects)
    pairs = [pair for pair in PAIRS if pair.server in allowed and (pair.client != ORS_SDK.name or ORS_SDK in allowed)]
    found = EpisodeCosts({})
    for turn in range(rounds):
        at = turn % max(len(pairs), 1)
        for pair in pairs[at:] + pairs[:at]:
            print(f"  episodes, round {turn + 1} of {rounds}: {pair.name}", flush=True)
            with noting(f"{pair.name}: episodes"), serving(pair.server) as server:
                found.rounds.setdefault(pair.name, []).append(_calmly(pair, server, seconds, attempts))
    if OURS in allowed:
        print(f"  {OPEN:,} sessions open at once", flush=True)
        with noting(f"{OPEN:,} sessions at once"), serving(OURS) as server:
            said = _client(sys.executable, "open", _url(server), KEY, str(OPEN))
            found.open = Open(sessions=OPEN, **said)
    return found


def _calmly(pair: Pair, server: Running, seconds: float, attempts: int) -> Episodes:
    samples: list[Episodes] = []
    for _ in range(attempts):
        samples.append(_play(pair, server, seconds))
        if samples[-1].others <= CALM:
            break
    return min(samples, key=lambda sample: sample.others)


def _play(pair: Pair, server: Running, seconds: float) -> Episodes:
    began, busy, own = time.monotonic(), core_busy_s(0) + core_busy_s(1), server.cpu_s()
    ended = children_s()
    said = _client(pair.python, pair.client, _url(server), KEY, str(seconds), str(AT_ONCE))
    took, server_s, client_s = time.monotonic() - began, server.cpu_s() - own, children_s() - ended
    others = (core_busy_s(0) + core_busy_s(1) - busy - server_s - client_s) / took / 2
    # the server also worked for the episodes before the count began; their number is not known, their share is
    played = said["episodes_per_s"] * took
    return Episodes(said["episodes_per_s"], said["cpu_us"], server_s / played * 1e6, max(others, 0.0))


def _url(server: Running) -> str:
    return f"http://127.0.0.1:{server.port}"


def _client(python: Path | str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(python), str(PROGRAM), *arguments],
        capture_output=True,
        text=True,
        env=clean_environ(),
        preexec_fn=on_core(1),
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(f"the client ended with {done.returncode}: {done.stderr[-1500:]}")
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said
