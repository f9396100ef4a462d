"""Everything that one run of the benchmark found, and which goals that reaches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from calls import ASYNC, SINGLE, SYNC, Case, Long, Results, middle
from disturbance import DISTURBED
from episodes import BOTH_OURS, BOTH_THEIRS, BY_HAND, THEIRS_ON_OURS, EpisodeCosts
from imports import AUTHOR, BARE_IMPORT, ORS_SDK_SERVER, PYDANTIC, WITH_SERVER, ImportCost
from scale import Scale
from servers import BARE, ORS_SDK, ORS_SDK_QUIET, OURS
from sessions import BlockingCost, IdleCost
from steps import IDLE, OPENENV, SIZES, Steps
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
    scale: Scale = field(default_factory=Scale)
    imports: dict[str, ImportCost] = field(default_factory=dict)
    idle: dict[str, IdleCost] = field(default_factory=dict)
    blocking: dict[str, BlockingCost] = field(default_factory=dict)
    episodes: EpisodeCosts = field(default_factory=lambda: EpisodeCosts({}))
    steps: Steps = field(default_factory=Steps)

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
        *_scale_goals(found),
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


def _scale_goals(found: Findings) -> Iterator[Goal]:
    if (file := found.scale.file) is not None:
        others, split = found.others["scale"], f"a file of {file.rows:,} rows ({file.mib:,.0f} MiB)"
        speed, opened = file.mb_per_s, median(file.open_ms)
        yield Goal(f"{split}: building its index", "≥ 200 MB/s", f"{speed:,.0f} MB/s", speed >= 200, others=others)
        yield Goal(f"{split}: opening it with a kept index", "≤ 50 ms", f"{opened:.2f} ms", opened <= 50, others=others)
    for name, cost in found.scale.servers.items():
        if not name.startswith(f"{OURS.name},"):
            continue
        others = found.others["scale"]
        if cost.task_ms and cost.small_ms:
            big, small = median(cost.task_ms), median(cost.small_ms)
            aside = f"{big:.2f} ms to {small:.2f} ms"
            yield Goal(
                f"{name}: /task, median",
                "≤ 1.3 × of 10 rows",
                f"{big / small:.2f} ×",
                big <= 1.3 * small,
                aside,
                others,
            )
        if cost.range_ms:
            time = median(cost.range_ms)
            yield Goal(f"{name}: /task_range of 100", "≤ 5 ms", f"{time:.2f} ms", time <= 5, others=others)
        if cost.rss_more_mib is not None:
            grown = max(cost.rss_more_mib, cost.rss_more_mib + (cost.rss_listed_mib or 0.0))
            yield Goal(f"{name}: memory more", "≤ 50 MiB", f"{grown:.1f} MiB", grown <= 50)
        if cost.listing_s is not None:
            rate = cost.listed / cost.listing_s
            yield Goal(
                f"{name}: listing {cost.listed:,}", "≥ 100,000 tasks/s", f"{rate:,.0f}", rate >= 100_000, others=others
            )
        if cost.alone_p99_ms and cost.beside_p99_ms:
            ratio = cost.beside_p99_ms / cost.alone_p99_ms
            aside = f"{cost.beside_p99_ms:.1f} ms to {cost.alone_p99_ms:.1f} ms"
            yield Goal(f"{name}: calls meanwhile, p99", "≤ 2 × alone", f"{ratio:.2f} ×", ratio <= 2, aside, others)


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
    steps, others = found.steps, found.others.get("steps", 0.0)
    for size, least in zip(SIZES, (2.5, 4.0), strict=True):
        ours = steps.middle(OURS.name, size, "per_s")
        for peer, wanted in ((OPENENV.name, least), (BARE.name, 0.45)):
            other = steps.middle(peer, size, "per_s")
            if ours is not None and other is not None:
                ratio = ours / other
                name = "a bare echo" if peer == BARE.name else peer
                measure = f"WebSocket, {size:,} sessions: steps/s"
                yield Goal(measure, f"≥ {wanted:g} × {name}", f"{ratio:.2f} ×", ratio >= wanted, "", others)
        mine, theirs = (steps.middle(name, size, "p99_ms") for name in (OURS.name, OPENENV.name))
        if mine is not None and theirs is not None:
            aside = f"{mine:.1f} ms to {theirs:.1f} ms"
            measure = f"WebSocket, {size:,} sessions: p99"
            yield Goal(measure, f"≤ 1 × {OPENENV.name}", f"{mine / theirs:.2f} ×", mine <= theirs, aside, others)
    if (idle := steps.idle.get(OURS.name)) is not None:
        most = 300 * idle.sockets / IDLE
        found_text = f"{idle.growth_mib:.0f} MiB, {idle.threads} threads"
        reached = idle.growth_mib <= most and idle.threads <= 4
        yield Goal(f"{idle.sockets:,} idle sockets: memory", f"≤ {most:.0f} MiB, no threads", found_text, reached)
    mine, theirs = (steps.tasks_per_s.get(name) for name in (OURS.name, OPENENV.name))
    if mine is not None and theirs is not None:
        measure = "Task API with a constructor of 50 ms: requests/s"
        yield Goal(measure, f"≥ 10 × {OPENENV.name}", f"{mine / theirs:.1f} ×", mine >= 10 * theirs, "", others)
    largest = steps.largest(OURS.name), steps.largest(OPENENV.name)
    if largest[0] is not None and largest[1] is not None:
        wanted = min(4 * largest[1], 12_000)
        measure = "connect, reset, one step of 1 s: largest batch of which 95 % is served"
        aside = f"{OPENENV.name}: {largest[1]:,}"
        yield Goal(measure, f"≥ {wanted:,}", f"{largest[0]:,}", largest[0] >= wanted, aside, others)
