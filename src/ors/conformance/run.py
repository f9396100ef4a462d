"""Running the checks: every row on every environment, within the limits, whatever the server does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ors.conformance.judging import Failed, NotApplicable
from ors.conformance.openenv_place import OpenEnvPlace
from ors.conformance.place import Place
from ors.conformance.table import LEVELS, Level, Row
from ors.conformance.visit import Visit
from ors.conformance.wire import Address, Answer, BadJSON, Speaker

__all__ = ["NEEDS_PROBE", "Finding", "Report", "Status", "Unreachable", "check_server"]

NEEDS_PROBE = "it needs the probe, which this server does not serve"
NOT_UNDERSTOOD = "what the server sent is not understood"

Status: TypeAlias = Literal["pass", "fail", "not applicable"]


class Unreachable(Exception):
    """Nothing answers at the address."""


@dataclass(frozen=True)
class Finding:
    """What came of a row. reason: why it failed or could not be checked. answer: what showed it."""

    row: Row
    status: Status
    reason: str = ""
    env: str = ""
    answer: Answer | None = None


@dataclass
class Report:
    """What came of a visit: a finding for each row that was asked for."""

    url: str
    protocol: str
    environments: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    requests: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    masked: tuple[str, ...] = ()
    """Secrets of the user, which nothing that is written may show."""

    def count(self, status: Status, level: Level | None = None) -> int:
        """How many rows came to a status, of one level or of all."""
        return sum(f.status == status and level in (None, f.row.level) for f in self.findings)

    @property
    def failed(self) -> bool:
        """Whether any row failed."""
        return self.count("fail") > 0


async def check_server(
    url: str,
    rows: Sequence[Row],
    *,
    protocol: str = "ors",
    env: str | None = None,
    level: Level = "may",
    only: Collection[str] = (),
    max_requests: int = 1000,
    timeout_s: float = 10.0,
    limit_s: float = 900.0,
    patient: bool = False,
    headers: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    progress: Callable[[Row], None] | None = None,
) -> Report:
    """Check a server and leave nothing behind on it.

    env: one environment, else all. level: weaker rows are left out. only: ids of rows, or of areas. limit_s: for
    the visit as a whole. secrets: for the sessions, where the environments need some.
    Raises Unreachable where nothing listens.
    """
    address = Address(url)
    speaker = Speaker(address, timeout_s=timeout_s, headers=headers)
    visit = Visit(speaker, max_requests=max_requests, patient=patient, secrets=secrets)
    report = Report(address.url, protocol, masked=tuple((secrets or {}).values()))
    wanted = [row for row in rows if row.check and _wanted(row, level, only)]
    begun = time.monotonic()
    found: dict[str, list[Finding]] = {row.id: [] for row in wanted}
    try:
        async with asyncio.timeout(limit_s):
            names = await _environments(visit)
            report.environments = _selected(names, env)
            await _check_all(visit, names, report, wanted, found, progress)
    except TimeoutError:
        report.notes.append(f"the check ended after {limit_s:g} s; rows without a finding by then are not applicable")
    finally:
        await _leave(visit, report)
    report.findings = [_merged(row, found[row.id], report) for row in wanted]
    report.requests, report.seconds = visit.requests, time.monotonic() - begun
    return report


async def _check_all(
    visit: Visit,
    names: list[str],
    report: Report,
    rows: Iterable[Row],
    found: dict[str, list[Finding]],
    progress: Callable[[Row], None] | None,
) -> None:
    for number, name in enumerate(report.environments):
        place = (OpenEnvPlace if report.protocol == "openenv" else Place)(visit, name, names or [name])
        background = [row for row in rows if row.background and _applies(row, place, number)]
        running = [asyncio.ensure_future(_judge(row, place)) for row in background]
        try:
            for row in rows:
                if not row.background and _applies(row, place, number):
                    if progress is not None:
                        progress(row)
                    found[row.id].append(await _judge(row, place))
            for finding in await asyncio.gather(*running):
                found[finding.row.id].append(finding)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        if any(f.status == "not applicable" and "the limit of" in f.reason for fs in found.values() for f in fs):
            report.notes.append(
                f"the limit of {visit.max_requests} requests was reached in {name!r}: --max-requests raises it"
            )
            return
        await visit.delete_all()


def _applies(row: Row, place: Place, number: int) -> bool:
    """Rows about the server are judged at its first environment, rows that need the probe only there."""
    return (number == 0 if row.once else True) and (place.is_probe or not row.probe)


async def _judge(row: Row, place: Place) -> Finding:
    assert row.check is not None
    try:
        await row.check(place)
    except Failed as exc:
        return Finding(row, "fail", _writable(str(exc)), place.env, exc.answer)
    except NotApplicable as exc:
        return Finding(row, "not applicable", _writable(str(exc)), place.env)
    except Exception as exc:
        # a check that a server can break is ours to mend; the visit goes on all the same
        return Finding(row, "fail", f"{NOT_UNDERSTOOD}: {type(exc).__name__}: {exc!r}"[:300], place.env)
    return Finding(row, "pass", "", place.env)


def _merged(row: Row, findings: list[Finding], report: Report) -> Finding:
    """One finding of those from each environment: a failure if there is one, else a pass if there is one."""
    for status in ("fail", "pass", "not applicable"):
        for finding in findings:
            if finding.status == status:
                return finding
    if row.probe and report.environments:
        return Finding(row, "not applicable", NEEDS_PROBE)
    return Finding(row, "not applicable", "the check ended before it")


async def _environments(visit: Visit) -> list[str]:
    """The environments that the server names; none where its list cannot be used. Raises Unreachable."""
    answer = await visit.once("environments", lambda: visit.ask("GET", "/list_environments"))
    if answer.problem is not None and answer.problem.startswith("the connection failed"):
        raise Unreachable(answer.problem)
    try:
        names = answer.json() if answer.problem is None and answer.status == 200 else []
    except BadJSON:
        names = []
    usable = (
        [name for name in names if isinstance(name, str) and name and _writable(name) == name]
        if isinstance(names, list)
        else []
    )
    return list(dict.fromkeys(usable))


def _writable(text: str) -> str:
    """A text of a server without what is no Unicode text: half a surrogate pair cannot be sent nor written."""
    return text.encode("utf-8", "replace").decode()


def _selected(names: list[str], env: str | None) -> list[str]:
    if env is not None:
        return [next((name for name in names if name.lower() == env.lower()), env)]
    # a server that names none is asked all the same: each row then says what it does
    return names or ["unknown"]


def _wanted(row: Row, level: Level, only: Collection[str]) -> bool:
    if only:
        return any(row.id == one.upper() or row.id.startswith(f"{one.upper()}-") for one in only)
    return LEVELS.index(row.level) <= LEVELS.index(level)


async def _leave(visit: Visit, report: Report) -> None:
    """End every session, also when the check itself was cancelled, but not for ever."""
    leaving = asyncio.ensure_future(visit.leave())
    cancelled = False
    while not leaving.done():
        try:
            await asyncio.wait({leaving}, timeout=4 * visit.speaker.timeout_s)
            if not leaving.done():
                leaving.cancel()
        except asyncio.CancelledError:
            cancelled = True
    if leaving.cancelled() or visit.undeleted:
        report.notes.append("the server did not answer when sessions were deleted; they end when it lets them expire")
    if cancelled:
        raise asyncio.CancelledError
