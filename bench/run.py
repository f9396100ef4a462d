"""Measure this server and its peers in one run, and write bench/RESULTS.md and bench/results.json.

    .venv/bin/python bench/run.py [--quick] [--rounds N] [--only MEASURE …] [--skip SERVER …] [--strict]

A quick or partial run writes to bench/out/ instead, so that it never replaces the figures of a whole one.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from calls import FULL, QUICK, measure_calls, measure_long
from cores import cores
from disturbance import Watch
from episodes import measure_episodes
from failures import FAILURES
from findings import Findings, goals
from imports import measure_imports
from load import require_wrk
from machine import describe
from report import as_json, as_markdown
from scale import measure_scale
from servers import SUBJECTS
from sessions import measure_blocking, measure_idle
from steps import measure_steps
from tasks import measure_tasks

HERE = Path(__file__).resolve().parent
MEASURES = ("calls", "long", "episodes", "tasks", "scale", "imports", "idle", "blocking", "steps")


def main() -> int:
    """Run what was asked for. The exit code is 1 when a measurement failed or, with --strict, a goal is missed."""
    options = _options()
    require_wrk()
    _allow_many_connections()
    subjects = [subject for subject in SUBJECTS if subject.name not in options.skip]
    for subject in subjects:
        _ = subject.python  # installs the peers, which is no part of the time that a run takes
    if (pair := cores()) is not None:
        os.sched_setaffinity(0, {pair[1]})
    effort = QUICK if options.quick else dataclasses.replace(FULL, rounds=options.rounds)
    found = Findings(machine=describe(subjects), quick=options.quick)
    begun = time.monotonic()
    measures: dict[str, Callable[[], Any]] = {
        "imports": lambda: measure_imports(subjects, effort.rounds, effort.quick),
        "tasks": lambda: measure_tasks(subjects, effort.quick),
        "scale": lambda: measure_scale(subjects, effort.quick),
        "idle": lambda: measure_idle(subjects, effort.quick),
        "blocking": lambda: measure_blocking(subjects, effort.rounds, effort.quick),
        "steps": lambda: measure_steps(3 if effort.quick else effort.rounds, float(effort.seconds), effort.quick),
        "episodes": lambda: measure_episodes(subjects, effort.rounds, float(effort.seconds), effort.attempts),
        "calls": lambda: measure_calls(subjects, effort),
        "long": lambda: {} if effort.quick else measure_long(subjects),
    }
    for name, measure in measures.items():
        if name in options.only:
            watch = Watch()
            setattr(found, name, measure())
            found.others[name] = watch.others()
    found.failures = list(FAILURES)
    found.took_s = time.monotonic() - begun
    whole = not options.quick and not options.skip and set(options.only) == set(MEASURES)
    folder = HERE if whole else HERE / "out"
    folder.mkdir(exist_ok=True)
    (folder / "RESULTS.md").write_text(as_markdown(found))
    (folder / "results.json").write_text(as_json(found))
    print(as_markdown(found))
    print(f"written to {folder / 'RESULTS.md'}")
    missed = [goal for goal in goals(found) if goal.verdict != "yes"]
    return 1 if found.failures or (missed and options.strict) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 short rounds, within 6 minutes")
    parser.add_argument("--rounds", type=int, default=FULL.rounds, metavar="N", help="how often each is measured")
    parser.add_argument("--only", action="append", choices=MEASURES, metavar="MEASURE", help=", ".join(MEASURES))
    names = [subject.name for subject in SUBJECTS]
    parser.add_argument("--skip", action="append", choices=names, default=[], metavar="SERVER", help=", ".join(names))
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a goal is missed")
    options = parser.parse_args()
    options.only = options.only or list(MEASURES)
    return options


def _allow_many_connections() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    raise SystemExit(main())
