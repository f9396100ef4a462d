"""What each server does with each row: found by running the check on it, kept in `grades.json`, shown on a page.

Run as a program it writes the page, docs/conformance.md; with `--record` it runs the check first and keeps what came.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from interop.peers import PINS, ROOT, clean_environ, peer_python
from ors.conformance import Report, check_server, probe_source, rows_of
from ors.conformance.table import DOCUMENTS


@dataclass(frozen=True)
class Graded:
    """A server, what it speaks, and the package for which it gets the probe."""

    protocol: str
    probe: str
    peer: str | None
    environments: tuple[str, ...]


_TWO = ("conformanceprobe", "conformancecounted")
SERVERS = {
    "ors-kit": Graded("ors", "ors", None, _TWO),
    "ors-sdk": Graded("ors", "ors", "ors-sdk", _TWO),
    "openreward": Graded("ors", "openreward", "openreward", _TWO),
    "ors-kit, OpenEnv": Graded("openenv", "ors.openenv", None, _TWO[:1]),
    "openenv": Graded("openenv", "openenv", "openenv", _TWO[:1]),
}
TITLES = {"ors": "The Open Reward Standard", "openenv": "OpenEnv"}
GRADES = Path(__file__).with_name("grades.json")
PAGE = ROOT / "docs" / "conformance.md"
START_LIMIT_S = 90
MARKS = {"pass": "yes", "fail": "**no**", "not applicable": "–"}
LEADING = Path(__file__).with_name("conformance_page.md")
ROWS = {protocol: rows_of(protocol) for protocol in TITLES}


@contextlib.contextmanager
def served_probe(server: str, folder: Path) -> Iterator[str]:
    """The probe on one of the servers, in a process of its own; yields the address."""
    about = SERVERS[server]
    program = folder / f"probe_for_{re.sub(r'[^a-z]+', '_', server.lower())}.py"
    program.write_text(probe_source(about.probe), "utf-8")
    python = sys.executable if about.peer is None else str(peer_python(about.peer))
    log = folder / f"{server}.log"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [python, str(program), str(port)], cwd=folder, stdout=sink, stderr=sink, env=clean_environ()
        )
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + START_LIMIT_S
        while not answers(url):
            assert process.poll() is None, f"{server} ended: {log.read_text(errors='replace')[-2000:]}"
            assert time.monotonic() < deadline, f"{server} does not answer"
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(url: str) -> bool:
    """Whether a server lives."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def graded(folder: Path) -> dict[str, Report]:
    """Run the check on every server, at the same time: most of it is waiting for a minute."""

    async def check_all(urls: dict[str, str]) -> list[Report]:
        return await asyncio.gather(*(check(url, SERVERS[server].protocol) for server, url in urls.items()))

    def check(url: str, protocol: str) -> Coroutine[Any, Any, Report]:
        return check_server(url, ROWS[protocol], protocol=protocol, timeout_s=30, patient=True)

    with contextlib.ExitStack() as stack:
        urls = {server: stack.enter_context(served_probe(server, folder)) for server in SERVERS}
        return dict(zip(urls, asyncio.run(check_all(urls)), strict=True))


def found(report: Report) -> dict[str, str]:
    """What came of each row, as it is kept: what passes is left out."""
    return {f.row.id: f"{f.status}: {f.reason}" for f in report.findings if f.status != "pass"}


def grades() -> dict[str, Any]:
    """What is kept: for each server its version, what came, and why."""
    kept: dict[str, Any] = json.loads(GRADES.read_text("utf-8"))
    return kept


def record() -> None:
    """Run the check on every server and keep what came; reasons stay as they are."""
    kept = grades() if GRADES.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        reports = graded(Path(folder))
    for server, report in reports.items():
        came = found(report)
        why = kept.get(server, {}).get("why", {})
        kept[server] = {
            "version": PINS.get(SERVERS[server].peer or ""),
            "found": came,
            "why": {id: why.get(id, "") for id, what in came.items() if what.startswith("fail")},
        }
    GRADES.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", "utf-8")


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def page() -> str:
    """The page: what is written by hand, then the tables."""
    kept = grades()
    names = {server: f"{server} {kept[server]['version']}" if kept[server]["version"] else server for server in SERVERS}
    lines = [LEADING.read_text("utf-8").rstrip(), "", "## Who does what", ""]
    lines += [
        "Each server with the probe, from its package as it is published. “–” stands for what could not be seen, most "
        "often because another row fails.",
        "",
        "| Server | rows that pass | must | should |",
        "| --- | --- | --- | --- |",
    ]
    for server, name in names.items():
        came = kept[server]["found"]
        checked = [row for row in ROWS[SERVERS[server].protocol] if row.check]
        fails = {
            level: sum(came.get(row.id, "").startswith("fail") for row in checked if row.level == level)
            for level in ("must", "should")
        }
        passed = len(checked) - len(came)
        lines.append(f"| {name} | {passed} of {len(checked)} | {_fail(fails['must'])} | {_fail(fails['should'])} |")
    for protocol, rows in ROWS.items():
        lines += ["", f"## {TITLES[protocol]}"]
        told = [server for server, about in SERVERS.items() if about.protocol == protocol]
        for area in dict.fromkeys(row.area for row in rows):
            shown = [row for row in rows if row.area == area and row.check]
            if not shown:
                continue
            columns = " | ".join(names[server] for server in told)
            lines += ["", f"### {protocol.upper()}-{area}", "", f"| Row | Level | What is asked | Source | {columns} |"]
            lines.append("| --- | --- | --- | --- |" + " --- |" * len(told))
            for row in shown:
                marks = [MARKS[kept[server]["found"].get(row.id, "pass").partition(":")[0]] for server in told]
                probed = " (probe)" if row.probe else ""
                source = f"{SHORT[row.document]}, {row.section}"
                lines.append(
                    f"| {row.id} | {row.level} | {cell(row.text)}{probed} | {cell(source)} | {' | '.join(marks)} |"
                )
    lines += ["", "## Why rows fail", "", "| Server | Row | What was found | Why |", "| --- | --- | --- | --- |"]
    for server, name in names.items():
        for id, why in kept[server]["why"].items():
            lines.append(f"| {name} | {id} | {cell(kept[server]['found'][id].removeprefix('fail: '))} | {cell(why)} |")
    lines += ["", "## What no request can show", "", "| Row | Whom it binds | What is asked | Who checks it |"]
    lines.append("| --- | --- | --- | --- |")
    for row in (row for rows in ROWS.values() for row in rows):
        if row.instead:
            lines.append(f"| {row.id} | {row.subject}, {row.level} | {cell(row.text)} | {cell(row.instead)} |")
    lines += ["", "## Sources", "", "| Short | Document |", "| --- | --- |"]
    lines += [f"| {SHORT[key]} | {title} |" for key, title in DOCUMENTS.items()]
    return "\n".join(lines) + "\n"


SHORT = {
    "data-types": "Data Types",
    "tasks-and-splits": "Tasks & Splits",
    "task-api": "Task API",
    "openenv": "OpenEnv",
    "clients": "Clients",
    "events": "SSE",
    "json": "JSON",
    "http": "HTTP",
}


def _fail(count: int) -> str:
    return "all pass" if not count else f"{count} fail{'s' if count == 1 else ''}"


if __name__ == "__main__":
    if "--record" in sys.argv[1:]:
        record()
    PAGE.write_text(page(), "utf-8")
