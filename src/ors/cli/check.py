"""`ors check`: whether a server does what the protocols' texts say, and whether an environment is well written."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ors.cli.arguments import ApiKey, AsJSON, Debug, Env, Secrets, examples
from ors.cli.errors import NOT_ALL_WELL, CommandError, CommandFailed, reporting
from ors.cli.inputs import secrets_of
from ors.cli.showing import console, plain, table, write_file

if TYPE_CHECKING:
    from ors.conformance import Finding, Report, Row

__all__ = ["HELP_END", "check"]

HELP_END = examples(
    "ors check http://127.0.0.1:8080",
    "ors check my_file.py --level must --junit report.xml",
    "ors check my_file.py --served",
    "ors check http://127.0.0.1:8080 --only ORS-SESSION --only ORS-CALL-015",
    "ors check --probe openreward > probe.py",
)
_COLOURS = {"pass": "green", "fail": "red", "not applicable": "yellow"}


def _print_probe(name: str | None) -> None:
    if name is not None:
        from ors.conformance import probe_source

        print(probe_source(name), end="")
        raise typer.Exit


def check(
    source: Annotated[
        str,
        typer.Argument(
            metavar="URL|TARGET",
            help="A server's address, or what `ors serve` takes: its classes are checked, without a network.",
            show_default=False,
        ),
    ],
    protocol: Annotated[Literal["ors", "openenv"], typer.Option("--protocol", help="What the server speaks.")] = "ors",
    env: Env = None,
    level: Annotated[
        Literal["must", "should", "may"], typer.Option("--level", help="Leave out what is asked for less strongly.")
    ] = "should",
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ID", help="Check this row, area (ORS-CALL) or rule. Can be repeated."),
    ] = None,
    max_requests: Annotated[
        int, typer.Option("--max-requests", min=10, help="Send at most so many requests, deletions included.")
    ] = 1000,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds that an answer may take.")] = 10.0,
    patient: Annotated[bool, typer.Option("--patient", help="Check too what takes a minute.")] = False,
    served: Annotated[
        bool, typer.Option("--served", help="Serve the TARGET while the check runs, and check that server.")
    ] = False,
    secret: Secrets = None,
    api_key: ApiKey = None,
    as_json: AsJSON = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", dir_okay=False, help="Write JUnit XML.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", dir_okay=False, help="Write a page.")
    ] = None,
    probe: Annotated[
        Literal["ors", "openreward"] | None,
        typer.Option("--probe", is_eager=True, callback=_print_probe, help="Print the probe for a package, and exit."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Check a server against the texts of its protocol, over the network; or a class, as its author does.

    A server need not be known: environments, tasks and tools are found, and inputs are made from schemas. Every
    session that the check opens is deleted. Of a class, each complaint names method, line and mend; --level must are
    errors, should warnings too, may notes too. Exit code 3 when a row failed or a rule is broken.
    """
    with reporting(debug=debug):
        if "://" not in source and not served:
            from ors.cli.check_classes import check_classes

            check_classes(
                source,
                env=env,
                level=level,
                only=only or [],
                secrets=secrets_of(secret),
                as_json=as_json,
                junit=junit,
                markdown=markdown,
            )
            return
        rows = _rows(protocol, only or [])
        secrets = secrets_of(secret)
        with _place(source, api_key, debug) as (url, key):
            options = {
                "env": env,
                "level": level,
                "only": only or [],
                "max_requests": max_requests,
                "timeout_s": timeout,
                "patient": patient,
                "secrets": secrets,
            }
            report = _run(url, rows, protocol, key, options)
        _write(report, as_json, junit, markdown)
        if report.failed:
            raise typer.Exit(NOT_ALL_WELL)


def _rows(protocol: str, only: Sequence[str]) -> Sequence[Row]:
    from ors.conformance import rows_of

    try:
        rows = rows_of(protocol)
    except LookupError as exc:
        raise CommandError(f"--protocol {protocol}: {exc}") from None
    for one in only:
        found = [row for row in rows if row.id == one.upper() or row.id.startswith(f"{one.upper()}-")]
        if not found:
            areas = ", ".join(sorted({f"{row.id.rpartition('-')[0]}" for row in rows}))
            raise CommandError(f"--only {one}: there is no such row; areas are {areas}")
        if all(row.check is None for row in found):
            raise CommandError(f"--only {one}: no request to a server shows it: {found[0].instead}")
    return rows


