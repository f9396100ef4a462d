"""Tool calls: how many in a second, how long they take, and what one costs the server."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from statistics import median

from failures import noting
from load import Load, Sample
from servers import BARE, OPENREWARD, ORS_SDK, ORS_SDK_QUIET, OURS, SUBJECTS, Subject, serving

Results = dict[str, dict[str, list[Sample]]]
"""Samples by subject and case."""


@dataclasses.dataclass(frozen=True)
class Case:
    """One kind of load."""

    name: str
    tool: str
    connections: int
    sessions: int
    subjects: tuple[Subject, ...]
    quick: tuple[Subject, ...]
    """Who takes part in a quick run."""


_TOOLS = (OURS, ORS_SDK, ORS_SDK_QUIET, OPENREWARD)
ASYNC = Case("async, 64 connections", "submit", 64, 1, SUBJECTS, SUBJECTS)
SYNC = Case("sync, 64 connections", "submit_sync", 64, 1, _TOOLS, (OURS, ORS_SDK))
SINGLE = Case("async, 1 connection", "submit", 1, 1, SUBJECTS, (OURS, BARE))
SPREAD = Case("async, 64 connections and sessions", "submit", 64, 64, (OURS, BARE, ORS_SDK), ())
SPREAD_SYNC = Case("sync, 64 connections and sessions", "submit_sync", 64, 64, (OURS, ORS_SDK), ())
CASES = (ASYNC, SYNC, SINGLE, SPREAD, SPREAD_SYNC)


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long everything is measured."""

    rounds: int
    seconds: int
    warm_up: int
    attempts: int
    quick: bool


FULL = Effort(rounds=5, seconds=5, warm_up=2, attempts=3, quick=False)
QUICK = Effort(rounds=3, seconds=2, warm_up=1, attempts=1, quick=True)


def measure_calls(subjects: Iterable[Subject], effort: Effort) -> Results:
    """Every case on every subject, once in each round; the order turns, so that no one is always first or last."""
    order = list(subjects)
    results: Results = {subject.name: {} for subject in order}
    for turn in range(effort.rounds):
        at = turn % len(order)
        for subject in order[at:] + order[:at]:
            print(f"  calls, round {turn + 1} of {effort.rounds}: {subject.name}", flush=True)
            with noting(f"{subject.name}: calls"), serving(subject) as server:
                for case in CASES:
                    if subject not in (case.quick if effort.quick else case.subjects):
                        continue
                    load = Load(server, case.tool, sessions=case.sessions, bare=subject is BARE)
                    load.warm_up(effort.warm_up, case.connections)
                    sample = load.run_calmly(effort.seconds, case.connections, effort.attempts)
                    results[subject.name].setdefault(case.name, []).append(sample)
    return results


def middle(samples: list[Sample], metric: str) -> float:
    """The median of one figure over the rounds."""
    return float(median(getattr(sample, metric) for sample in samples))


AFTER_S = 20
LONG_S = 66
"""Longer than results are kept for (60 s), so that forgetting them is paid for."""


@dataclasses.dataclass(frozen=True)
class Long:
    """A long run, and a short one right after it on the same server: as much is forgotten there as is added."""

    whole: Sample
    after: Sample
    rss_before_kib: int
    rss_at_60_kib: int
    rss_end_kib: int


def measure_long(subjects: Iterable[Subject]) -> dict[str, Long]:
    """One run of over a minute for each subject, at 64 connections."""
    results = {}
    for subject in subjects:
        if subject not in (OURS, BARE, ORS_SDK):
            continue
        print(f"  {LONG_S} s of calls: {subject.name}", flush=True)
        with noting(f"{subject.name}: calls for {LONG_S} s"), serving(subject) as server:
            load = Load(server, ASYNC.tool, bare=subject is BARE)
            before = server.rss_kib()
            whole = load.run(LONG_S, ASYNC.connections)
            at_60 = server.rss_kib()
            after = load.run(AFTER_S, ASYNC.connections)
            results[subject.name] = Long(whole, after, before, at_60, server.rss_kib())
    return results
