"""The table: what a row is, and how the modules of each area write theirs.

A check is an async function whose name is the row's id: `_session_012` of the protocol ORS is `ORS-SESSION-012`. It is
given a `Place`, raises `Failed` or `NotApplicable`, and returns where the server does what the row says.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal, TypeAlias

__all__ = ["DOCUMENTS", "LEVELS", "Area", "Check", "Level", "Row", "Sentence", "Subject", "sentences"]

Level: TypeAlias = Literal["must", "should", "may"]
Subject: TypeAlias = Literal["server", "client", "author", "agent"]
Check: TypeAlias = Callable[[Any], Awaitable[None]]

LEVELS: tuple[Level, ...] = ("must", "should", "may")

DOCUMENTS: Mapping[str, str] = {
    "data-types": "Open Reward Standard, Data Types",
    "tasks-and-splits": "Open Reward Standard, Tasks & Splits",
    "task-api": "OpenEnv, The Task API",
    "openenv": "What the published clients and environments of openenv 0.10.0 rely on",
    "clients": "What the published clients of ors-sdk 0.1.0 and openreward 0.1.167 rely on",
    "events": "WHATWG HTML, Server-sent events",
    "json": "RFC 8259",
    "http": "RFC 9110",
}
"""The documents that rows come from. The first three are the texts; the others are what any of them stands on."""


@dataclass(frozen=True)
class Row:
    """One requirement.

    document and section: where it is stated. text: the requirement in our words. check: for the rows that the network
    can show; instead: for the others, who checks it or why nobody can. once: asked of the server, not of each of its
    environments. background: it takes long and is begun first.
    """

    id: str
    document: str
    section: str
    text: str
    level: Level
    subject: Subject
    check: Check | None = None
    instead: str | None = None
    probe: bool = False
    once: bool = False
    background: bool = False

    @property
    def area(self) -> str:
        """The middle of the id."""
        return self.id.split("-")[1]

    @property
    def source(self) -> str:
        """Document and section, for people."""
        return f"{DOCUMENTS[self.document]}, {self.section}" if self.section else DOCUMENTS[self.document]


class Area:
    """The rows of one area, in the order in which they are written."""

    def __init__(self, protocol: str, name: str) -> None:
        self.protocol = protocol
        self.name = name
        self.rows: list[Row] = []

    def row(
        self,
        level: Level,
        document: str,
        section: str,
        text: str,
        *,
        probe: bool = False,
        once: bool = False,
        background: bool = False,
    ) -> Callable[[Check], Check]:
        """Declare the requirement that a check judges: a row about servers."""

        def declare(check: Check) -> Check:
            id = f"{self.protocol}-{check.__name__.strip('_').upper().replace('_', '-')}"
            self.rows.append(Row(id, document, section, text, level, "server", check, None, probe, once, background))
            return check

        return declare

    def said(
        self, number: int, level: Level, subject: Subject, document: str, section: str, text: str, instead: str
    ) -> None:
        """Declare a requirement that no request to a server can show."""
        id = f"{self.protocol}-{self.name}-{number:03d}"
        self.rows.append(Row(id, document, section, text, level, subject, instead=instead))


@dataclass(frozen=True)
class Sentence:
    """A sentence of the texts and the rows that cover it."""

    document: str
    section: str
    quote: str
    rows: tuple[str, ...]


def sentences() -> list[Sentence]:
    """Every sentence of the texts that states something, in order."""
    text = resources.files("ors.conformance").joinpath("sentences.json").read_text("utf-8")
    return [Sentence(one["document"], one["section"], one["quote"], tuple(one["rows"])) for one in json.loads(text)]
