"""What `ors run` shows: progress while it plays, then a table, or the same numbers as JSON."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ors.cli.showing import number, plain, shortened
from ors.evaluation import Result, Summary, Tally

__all__ = ["Report", "progress_on"]

_EXAMPLES = 5
# narrow, so that names of twenty letters fit on a terminal of eighty columns
_HEADINGS = (
    "epi-\nsodes",
    "mean\nreward",
    "95 %\ninterval",
    "fin-\nished",
    "fail-\ned",
    "per\ns",
    "p50\nms",
    "p99\nms",
)


class Report:
    """The results of a run as they come, by agent and environment."""

    def __init__(
        self, agents: Sequence[str], splits: Sequence[tuple[str, str]], how: str, unpaid: float | None
    ) -> None:
        self._names = _short(agents)
        self._unpaid = unpaid
        self._rows: dict[tuple[str, str | None, str], Tally] = {
            (env, split, agent): Tally(how, unpaid) for env, split in splits for agent in agents
        }
        self._whole = {agent: Tally(how, unpaid) for agent in agents}
        self._kinds: collections.Counter[str] = collections.Counter()
        self._first: dict[str, Result] = {}
        self.all = Tally(how, unpaid)

    def add(self, result: Result, *, now: bool = True) -> None:
        """Count a result. `now`: it was played by this process."""
        agent, env, split, _, _ = result.key
        for tally in (self._rows[env, split, agent], self._whole[agent], self.all):
            tally.add(result, now=now)
        if result.failure:
            self._kinds[result.failure.kind] += 1
            self._first.setdefault(result.failure.kind, result)

    def summaries(self) -> dict[tuple[str, str | None, str], Summary]:
        """The numbers of each environment, split and agent."""
        return {key: tally.summary() for key, tally in self._rows.items() if tally.episodes}

    def as_json(self) -> dict[str, Any]:
        """All numbers, for programs."""
        return {
            "results": [
                {"env": env, "split": split, "agent": agent, **summary.as_json()}
                for (env, split, agent), summary in self.summaries().items()
            ],
            "totals": [
                {"agent": agent, **tally.summary().as_json()} for agent, tally in self._whole.items() if tally.episodes
            ],
            "failures": [
                {"kind": kind, "count": count, "example": _example(self._first[kind])}
                for kind, count in self._kinds.most_common()
            ],
        }

    def print(self, screen: Console) -> None:
        """The table, and what is to be said about it."""
        summaries = self.summaries()
        several = len(self._names) > 1
        table = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)
        table.add_column("\nenvironment", overflow="fold")
        if several:
            table.add_column("\nagent", no_wrap=True)
        for heading in _HEADINGS:
            table.add_column(heading, justify="right", no_wrap=True)
        for place, key in enumerate(summaries):
            env, _, agent = key
            cells = [env, *([self._names[agent]] if several else []), *_cells(summaries[key])]
            table.add_row(*map(_text, cells), end_section=place == len(summaries) - 1)
        if len({key[:2] for key in summaries}) > 1:
            for agent, tally in self._whole.items():
                if tally.episodes:
                    cells = ["all", *([self._names[agent]] if several else []), *_cells(tally.summary())]
                    table.add_row(*map(_text, cells), style="bold")
        screen.print(table)
        self._print_notes(screen)

    def _print_notes(self, screen: Console) -> None:
        if self._kinds:
            screen.print("\nFailures, which are in no mean:")
        for kind, count in self._kinds.most_common(_EXAMPLES):
            said = _example(self._first[kind])
            where = f"{said['env']} {said['task']}"
            words = shortened(said["detail"], max(40, screen.width - len(kind) - len(where) - 16))
            screen.print(Text.assemble(f"{count:>5} × ", (plain(kind), "red"), f"  {where}: {words}"))
        if len(self._kinds) > _EXAMPLES:
            screen.print(f"      and {len(self._kinds) - _EXAMPLES} other kinds")
        if self.all.unrewarded and self._unpaid is None:
            screen.print(
                f"\n{_many(self.all.unrewarded, 'episode')} ended without any reward: in no mean, "
                "unless --unpaid says what they count as."
            )


def progress_on(screen: Console) -> Progress:
    """A progress bar that is drawn on terminals only."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[said]}"),
        console=screen,
        disable=not screen.is_terminal,
        transient=True,
    )


def _cells(summary: Summary) -> list[str]:
    between = "–" if summary.low is None else f"{summary.low:.2f}..{summary.high:.2f}"
    return [
        f"{summary.episodes:,}",
        f"{number(summary.mean)}",
        f"{between}",
        f"{number(summary.finished, '{:.0%}')}",
        f"{summary.failed:,}",
        f"{number(summary.episodes_per_s, '{:,.0f}' if (summary.episodes_per_s or 0) >= 10 else '{:.2f}')}",
        f"{number(summary.call_p50_ms, '{:,.1f}')}",
        f"{number(summary.call_p99_ms, '{:,.1f}')}",
    ]


def _text(cell: str) -> Text:
    return Text(plain(cell))


def _example(result: Result) -> Mapping[str, Any]:
    agent, env, split, task, repeat = result.key
    detail = result.failure.detail if result.failure else ""
    return {"agent": agent, "env": env, "split": split, "task": task, "repeat": repeat, "detail": detail}


def _short(agents: Sequence[str]) -> dict[str, str]:
    """The names of agents without what they have in common."""
    last = [agent.rpartition(":")[2] for agent in agents]
    return dict(zip(agents, last if len(set(last)) == len(last) else agents, strict=True))


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