@contextlib.contextmanager
def _place(source: str, api_key: str | None, debug: bool) -> Any:
    """The address and key of a server. A target is served on a free port, for as long as the check runs."""
    from ors.cli.places import opened

    with opened(source, api_key, debug=debug) as place:
        yield place.url, place.api_key


def _run(url: str, rows: Sequence[Row], protocol: str, key: str | None, options: dict[str, Any]) -> Report:
    from ors.conformance import Unreachable, check_server

    async def main() -> Report:
        task = asyncio.ensure_future(
            check_server(url, rows, protocol=protocol, headers={"X-API-Key": key} if key else None, **options)
        )
        told = []

        def stop() -> None:
            told.append(True)
            task.cancel()

        loop = asyncio.get_running_loop()
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            # sessions are deleted first, as after Ctrl-C
            loop.add_signal_handler(signal.SIGTERM, stop)
        try:
            return await task
        except asyncio.CancelledError:
            if not told:
                raise
            raise CommandFailed("the check was told to stop; the sessions that it opened are deleted") from None
        finally:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(signal.SIGTERM)

    try:
        return asyncio.run(main())
    except Unreachable as exc:
        raise CommandFailed(f"nothing answers at {url}: {exc}") from None
    except ValueError as exc:
        raise CommandError(str(exc)) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _write(report: Report, as_json: bool, junit: Path | None, markdown: Path | None) -> None:
    from ors.conformance.report import as_json as json_of
    from ors.conformance.report import as_junit, as_markdown

    for path, make in ((junit, as_junit), (markdown, as_markdown)):
        if path is not None:
            write_file(path, make(report))
    if as_json:
        sys.stdout.write(json_of(report).encode("utf-8", "replace").decode() + "\n")
        sys.stdout.flush()
    else:
        _show(report)


def _show(report: Report) -> None:
    from rich.text import Text

    from ors.conformance.run import NEEDS_PROBE

    screen = console()
    shown = [finding for finding in report.findings if finding.reason != NEEDS_PROBE]
    rows = [
        (
            finding.row.id,
            finding.row.level,
            Text(finding.status, style=_COLOURS[finding.status]),
            f"{finding.row.text}: {finding.reason}" if finding.reason else finding.row.text,
        )
        for finding in shown
    ]
    screen.print(table(("Row", "Level", "Finding", "What is asked, and why not"), rows))
    for finding in report.findings:
        if finding.status == "fail":
            _show_failure(screen, finding, report.masked)
    notes = list(report.notes)
    if unseen := len(report.findings) - len(shown):
        notes.append(f"{unseen} more rows need the probe, an environment to serve: ors check --probe ors > probe.py")
    for note in notes:
        screen.print(f"\n{plain(note)}", soft_wrap=True)
    failed = ", ".join(
        f"{count} {level}" for level in ("must", "should", "may") if (count := report.count("fail", level))
    )
    screen.print(
        f"\n{plain(', '.join(report.environments))}: {report.count('pass')} rows pass, {report.count('fail')} fail"
        f"{f' ({failed})' if failed else ''}, {report.count('not applicable')} are not applicable. "
        f"{report.requests} requests in {report.seconds:.1f} s.",
        soft_wrap=True,
    )


def _show_failure(screen: Any, finding: Finding, masked: tuple[str, ...]) -> None:
    from ors.conformance.report import quotes, shown_answer, shown_request

    screen.print(
        f"\n{finding.row.id} ({finding.row.level}) in {plain(finding.env)}: {plain(finding.reason)}", style="bold"
    )
    screen.print(f"  {finding.row.text}. {finding.row.source}", soft_wrap=True)
    for quote in quotes(finding.row):
        screen.print(f"  {quote}", soft_wrap=True)
    if finding.answer is not None:
        for mark, text in ((">", shown_request(finding.answer, masked)), ("<", shown_answer(finding.answer, masked))):
            for line in text.splitlines():
                screen.print(f"  {mark} {plain(line)}".rstrip(), soft_wrap=True)
