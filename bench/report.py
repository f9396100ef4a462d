"""Findings as a page of Markdown and as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from statistics import median

from calls import CASES
from disturbance import DISTURBED
from episodes import PAIRS
from findings import Findings, goals
from imports import STATEMENTS
from servers import BARE, OURS
from steps import as_tables


def as_json(found: Findings) -> str:
    """Every sample, and the goals."""
    everything = dataclasses.asdict(found)
    everything["goals"] = [{**dataclasses.asdict(goal), "verdict": goal.verdict} for goal in goals(found)]
    return json.dumps(everything, indent=1, ensure_ascii=False) + "\n"


def as_markdown(found: Findings) -> str:
    """The page: the goals first, then the figures they come from."""
    lines = ["# Results", "", "Written by `make bench`; [README.md](README.md) says how everything is measured."]
    if found.quick:
        lines.append("This was a quick run: shorter, fewer rounds, without the run of over a minute.")
    if found.failures:
        lines += ["", "**Not measured, because it failed:**", "", *(f"- {words}" for words in found.failures)]
    lines += ["", *_machine(found), "", "## Goals", "", *_goals(found)]
    for title, table in (
        ("Tool calls", _calls(found)),
        ("A run of over a minute", _long(found)),
        ("Episodes", _episodes(found)),
        ("/task_range of 100 in a split of 1,000,000", _tasks(found)),
        ("Tasks of a file", _scale(found)),
        ("OpenEnv", as_tables(found.steps)),
        ("Imports", _imports(found)),
        ("Idle sessions", _idle(found)),
        ("Sessions that block", _blocking(found)),
    ):
        rows = list(table)
        if rows:
            lines += ["", f"## {title}", "", *rows]
    return "\n".join(lines) + "\n"


def _machine(found: Findings) -> Iterator[str]:
    for name, value in found.machine.items():
        yield f"- {name}: {value}"
    yield "- other programs took, of a core: " + ", ".join(
        f"{name} {share:.0%}" for name, share in found.others.items()
    )
    yield f"- the whole took {found.took_s:.0f} s"


def _goals(found: Findings) -> Iterator[str]:
    rows = [(goal.measure, goal.goal, goal.found, _VERDICTS[goal.verdict], goal.aside) for goal in goals(found)]
    yield from _table(("measure", "goal", "found", "reached", "beside it"), rows)
    if any(goal.verdict == "disturbed" for goal in goals(found)):
        yield ""
        yield f"Disturbed: other programs took more than {DISTURBED:.0%} of a core; the figure says nothing then."


_VERDICTS = {"yes": "yes", "no": "**no**", "disturbed": "disturbed"}


def _calls(found: Findings) -> Iterator[str]:
    if not found.calls:
        return
    worst = 0.0
    for case in CASES:
        rows = []
        reference = found.figure(BARE.name, case, "rps")
        for subject, cases in found.calls.items():
            samples = cases.get(case.name)
            if not samples:
                continue
            rate, p50, p99, cpu = (
                median(getattr(one, metric) for one in samples) for metric in ("rps", "p50_ms", "p99_ms", "cpu_us")
            )
            spread = f"{min(one.rps for one in samples):,.0f}–{max(one.rps for one in samples):,.0f}"
            ratio = f"{rate / reference:.3f}" if reference else ""
            rows.append((subject, f"{rate:,.0f}", spread, ratio, f"{p50:.2f}", f"{p99:.2f}", f"{cpu:,.0f}"))
            worst = max(worst, *(one.others for one in samples))
        if rows:
            yield f"### {case.name}"
            yield ""
            head = ("server", "calls/s", "lowest–highest", "× bare", "p50 ms", "p99 ms", "CPU µs per call")
            yield from _table(head, rows)
            yield ""
    rounds = max(len(samples) for cases in found.calls.values() for samples in cases.values())
    yield (f"Medians of {rounds} rounds. Other programs took at most {worst:.0%} of a core while a round was measured.")


def _long(found: Findings) -> Iterator[str]:
    if not found.long:
        return
    rows = []
    for subject, one in found.long.items():
        grown = (one.rss_at_60_kib - one.rss_before_kib) / 1024, (one.rss_end_kib - one.rss_at_60_kib) / 1024
        figures = (f"{one.whole.rps:,.0f}", f"{one.whole.p99_ms:.1f}", f"{one.whole.cpu_us:,.0f}")
        later = (f"{one.after.rps:,.0f}", f"{one.after.p99_ms:.1f}", f"{one.after.cpu_us:,.0f}")
        rows.append((subject, *figures, *later, f"{grown[0]:,.1f}", f"{grown[1]:,.1f}"))
    long = next(iter(found.long.values()))
    first, then = f"{long.whole.seconds:.0f} s", f"next {long.after.seconds:.0f} s"
    head = ("server", f"calls/s, {first}", "p99 ms", "CPU µs per call")
    head += (f"calls/s, {then}", "p99 ms", "CPU µs per call", f"RSS MiB more, {first}", f"RSS MiB more, {then}")
    yield from _table(head, rows)


def _episodes(found: Findings) -> Iterator[str]:
    rows = []
    for pair in PAIRS:
        samples = found.episodes.rounds.get(pair.name)
        if not samples:
            continue
        rate, client, server = (
            found.episodes.middle(pair, metric) or 0.0 for metric in ("per_s", "client_cpu_us", "server_cpu_us")
        )
        spread = f"{min(one.per_s for one in samples):,.0f}–{max(one.per_s for one in samples):,.0f}"
        rows.append((pair.name, f"{rate:,.0f}", spread, f"{client:,.0f}", f"{server:,.0f}"))
    if rows:
        head = ("client on server", "episodes/s", "lowest–highest", "client CPU µs each", "server CPU µs each")
        yield from _table(head, rows)
    if (held := found.episodes.open) is not None:
        yield ""
        yield (
            f"{held.sessions:,} sessions open at once in one process: used in {held.seconds:.1f} s, {held.failures} "
            f"failures, {held.kib:.1f} KiB each, {held.busy_kib:.1f} KiB while each has a connection."
        )


def _tasks(found: Findings) -> Iterator[str]:
    rows = []
    for subject, ways in found.tasks.items():
        for way, cost in ways.items():
            grown = (cost.rss_end_kib - cost.rss_start_kib) / 1024
            start = cost.rss_start_kib / 1024
            rows.append((subject, way, f"{cost.median_ms:,.2f}", str(len(cost.ms)), f"{start:.0f}", f"{grown:.2f}"))
    if rows:
        head = ("server", "tasks by", "median ms", "requests", "RSS MiB at start", "RSS MiB more")
        yield from _table(head, rows)


def _scale(found: Findings) -> Iterator[str]:
    rows = []
    for name, cost in found.scale.servers.items():
        times = (f"{median(ms):,.2f}" if ms else "" for ms in (cost.small_ms, cost.task_ms, cost.range_ms))
        listing = "" if cost.listing_s is None else f"{cost.listed / cost.listing_s:,.0f}"
        memory = (
            "" if mib is None else f"{mib:,.1f}" for mib in (cost.rss_up_mib, cost.rss_more_mib, cost.rss_listed_mib)
        )
        calls = ("" if ms is None else f"{ms:,.1f}" for ms in (cost.alone_p99_ms, cost.beside_p99_ms))
        rows.append((name, f"{cost.up_s:.1f}", *times, listing, *calls, *memory))
    if rows:
        head = ("server", "s to come up", "/task of 10 rows ms", "/task ms", "/task_range of 100 ms", "listed tasks/s")
        head += ("calls p99 ms alone", "while listing", "RSS MiB once up", "anonymous MiB more", "and by listing")
        yield from _table(head, rows)
    if (file := found.scale.file) is not None:
        yield ""
        yield (
            f"The index of {file.rows:,} rows ({file.mib:,.0f} MiB): built in {file.build_s:.2f} s "
            f"({file.mb_per_s:,.0f} MB/s), opened in {median(file.open_ms):.2f} ms."
        )


def _imports(found: Findings) -> Iterator[str]:
    if not found.imports:
        return
    rows = []
    for one in STATEMENTS:
        if one.name in found.imports:
            cost = found.imports[one.name]
            warm, cold = cost.median_ms("warm"), cost.median_ms("cold")
            rows.append((f"{one.name} ({one.subject.name})", f"{warm:.0f}", f"{cold:.0f}", str(cost.modules)))
    yield from _table(("imported", "warm ms", "cold ms", "modules"), rows)
    for name, cost in found.imports.items():
        if any(one.name == name and one.subject is OURS for one in STATEMENTS):
            yield ""
            yield f"{name}: most own time in " + ", ".join(f"{module} {own:.1f} ms" for module, own in cost.heaviest)


def _idle(found: Findings) -> Iterator[str]:
    rows = []
    for subject, cost in found.idle.items():
        threads = f"{cost.threads_before} → {cost.threads}"
        prompted = "" if cost.kib_prompted is None else f"{cost.kib_prompted:.2f}"
        figures = (f"{cost.kib:.2f}", prompted, threads, f"{cost.created_per_s:,.0f}")
        rows.append((subject, f"{cost.sessions:,}", *figures))
    if rows:
        head = ("server", "sessions", "KiB each", "KiB each, prompted", "threads", "created/s")
        yield from _table(head, rows)


def _blocking(found: Findings) -> Iterator[str]:
    rows = []
    for subject, cost in found.blocking.items():
        took, health = median(cost.seconds), median(cost.health_ms)
        rows.append((subject, f"{cost.sessions:,}", f"{took:.2f}", f"{health:,.1f}", f"{max(cost.health_ms):,.1f}"))
    if rows:
        head = ("server", "sessions", "seconds until all are done", "slowest /health ms, median", "worst round")
        yield from _table(head, rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + " --- |" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("\n", " ") for cell in row) + " |"
