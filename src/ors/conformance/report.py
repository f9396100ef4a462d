"""Reports for programs and for pages: JSON, JUnit XML and Markdown; and requests and answers, shortened, for people."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

from ors.conformance.run import Finding, Report
from ors.conformance.table import Row, sentences
from ors.conformance.wire import Answer, Sent

__all__ = ["as_json", "as_junit", "as_markdown", "quotes", "shown_answer", "shown_request", "xml_text"]

_BODY = 600
_SHOWN_HEADERS = ("x-session-id", "accept", "content-type", "location", "retry-after", "x-backend-state")


def quotes(row: Row) -> list[str]:
    """The sentences of the texts that a row stands for."""
    return [f"“{one.quote}” ({one.section})" for one in sentences() if row.id in one.rows]


def shown_request(answer: Answer, masked: tuple[str, ...] = ()) -> str:
    """A request, shortened and without secrets."""
    sent = answer.request
    return _without(masked, _request(sent))


def _request(sent: Sent) -> str:
    lines = [f"{sent.method} {sent.path}"]
    lines += [f"{name}: {value[:120]}" for name, value in sent.headers.items() if name.lower() in _SHOWN_HEADERS]
    return "\n".join([*lines, "", _short(sent.body)] if sent.body else lines)


def shown_answer(answer: Answer, masked: tuple[str, ...] = ()) -> str:
    """An answer, shortened and without secrets."""
    return _without(masked, _answer(answer))


def _without(masked: tuple[str, ...], text: str) -> str:
    for secret in sorted(masked, key=len, reverse=True):
        if len(secret) >= 4:
            text = text.replace(secret, "***").replace(json.dumps(secret)[1:-1], "***")
    return text


def _answer(answer: Answer) -> str:
    lines = [f"{answer.status or 'no status'}"]
    lines += [f"{name}: {value[:120]}" for name, value in answer.headers if name in _SHOWN_HEADERS]
    if answer.body:
        lines += ["", _short(answer.body)]
    if answer.problem:
        lines += ["", f"({answer.problem})"]
    return "\n".join(lines)


def _short(body: bytes) -> str:
    text = body[: _BODY * 4].decode("utf-8", "backslashreplace")
    # control characters of a server have no business on a terminal
    text = "".join(c if c.isprintable() or c == "\n" else "" if c == "\r" else f"\\x{ord(c):02x}" for c in text)
    if len(body) <= _BODY * 4 and len(text) <= _BODY:
        return text
    return (
        f"{text[: _BODY // 2]} … ({len(body)} bytes) … {text[-_BODY // 4 :] if len(body) <= _BODY * 4 else ''}".rstrip()
    )


def as_json(report: Report) -> str:
    """The report as one JSON object."""
    findings = [_finding(finding, report.masked) for finding in report.findings]
    about: dict[str, Any] = {
        "url": report.url,
        "protocol": report.protocol,
        "environments": report.environments,
        "requests": report.requests,
        "seconds": round(report.seconds, 3),
        "notes": report.notes,
        "counts": {status: report.count(status) for status in ("pass", "fail", "not applicable")},
        "rows": findings,
    }
    return json.dumps(about, indent=2, ensure_ascii=False)


def _finding(finding: Finding, masked: tuple[str, ...]) -> dict[str, Any]:
    row = finding.row
    told: dict[str, Any] = {
        "id": row.id,
        "level": row.level,
        "text": row.text,
        "source": row.source,
        "status": finding.status,
        "reason": finding.reason,
        "environment": finding.env,
    }
    if finding.status == "fail":
        told["sentences"] = quotes(row)
        if finding.answer is not None:
            told |= {"request": shown_request(finding.answer, masked), "answer": shown_answer(finding.answer, masked)}
    return told


def as_junit(report: Report) -> str:
    """The report as JUnit XML, a test case for each row."""
    suite = ElementTree.Element(
        "testsuite",
        name=f"ors check {report.url}",
        tests=str(len(report.findings)),
        failures=str(report.count("fail")),
        skipped=str(report.count("not applicable")),
        errors="0",
        time=f"{report.seconds:.3f}",
    )
    for finding in report.findings:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"{report.protocol}.{finding.row.area.lower()}",
            name=f"{finding.row.id} {finding.row.text}",
        )
        if finding.status == "fail":
            failure = ElementTree.SubElement(case, "failure", message=xml_text(finding.reason), type=finding.row.level)
            failure.text = xml_text(_story(finding, report.masked))
        elif finding.status == "not applicable":
            ElementTree.SubElement(case, "skipped", message=xml_text(finding.reason))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def xml_text(text: str) -> str:
    """Without what XML 1.0 cannot hold."""
    return "".join(
        c if c in "\t\n\r" or (c >= " " and not 0xD800 <= ord(c) < 0xE000 and c not in "\ufffe\uffff") else "\ufffd"
        for c in text
    )


def _story(finding: Finding, masked: tuple[str, ...]) -> str:
    parts = [f"{finding.reason} ({finding.env})", *quotes(finding.row)]
    if finding.answer is not None:
        parts += ["", shown_request(finding.answer, masked), "", shown_answer(finding.answer, masked)]
    return "\n".join(parts)


def as_markdown(report: Report) -> str:
    """The report as a page: a table of all rows, then each failure with its request and answer."""
    lines = [
        f"# {report.url}: {report.protocol}",
        "",
        f"{report.count('pass')} rows pass, {report.count('fail')} fail, "
        f"{report.count('not applicable')} are not applicable; {report.requests} requests in {report.seconds:.1f} s.",
        "",
        *(f"{note}\n" for note in report.notes),
        "| Row | Level | What is asked | |",
        "| --- | --- | --- | --- |",
    ]
    for finding in report.findings:
        reason = f"{finding.status}: {finding.reason}" if finding.reason else finding.status
        lines.append(f"| {finding.row.id} | {finding.row.level} | {_cell(finding.row.text)} | {_cell(reason)} |")
    for finding in report.findings:
        if finding.status == "fail":
            lines += ["", f"## {finding.row.id}", "", f"{_cell(finding.row.text)}. Source: {finding.row.source}."]
            lines += ["", f"In `{finding.env}`: {_cell(finding.reason)}."]
            lines += [f"\n> {_cell(quote)}" for quote in quotes(finding.row)]
            if finding.answer is not None:
                lines += [
                    "",
                    "````text",
                    shown_request(finding.answer, report.masked),
                    "````",
                    "",
                    "````text",
                    shown_answer(finding.answer, report.masked),
                    "````",
                ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
