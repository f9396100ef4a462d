"""The table is whole in both directions: rows and checks, rows and sentences."""

from __future__ import annotations

import inspect
import re
import sys

import pytest

from ors.conformance import LEVELS, openenv_rows, ors_rows, rows_of, sentences
from ors.conformance.table import DOCUMENTS
from ors.testing import RULES

from .texts import FILES, STATES, folder_of_texts, normal, units

AREAS = (*ors_rows.AREAS, *openenv_rows.AREAS)
ROWS = (*rows_of("ors"), *rows_of("openenv"))
BY_ID = {row.id: row for row in ROWS}
IDS = [row.id for row in ROWS]
TEXTS = ("data-types", "tasks-and-splits", "task-api")


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_row_has_a_check_or_says_who_has_it(row) -> None:
    assert (row.check is None) == (row.subject != "server")
    assert (row.check is None) == bool(row.instead)
    assert row.level in LEVELS
    assert row.document in DOCUMENTS
    assert row.section
    assert re.match(r"\S.*[^.\s]$", row.text), "a phrase without an end mark"


@pytest.mark.parametrize("row", [row for row in ROWS if row.instead], ids=lambda row: row.id)
def test_rows_that_are_named_elsewhere_are_there(row) -> None:
    named = re.findall(r"(?:ORS|OPENENV)-[A-Z]+-\d{3}", row.instead)
    assert set(named) <= set(IDS)


def test_what_check_environment_has_is_named_by_its_rules() -> None:
    named = {
        row.id: re.findall(r"`([a-z-]+)`", row.instead) for row in ROWS if "check_environment" in (row.instead or "")
    }
    assert len(named) > 8
    for row, rules in named.items():
        assert rules, row
        assert set(rules) <= set(RULES), row


@pytest.mark.parametrize("area", AREAS, ids=lambda area: f"{area.protocol}-{area.name}")
def test_ids_of_an_area_count_from_one(area) -> None:
    counted = [f"{area.protocol}-{area.name}-{n:03d}" for n in range(1, len(area.rows) + 1)]
    assert [row.id for row in area.rows] == counted


def test_every_check_is_a_row() -> None:
    modules = [module for name, module in sys.modules.items() if re.match(r"ors\.conformance\.\w+_rows\.", name)]
    named = {
        function
        for module in modules
        for name, function in inspect.getmembers(module, inspect.iscoroutinefunction)
        if re.search(r"_\d{3}$", name)
    }
    assert len(modules) > 10
    assert named == {row.check for row in ROWS if row.check is not None}


def test_a_row_that_needs_the_probe_says_so() -> None:
    for row in ROWS:
        if row.check is not None:
            source = inspect.getsource(row.check)
            uses = "at.probed(" in source or any(f', "{name}"' in source for name in ("echo", "slow", "finish", "fail"))
            assert not uses or row.probe, row.id


@pytest.mark.parametrize("sentence", sentences(), ids=lambda one: one.quote[:40])
def test_a_sentence_is_covered_by_rows_that_there_are(sentence) -> None:
    assert sentence.document in FILES
    assert sentence.rows
    assert set(sentence.rows) <= set(IDS)


def test_every_row_from_the_texts_stands_for_a_sentence() -> None:
    quoted = {id for sentence in sentences() for id in sentence.rows}
    assert [row.id for row in ROWS if row.document in TEXTS and row.id not in quoted] == []


def test_every_row_from_a_text_stands_for_a_sentence_of_that_text() -> None:
    quoted = {(id, sentence.document) for sentence in sentences() for id in sentence.rows}
    assert [row.id for row in ROWS if row.document in TEXTS and (row.id, row.document) not in quoted] == []


def test_no_sentence_is_there_twice() -> None:
    keys = [(sentence.document, sentence.section, sentence.quote) for sentence in sentences()]
    assert len(set(keys)) == len(keys)


def test_sentences_are_taken_apart_as_they_stand() -> None:
    text = "# One\nFirst. It must be.\n* `a`: word (string, required)\n## Two\n```\nreturns x\n```\n| a | required |\n"
    found = list(units(text))
    assert found == [
        ("One", "First."),
        ("One", "It must be."),
        ("One", "`a`: word (string, required)"),
        ("Two", "returns x"),
        ("Two", "| a | required |"),
    ]
    assert [bool(STATES.search(unit)) for _, unit in found] == [False, True, True, True, True]


STATING = {"data-types": 20, "tasks-and-splits": 6, "task-api": 6}
"""How many such sentences each text has at least."""


# The texts are not ours to keep: where somebody has them, this holds the data against them.
@pytest.mark.parametrize("document", FILES)
def test_every_stating_sentence_of_the_texts_is_in_the_data_and_every_quotation_in_the_texts(document: str) -> None:
    quotes = [normal(one.quote) for one in sentences() if one.document == document]
    assert sum(bool(STATES.search(quote)) for quote in quotes) >= STATING[document]
    if (folder := folder_of_texts()) is not None:
        text = (folder / FILES[document]).read_text("utf-8")
        stating = [(section, normal(unit)) for section, unit in units(text) if STATES.search(unit)]
        assert [(section, unit) for section, unit in stating if unit not in quotes] == []
        assert len(stating) >= STATING[document]
        assert [quote for quote in quotes if quote not in normal(text)] == []
