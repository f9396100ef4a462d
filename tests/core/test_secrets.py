"""Secrets show their names only, and their values are masked in every text while they live."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import pytest

from ors.core.ports import Start
from ors.core.secrets import Secrets, mask

VALUE = "hunter2-hunter2"


@pytest.fixture
def held() -> Iterator[Secrets]:
    secrets = Secrets({"key": VALUE, "short": "abc", "longer": f"{VALUE}-and-more"})
    secrets.hold()
    yield secrets
    secrets.release()
    assert mask(VALUE) == VALUE, "something still holds it"


def test_no_text_of_them_has_a_value(held: Secrets) -> None:
    start = Start(task={"a": 1}, secrets=held)
    for text in (repr(held), str(held), f"{held}", repr(start), str({"secrets": held})):
        assert VALUE not in text and "abc" not in text
        assert "key" in text
    assert repr(Secrets()) == "Secrets()"


def test_they_are_a_mapping_and_can_be_revealed(held: Secrets) -> None:
    assert held["key"] == VALUE and len(held) == 3 and set(held) == {"key", "short", "longer"}
    revealed = held.reveal()
    assert type(revealed) is dict and revealed["short"] == "abc"
    revealed["key"] = "changed"
    assert held["key"] == VALUE
    assert held == Secrets(held.reveal()) and hash(held) == hash(Secrets(held.reveal()))
    assert held != {"key": VALUE}


def test_values_of_eight_characters_or_more_are_masked(held: Secrets) -> None:
    assert mask(f"login with {VALUE} failed") == "login with [secret] failed"
    assert mask(f"{VALUE}-and-more") == "[secret]", "the longer one must go first"
    assert mask("abc") == "abc"
    assert mask("nothing here") == "nothing here"
    seven, eight = Secrets({"k": "1234567"}), Secrets({"k": "12345678"})
    for secrets in (seven, eight):
        secrets.hold()
    assert mask("1234567 12345678") == "1234567 [secret]"
    for secrets in (seven, eight):
        secrets.release()
    assert mask("12345678") == "12345678"


def test_a_value_that_two_sessions_hold_is_masked_until_both_have_gone(held: Secrets) -> None:
    other = Secrets({"another": VALUE, "twice": VALUE})
    other.hold()
    other.release()
    assert mask(VALUE) == "[secret]"


def test_many_are_masked_as_few_are(held: Secrets) -> None:
    texts = [
        f"login with {VALUE} failed",
        f"{VALUE}{VALUE}-and-more|{VALUE[:-1]}",
        VALUE,
        "short",
        "",
        f"token-000123-of-a-session {VALUE} token-000123",
        "token-000123-of-a-sessiontoken-000999-of-a-session",
    ]
    few = [mask(text) for text in texts[:5]]
    many = [Secrets({"key": f"token-{number:06d}-of-a-session"}) for number in range(5000)]
    for secrets in many:
        secrets.hold()
    try:
        assert [mask(text) for text in texts[:5]] == few
        assert mask(texts[5]) == "[secret] [secret] token-000123"
        assert mask(texts[6]) == "[secret][secret]"
        assert mask("an ordinary line of a log") == "an ordinary line of a log"
    finally:
        for secrets in many:
            secrets.release()
    assert mask(texts[6]) == texts[6]
    assert mask(VALUE) == "[secret]"


def test_a_copy_is_no_way_around(held: Secrets) -> None:
    for same in (copy.copy(held), copy.deepcopy(held), pickle.loads(pickle.dumps(held))):
        assert VALUE not in repr(same)
        assert same == held
