"""The course of `ors run`: what is left to play, playing it, and what is told at the end."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ors.cli.errors import CommandError, CommandFailed
from ors.cli.places import Place
from ors.cli.report import Report, progress_on
from ors.cli.run_check import changed
from ors.cli.run_plan import Row
from ors.cli.showing import console, print_json
from ors.client import AsyncORS
from ors.evaluation import Agent, Job, Key, Limits, Result, ResultsFile, ResultsFileError, jobs_of, run

__all__ = ["Running"]

_GONE_S = 20.0
"""Seconds without anybody to connect to after which a server is taken to be gone."""


class Running:
    """One `ors run`."""

    def __init__(
        self,
        place: Place,
        agents: Mapping[str, Agent],
        rows: Sequence[Row],
        *,
        how: str,
        unpaid: float | None,
        seed: int | None,
        limit: int | None,
        repeat: int,
    ) -> None:
        self._place = place
        self._agents = agents
        self._rows = rows
        self._how = how
        self._seed, self._limit, self._repeat = seed, limit, repeat
        self.report = Report(list(agents), [row[:2] for row in rows], how, unpaid)
        self._before: dict[Key, Result] = {}
        self._file: ResultsFile | None = None
        self._path: Path | None = None
        self._played = 0
        self._seconds = 0.0
        self.gone = False

    @property
    def _total(self) -> int:
        per_agent = sum(min(row.tasks, self._limit or row.tasks) for row in self._rows) * self._repeat
        return per_agent * len(self._agents)

    def open_results(self, path: Path | None, retry_failed: bool) -> None:
        """Read what was played before. Raises CommandError for a file that cannot be gone on with."""
        if path is None:
            if retry_failed:
                raise CommandError("--retry-failed needs --output: the file whose failures are to be played again")
            return
        self._file, self._path = ResultsFile(path), path
        try:
            self._file.open(self._note, drop_failed=retry_failed)
        except ResultsFileError as exc:
            raise CommandError(str(exc)) from exc

    def _note(self, result: Result) -> None:
        self._before[result.key] = result

    def play(
        self,
        concurrency: int,
        limits: Limits,
        call_timeout: float | None,
        secrets: Mapping[str, str],
        *,
        quiet: bool,
    ) -> int:
        """Play what is left. Returns the number of the signal that ended it early, else 0."""
        began = time.perf_counter()
        screen = console(stderr=True)
        try:
            with progress_on(screen) as progress:
                bar = progress.add_task("Playing", total=self._total, said="", visible=not quiet)

                def ended(result: Result) -> None:
                    if self._file is not None:
                        self._file.write(result.line(self._how))
                    self._played += 1
                    self.report.add(result)
                    progress.update(bar, completed=self.report.all.episodes, said=self._so_far())

                with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                    return runner.run(self._play(concurrency, limits, call_timeout, secrets, ended))
        except ResultsFileError as exc:
            raise CommandFailed(f"{exc}; what was written is whole, and the same command goes on from there") from exc
        finally:
            self._seconds = time.perf_counter() - began
            if self._file is not None:
                self._file.close()

    async def _play(
        self, concurrency: int, limits: Limits, call_timeout: float | None, secrets: Mapping[str, str], ended: Any
    ) -> int:
        async with AsyncORS(self._place.url, self._place.api_key, call_timeout=call_timeout) as client:
            if stale := await changed(client, self._before.values()):
                words = f"{len(stale):,} results are of tasks that have changed since: their episodes are played again"
                console(stderr=True).print(words)
                for key in stale:
                    del self._before[key]
            playing = asyncio.ensure_future(
                run(
                    *(client, self._agents, self._left()),
                    concurrency=concurrency,
                    ended=ended,
                    limits=limits,
                    secrets=secrets or None,
                )
            )
            told: list[int] = []
            _on_signals(playing, told)
            watching = asyncio.ensure_future(self._watch(playing))
            try:
                await playing
            except asyncio.CancelledError:
                if not told and not self.gone:
                    raise
            finally:
                watching.cancel()
        return told[0] if told else 0

    async def _watch(self, playing: asyncio.Future[None]) -> None:
        """Stop where the server is gone, instead of turning all that is left into failures."""
        loop = asyncio.get_running_loop()
        address = urlsplit(self._place.url)
        port = address.port or (443 if address.scheme == "https" else 80)
        seen = loop.time()
        while loop.time() - seen < _GONE_S:
            await asyncio.sleep(_GONE_S / 5)
            if await _listens(address.hostname or "", port):
                seen = loop.time()
        self.gone = True
        playing.cancel()

    def _left(self) -> Iterator[Job]:
        """The episodes to play; those that were played before are counted."""
        for row in self._rows:
            jobs = jobs_of(
                *(list(self._agents), row.env, row.split, row.tasks),
                limit=self._limit,
                repeat=self._repeat,
                seed=self._seed,
            )
            for job in jobs:
                before = self._before.pop(job.key, None)
                if before is None:
                    yield job
                elif before.seed != job.seed:
                    raise CommandError(
                        f"{self._path} holds results of another --seed; give that one again, or name another file"
                    )
                else:
                    self.report.add(before, now=False)

    def _so_far(self) -> str:
        tally = self.report.all
        count = sum(map(len, tally.rewards.values()))
        mean = sum(map(sum, tally.rewards.values())) / count if count else None
        words = "" if mean is None else f"reward {mean:.2f}"
        failed = tally.failures.total()
        return f"{words}, {failed} failed" if failed else words

    def tell(self, as_json: bool, output: Path | None) -> None:
        """Print the numbers, and how to go on where something is left."""
        done = self.report.all.episodes
        if as_json:
            said = self.report.as_json()
            print_json(
                {**said, "episodes": done, "planned": self._total, "played_now": self._played,
                 "seconds": round(self._seconds, 3), "output": str(output) if output else None}
            )  # fmt: skip
            return
        screen = console()
        if done:
            self.report.print(screen)
        splits = list(dict.fromkeys(row.split for row in self._rows))
        words = f"{self._played:,} episodes of split {', '.join(splits)} played in {self._seconds:.1f} s"
        if done > self._played:
            words += f", {done - self._played:,} played before"
        if done < self._total:
            words += f"; {self._total - done:,} are left"
            words += ": the same command goes on with them" if output else ""
        screen.print(f"\n{words}.")
        if self.gone:
            again = "; --retry-failed plays again what has failed" if output else ""
            console(stderr=True).print(f"The server answers no more: stopped{again}.")
        if output is not None:
            screen.print(f"Results: {output}", soft_wrap=True)

    def reaches(self, required: float | None) -> bool:
        """Whether every mean is at least so much."""
        if required is None:
            return True
        means = [summary.mean for summary in self.report.summaries().values()]
        return all(mean is not None and mean >= required - 1e-9 for mean in means)


async def _listens(host: str, port: int) -> bool:
    """Whether a server takes connections; one that is busy does."""
    try:
        async with asyncio.timeout(_GONE_S / 2):
            _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    return True


def _on_signals(playing: asyncio.Future[None], told: list[int]) -> None:
    """The first signal ends the episodes in order, the second at once."""

    def stop(number: int) -> None:
        if told:
            os._exit(128 + number)
        told.append(number)
        playing.cancel()

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if (number := getattr(signal, name, None)) is not None:
            try:
                asyncio.get_running_loop().add_signal_handler(number, stop, number)
            except (NotImplementedError, RuntimeError):  # Windows: the interpreter's own Ctrl-C has to do
                return


def _loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
