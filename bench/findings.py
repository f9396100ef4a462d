"""Everything that one run of the benchmark found, and which goals that reaches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from calls import ASYNC, SINGLE, SYNC, Case, Long, Results, middle
from disturbance import DISTURBED
from episodes import BOTH_OURS, BOTH_THEIRS, BY_HAND, THEIRS_ON_OURS, EpisodeCosts
from imports import AUTHOR, BARE_IMPORT, ORS_SDK_SERVER, PYDANTIC, WITH_SERVER, ImportCost
from servers import BARE, ORS_SDK, ORS_SDK_QUIET, OURS
from sessions import BlockingCost, IdleCost
from steps import IDLE, SESSIONS, SLOW_S, StepCosts
from tasks import INDEXED, LISTED, RangeCost


@dataclass
class Findings:
    """The figures by measure; a measure that was not asked for stays empty."""

    machine: dict[str, str] = field(default_factory=dict)
    quick: bool = False
    took_s: float = 0.0
    failures: list[str] = field(default_factory=list)
    others: dict[str, float] = field(default_factory=dict)
    """By measure, the share of a core that other programs took on average."""
    calls: Results = field(default_factory=dict)
    long: dict[str, Long] = field(default_factory=dict)
    tasks: dict[str, dict[str, RangeCost]] = field(default_factory=dict)
    imports: dict[str, ImportCost] = field(default_factory=dict)
    idle: dict[str, IdleCost] = field(default_factory=dict)
    blocking: dict[str, BlockingCost] = field(default_factory=dict)
    steps: StepCosts = field(default_factory=StepCosts)
    episodes: EpisodeCosts = field(default_factory=lambda: EpisodeCosts({}))

    def figure(self, subject: str, case: Case, metric: str) -> float | None:
        """The median of a figure of tool calls, or None where it was not measured."""
        samples = self.calls.get(subject, {}).get(case.name)
        return middle(samples, metric) if samples else None


@dataclass(frozen=True)
class Goal:
    """One goal: what was measured, as text, and whether it is reached."""

    measure: str
    goal: str
    found: str
    reached: bool
    aside: str = ""
    others: float = 0.0
    """The share of a core that other programs took, where the figure is a matter of time."""

    @property
    def verdict(self) -> str:
        """`yes`, `no`, or `disturbed`: then the figure says nothing."""
        if self.others > DISTURBED:
            return "disturbed"
        return "yes" if self.reached else "no"


def goals(found: Findings) -> list[Goal]:
    """The goals that this run can speak of."""
    return [
        *_call_goals(found),
        *_long_goals(found),
        *_episode_goals(found),
        *_task_goals(found),
        *_import_goals(found),
        *_session_goals(found),
        *_step_goals(found),
    ]


def _call_goals(found: Findings) -> Iterator[Goal]:
    plan = [
        (ASYNC, ORS_SDK.name, 20.0, "async tool, 64 connections: calls/s"),
        (ASYNC, BARE.name, 0.6, "async tool, 64 connections: calls/s"),
        (SYNC, ORS_SDK.name, 15.0, "synchronous tool, 64 connections: calls/s"),
        (SYNC, BARE.name, 0.5, "synchronous tool, 64 connections: calls/s"),
        (SINGLE, BARE.name, 0.6, "async tool, 1 connection: calls/s"),
    ]
    for case, peer, least, measure in plan:
        # the bare application has no tools, so there is no other figure to hold a synchronous one against
        against = ASYNC if case is SYNC and peer == BARE.name else case
        other, ours = found.figure(peer, against, "rps"), found.figure(OURS.name, case, "rps")
        if ours is None or other is None:
            continue
        aside = f"by CPU time {_cpu(found, peer, against) / _cpu(found, OURS.name, case):.2f} ×"
        if peer == ORS_SDK.name and (quiet := found.figure(ORS_SDK_QUIET.name, case, "rps")):
            aside += f"; {ours / quiet:.2f} × with its log level at WARNING"
        others = _others(found, (OURS.name, case), (peer, against))
        yield Goal(measure, f"≥ {least:g} × {peer}", f"{ours / other:.2f} ×", ours / other >= least, aside, others)
    for case, most, measure in ((ASYNC, 2.0, "async tool: p99"), (SYNC, 4.0, "synchronous tool: p99")):
        ours, other = found.figure(OURS.name, case, "p99_ms"), found.figure(BARE.name, ASYNC, "p99_ms")
        if ours is not None and other is not None:
            aside = f"{ours:.1f} ms to {other:.1f} ms"
            others = _others(found, (OURS.name, case), (BARE.name, ASYNC))
            yield Goal(measure, f"≤ {most:g} × bare", f"{ours / other:.2f} ×", ours / other <= most, aside, others)


def _cpu(found: Findings, subject: str, case: Case) -> float:
    return found.figure(subject, case, "cpu_us") or 0.0


def _others(found: Findings, *pairs: tuple[str, Case]) -> float:
    return max(found.figure(subject, case, "others") or 0.0 for subject, case in pairs)


def _long_goals(found: Findings) -> Iterator[Goal]:
    ours = found.long.get(OURS.name)
    for peer, least in ((ORS_SDK.name, 20.0), (BARE.name, 0.6)):
        other = found.long.get(peer)
        if ours is not None and other is not None:
            ratio = ours.whole.rps / other.whole.rps
            aside = f"{ours.after.rps / other.after.rps:.2f} × after the first {ours.whole.seconds:.0f} s"
            measure = f"the same over {ours.whole.seconds:.0f} s"
            others = max(ours.whole.others, other.whole.others)
            yield Goal(measure, f"≥ {least:g} × {peer}", f"{ratio:.2f} ×", ratio >= least, aside, others)


def _episode_goals(found: Findings) -> Iterator[Goal]:
    costs = found.episodes
    plan = [(BOTH_THEIRS, 8.0), (THEIRS_ON_OURS, 3.0), (BY_HAND, 0.6)]
    ours = costs.middle(BOTH_OURS, "per_s")
    for pair, least in plan:
        other = costs.middle(pair, "per_s")
        if ours is None or other is None:
            continue
        cpu = [costs.middle(one, "client_cpu_us") or 0.0 for one in (pair, BOTH_OURS)]
        others = max(costs.middle(one, "others") or 0.0 for one in (pair, BOTH_OURS))
        aside = f"by CPU time of the client {cpu[0] / cpu[1]:.2f} ×"
        measure, goal = "64 episodes at once: episodes/s", f"≥ {least:g} × {pair.name}"
        yield Goal(measure, goal, f"{ours / other:.2f} ×", ours / other >= least, aside, others)
    if (held := costs.open) is not None:
        count = f"{held.sessions:,} sessions of one client process at once"
        yield Goal(f"{count}: failures", "0", str(held.failures), held.failures == 0, "; ".join(held.failed))
        aside = f"{held.busy_kib:.1f} KiB while each has a connection"
        yield Goal(f"{count}: memory of each", "≤ 20 KiB", f"{held.kib:.1f} KiB", held.kib <= 20, aside)


def _task_goals(found: Findings) -> Iterator[Goal]:
    ours = found.tasks.get(OURS.name, {})
    for way in (INDEXED, LISTED):
        if way in ours:
            peer = found.tasks.get(ORS_SDK.name, {}).get(way)
            aside = f"ors-sdk: {peer.median_ms:,.1f} ms" if peer else ""
            time = ours[way].median_ms
            measure, others = f"/task_range of 100 in 1,000,000, by {way}", found.others["tasks"]
            yield Goal(measure, "≤ 5 ms", f"{time:.2f} ms", time <= 5, aside, others)
    if INDEXED in ours:
        grown = (ours[INDEXED].rss_end_kib - ours[INDEXED].rss_start_kib) / 1024
        yield Goal("memory that this took", "≤ 1 MiB", f"{grown:.2f} MiB", grown <= 1)


def _import_goals(found: Findings) -> Iterator[Goal]:
    pairs = ((AUTHOR, PYDANTIC, 1.3, "pydantic with one model"), (WITH_SERVER, ORS_SDK_SERVER, 0.6, "ors-sdk"))
    for mine, theirs, most, name in pairs:
        ours, other = found.imports.get(mine.name), found.imports.get(theirs.name)
        if ours is None or other is None:
            continue
        warm, cold = (ours.median_ms(kind) / other.median_ms(kind) for kind in ("warm", "cold"))
        measure, goal, aside = f"`{mine.code}`, warm", f"≤ {most:g} × {name}", f"cold {cold:.2f} ×"
        yield Goal(measure, goal, f"{warm:.2f} ×", warm <= most, aside, found.others["imports"])
    if (bare := found.imports.get(BARE_IMPORT.name)) is not None:
        cold = bare.median_ms("cold")
        server = found.imports.get(WITH_SERVER.name)
        aside = f"with Server {server.median_ms('cold'):.0f} ms" if server else ""
        yield Goal("`import ors`, cold", "≤ 400 ms", f"{cold:.0f} ms", cold <= 400, aside, found.others["imports"])


def _session_goals(found: Findings) -> Iterator[Goal]:
    if (idle := found.idle.get(OURS.name)) is not None:
        count = f"{idle.sessions:,} idle sessions"
        aside = "" if idle.kib_prompted is None else f"{idle.kib_prompted:.1f} KiB once prompted"
        yield Goal(f"{count}: memory of each", "≤ 8 KiB", f"{idle.kib:.1f} KiB", idle.kib <= 8, aside)
        more = idle.threads - idle.threads_before
        yield Goal(f"{count}: threads more", "0", str(more), more <= 0)
    if (block := found.blocking.get(OURS.name)) is not None:
        took, slowest = median(block.seconds), median(block.health_ms)
        count = f"{block.sessions:,} sessions in a 1-second blocking tool"
        others = found.others["blocking"]
        yield Goal(f"{count}: all done", "≤ 2 s", f"{took:.2f} s", took <= 2, others=others)
        aside = f"worst of all rounds {max(block.health_ms):.1f} ms"
        yield Goal(f"{count}: slowest /health", "≤ 50 ms", f"{slowest:.1f} ms", slowest <= 50, aside, others)


def _step_goals(found: Findings) -> Iterator[Goal]:
    costs, others = found.steps, found.others.get("steps", 0.0)
    for sessions, least in zip(SESSIONS, (2.5, 4.0), strict=True):
        ours = costs.middle("ors-kit", sessions)
        for peer, factor in (("openenv", least), ("bare", 0.45)):
            other = costs.middle(peer, sessions)
            if ours is None or other is None:
                continue
            measure = f"OpenEnv, {sessions:,} sessions: steps/s"
            yield Goal(measure, f"≥ {factor:g} × {peer}", f"{ours / other:.2f} ×", ours / other >= factor, "", others)
        late, theirs = (costs.middle(name, sessions, "p99_ms") for name in ("ors-kit", "openenv"))
        if late is not None and theirs is not None:
            measure, aside = f"OpenEnv, {sessions:,} sessions: p99", f"{late:.1f} ms to {theirs:.1f} ms"
            yield Goal(measure, "≤ openenv", f"{late / theirs:.2f} ×", late <= theirs, aside, others)
    if costs.idle_mib is not None:
        count = f"OpenEnv, {IDLE:,} idle sockets"
        yield Goal(f"{count}: memory", "≤ 300 MiB", f"{costs.idle_mib:.0f} MiB", costs.idle_mib <= 300)
        yield Goal(f"{count}: threads more", "0", str(costs.idle_threads), costs.idle_threads <= 0)
    if {"ors-kit", "openenv"} <= set(costs.tasks):
        ratio = costs.tasks["ors-kit"] / costs.tasks["openenv"]
        measure = f"Task API, a constructor of {SLOW_S * 1e3:.0f} ms: requests/s"
        aside = f"{costs.tasks['ors-kit']:,.0f} to {costs.tasks['openenv']:,.0f}"
        yield Goal(measure, "≥ 10 × openenv", f"{ratio:.1f} ×", ratio >= 10, aside, others)
