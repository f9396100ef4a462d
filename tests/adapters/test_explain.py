"""What is said of an exception, whatever it is and however it fights."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ors.adapters.explain import LIMIT, explain
from ors.core.secrets import Secrets


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


class Quitter(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class NotText(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("exception", "words"),
    [
        (ValueError("wrong"), "ValueError: wrong"),
        (KeyError("name"), "KeyError: 'name'"),
        (AssertionError(), "AssertionError"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (ExceptionGroup("two", [ValueError("a"), KeyError("b")]), "ExceptionGroup: two (2 sub-exceptions)"),
        (Mute(), "Mute (its message cannot be shown: it raised)"),
        (Quitter(), "Quitter (its message cannot be shown: it raised)"),
        (NotText(), "NotText (its message cannot be shown: it raised)"),
        (ValueError("lone \ud800 surrogate"), "ValueError: lone \\ud800 surrogate"),
        (ValueError("\0 and \r\n lines"), "ValueError: \0 and \r\n lines"),
    ],
)
def test_type_and_message(exception: BaseException, words: str) -> None:
    assert explain(exception, "exception", "otherwise") == words
    assert explain(exception, "none", "otherwise") == "otherwise"
    json.dumps(explain(exception, "exception", "")).encode()


def fail() -> None:
    try:
        raise KeyError("inner")
    except KeyError as exc:
        raise ValueError("outer") from exc


def caught(function: Any) -> BaseException:
    try:
        function()
    except BaseException as exc:
        return exc
    raise AssertionError("nothing was raised")


def test_a_whole_traceback() -> None:
    text = explain(caught(fail), "stacktrace", "otherwise")
    assert text.startswith("Traceback (most recent call last):")
    assert "KeyError: 'inner'" in text and "in fail" in text
    assert text.endswith("ValueError: outer")


def test_a_recursion_without_end_is_short() -> None:
    def forever() -> None:
        forever()

    text = explain(caught(forever), "stacktrace", "")
    assert "RecursionError: maximum recursion depth exceeded" in text
    assert len(text) < 5000


def test_a_message_without_end_is_cut_in_the_middle() -> None:
    text = explain(ValueError("a" * 1_000_000 + "b"), "exception", "")
    assert len(text) < LIMIT + 100
    assert text.startswith("ValueError: aaa") and text.endswith("aab")
    assert "characters left out" in text


@pytest.mark.parametrize("detail", ["exception", "stacktrace"])
def test_secrets_are_masked(detail: Any) -> None:
    secrets = Secrets({"key": "hunter2-hunter2"})
    secrets.hold()
    try:
        text = explain(ValueError("login with hunter2-hunter2"), detail, "")
        assert "login with [secret]" in text and "hunter2" not in text
    finally:
        secrets.release()
