"""The check ends, whatever the server does, within its limits, and leaves no session behind."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ors.conformance import Report, Unreachable, check_server
from ors.conformance.report import as_json, as_junit, as_markdown
from ors.conformance.run import NOT_UNDERSTOOD

from .bad_servers import BAD, calls_without_end, hangs, serving
from .mutating import Exchange, Run, fault
from .serving import ROWS, ServedProbe, visit

QUICK_ROWS = tuple(row for row in ROWS if not row.background)


@pytest.fixture(scope="module")
def served() -> Iterator[ServedProbe]:
    with ServedProbe() as server:
        yield server


def understood(report: Report) -> None:
    assert [(f.row.id, f.reason) for f in report.findings if NOT_UNDERSTOOD in f.reason] == []
    # and what is told of it can be written
    assert as_json(report).encode()
    assert as_junit(report).encode()
    assert as_markdown(report).encode()


@pytest.mark.parametrize("name", BAD)
def test_the_check_ends_and_says_what_is_wrong(name: str) -> None:
    async def main() -> tuple[Report, list[str]]:
        async with serving(BAD[name]) as (url, asked):
            return await check_server(url, ROWS, timeout_s=0.3, max_requests=400), asked

    begun = time.monotonic()
    report, asked = asyncio.run(main())
    understood(report)
    assert report.failed
    assert report.count("pass") + report.count("fail") + report.count("not applicable") == len(
        [row for row in ROWS if row.check]
    )
    assert len(asked) <= report.requests <= 400
    assert time.monotonic() - begun < 30


def test_a_server_that_hangs_is_not_asked_for_ever() -> None:
    async def main() -> tuple[Report, list[str]]:
        async with serving(hangs) as (url, asked):
            return await check_server(url, ROWS, timeout_s=0.2), asked

    report, asked = asyncio.run(main())
    assert 1 < len(asked) < 20
    assert any("left" in finding.reason and "unanswered" in finding.reason for finding in report.findings)


def test_where_nothing_listens_is_unreachable() -> None:
    async def main() -> None:
        async with serving(hangs) as (url, _):
            pass
        await check_server(url, ROWS)

    with pytest.raises(Unreachable):
        asyncio.run(main())


def test_sessions_are_deleted_though_every_call_streams_without_end() -> None:
    async def main() -> list[str]:
        async with serving(calls_without_end) as (url, asked):
            await check_server(url, ROWS, timeout_s=0.3, max_requests=200)
            return asked

    asked = asyncio.run(main())
    assert any(" /endless/call " in line for line in asked)
    last_opened = max(number for number, line in enumerate(asked) if " /create" in line)
    assert any(" /delete " in line for line in asked[last_opened:])


def test_the_visit_as_a_whole_has_a_limit(served: ServedProbe) -> None:
    report = visit(served.url, limit_s=0.3)
    assert report.seconds < 5
    assert any("ended after 0.3 s" in note for note in report.notes)
    assert served.status()["sessions"] == 0


@pytest.mark.parametrize("limit", [10, 11, 12, 25, 60, 143])
def test_no_more_requests_than_allowed_are_sent(served: ServedProbe, limit: int) -> None:
    sent = count_requests(served)
    report = visit(served.url, rows=QUICK_ROWS, max_requests=limit, fault="ORS-TEST: counts")
    assert sent() == report.requests <= limit
    assert any(f"the limit of {limit} requests" in note for note in report.notes)
    assert served.status()["sessions"] == 0


COUNTED: list[str] = []


@fault("TEST", "counts")
async def _(x: Exchange, run: Run) -> None:
    COUNTED.append(x.path)
    await run(x)


def count_requests(served: ServedProbe) -> Any:
    COUNTED.clear()
    return lambda: len(COUNTED)


def test_a_check_that_is_cancelled_deletes_its_sessions_first(served: ServedProbe) -> None:
    opened = served.status()["opened"]

    async def main() -> None:
        task = asyncio.ensure_future(check_server(served.url, ROWS))
        while served.server.application.host is None or served.status()["opened"] < opened + 3:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert served.status()["sessions"] == 0


@fault("TEST", "deletes nothing in time")
async def _(x: Exchange, run: Run) -> None:
    if x.route == "delete":
        await asyncio.sleep(1.0)
    await run(x)


def test_a_server_that_does_not_delete_in_time_is_told_of(served: ServedProbe) -> None:
    report = visit(served.url, "ORS-PROMPT-001", fault="ORS-TEST: deletes nothing in time", timeout_s=0.3)
    assert any("did not answer when sessions were deleted" in note for note in report.notes)


ODD: list[Any] = [
    "\ud800",
    None,
    True,
    7,
    -1.5,
    "",
    "text",
    [],
    {},
    [None],
    {"a": []},
    [[]],
    "x" * 5000,
    2**70,
    {"": {"": 0}},
]


@fault("TEST", "lies")
async def _(x: Exchange, run: Run) -> None:
    """Somewhere in each answer stands something else, the same for the same path and seed."""
    await run(x)
    lie = random.Random(f"{x.scope['path']}{dict(x.scope['headers'])[b'x-seed']}")
    if lie.random() < 0.5:
        return
    value = x.result if x.streams else x.told if x.out else None
    changed = lying(value, lie)
    if x.streams and value is not None:
        x.result = changed
    elif not x.streams:
        x.told = changed


def lying(value: Any, lie: random.Random) -> Any:
    if isinstance(value, dict) and value and lie.random() < 0.8:
        key = lie.choice(sorted(value))
        if lie.random() < 0.15:
            return {name: one for name, one in value.items() if name != key}
        return {**value, key: lying(value[key], lie)}
    if isinstance(value, list) and value and lie.random() < 0.8:
        place = lie.randrange(len(value))
        return [*value[:place], lying(value[place], lie), *value[place + 1 :]]
    return lie.choice(ODD)


@pytest.mark.parametrize("seed", range(8))
def test_lies_are_findings_and_break_nothing(served: ServedProbe, seed: int) -> None:
    headers = {"X-Fault": f"ORS-TEST: lies#{seed}", "X-Seed": str(seed)}
    report = asyncio.run(check_server(served.url, QUICK_ROWS, headers=headers, max_requests=600, timeout_s=5))
    understood(report)
    assert report.failed
    assert served.status()["sessions"] == 0
