"""Settings as options: none is missing, what is given arrives, and it can be said again."""

from __future__ import annotations

import typing
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from ors.cli.options import option_of, with_settings, words_for
from ors.settings import Settings

VALUES: dict[type, tuple[str, Any]] = {
    int: ("3", 3),
    float: ("62.5", 62.5),
    str: ("text", "text"),
    Path: ("keys.txt", Path("keys.txt")),
}


def run(*words: str) -> dict[str, Any]:
    """The settings that a command gets from the words of a command line."""
    got: list[dict[str, Any]] = []
    app = typer.Typer()

    @app.command()
    @with_settings
    def command(
        targets: Annotated[list[str], typer.Argument()],
        settings: dict[str, Any],
        loud: Annotated[bool, typer.Option("--loud")] = False,
    ) -> None:
        """Do something."""
        got.append({"targets": targets, "loud": loud, **settings})

    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return got[0]


def given_for(name: str) -> tuple[list[str], Any]:
    """Words that give a setting a value of its kind, and the value."""
    annotation = str(Settings.model_fields[name].annotation)
    option = option_of(name)
    if name in ("api_keys", "allowed_origins"):
        return [option, "one", option, "two"], ["one", "two"]
    if annotation == "<class 'bool'>":
        return [f"--no-{option.removeprefix('--')}"], False
    if "Literal" in annotation:
        choice = typing.get_args(Settings.model_fields[name].annotation)[-1]
        return [option, choice], choice
    kind = next(kind for kind in VALUES if kind.__name__ in annotation)
    word, value = VALUES[kind]
    return [option, word], value


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_an_option_that_can_be_said_again(name: str) -> None:
    words, value = given_for(name)
    got = run("t", *words)
    assert got == {"targets": ["t"], "loud": False, name: value}
    assert type(got[name]) is type(value)
    assert run(*words_for({name: value}), "--", "t") == got
    loaded = getattr(Settings.load(**{name: value}), name)
    assert list(loaded) == value if isinstance(value, list) else loaded == value


def test_what_is_not_given_is_left_to_the_environment_and_the_defaults() -> None:
    assert run("--loud", "a", "b") == {"targets": ["a", "b"], "loud": True}


@pytest.mark.parametrize("flag", [True, False])
def test_flags(flag: bool) -> None:
    assert run(*words_for({"capture_output": flag}), "--", "t")["capture_output"] is flag


def test_targets_that_look_like_options_can_be_said_again() -> None:
    words = words_for({"api_keys": ["--insecure", "a b"], "max_sessions": 5})
    assert run(*words, "--", "--odd.py") == {
        "targets": ["--odd.py"],
        "loud": False,
        "api_keys": ["--insecure", "a b"],
        "max_sessions": 5,
    }


def test_the_help_tells_of_every_setting() -> None:
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    @with_settings
    def command(settings: dict[str, Any]) -> None:
        """Do something."""

    text = " ".join(CliRunner().invoke(app, ["--help"], env={"COLUMNS": "300"}).output.split())
    for name, field in Settings.model_fields.items():
        assert f"{option_of(name)} " in text
        assert field.description is not None
        assert f"{field.description} (ORS_{name.upper()}" in text
