"""`ors schema`, and what holds for every command: versions, exit codes, errors without tracebacks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import typer
from cli_commands import clean_environment

from ors import __version__
from ors.cli.errors import CommandError, reporting
from ors.errors import AuthoringError, SettingsError
from ors.schema import json_schema, typescript

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("words", [(), ("--format", "json-schema"), ("-f", "json-schema")])
def test_json_schema(ors: Run, words: tuple[str, ...]) -> None:
    done = ors("schema", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json_schema()
    assert "\n  " in done.stdout


def test_typescript(ors: Run) -> None:
    done = ors("schema", "--format", "typescript")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == typescript()


def test_openapi(ors: Run) -> None:
    done = ors("schema", "--format", "openapi")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["openapi"].startswith("3.1")
    assert {"/health", "/create", "/{env_name}/call", "/call"} <= set(document["paths"])
    assert {"CreateSession", "ToolCall", "ToolSpec", "TextBlock"} <= set(document["components"]["schemas"])


def test_a_format_that_there_is_not(ors: Run) -> None:
    done = ors("schema", "--format", "xml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'json-schema', 'typescript', 'openapi'" in done.stderr


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    writer = subprocess.Popen(
        [sys.executable, "-m", "ors.cli", "schema", "--format", "openapi"],
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.close()
    complaints = writer.stderr.read()
    writer.stderr.close()
    assert writer.wait(60) == 1
    assert complaints == b""


def test_version_and_help(ors: Run) -> None:
    assert ors("--version").stdout == f"ors-kit {__version__}\n"
    for words in (("--help",), ("-h",), ("serve", "--help"), ("schema", "-h")):
        done = ors(*words)
        assert done.returncode == 0
        assert done.stdout.startswith("Usage: ors")
    nothing = ors()
    assert nothing.returncode == 2
    assert "serve" in nothing.stdout + nothing.stderr
    assert ors("absent").returncode == 2


def test_the_help_loads_no_web_framework() -> None:
    program = "import sys\nfrom ors.cli import app\nprint(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    for heavy in ("fastapi", "starlette", "uvicorn", "ors.server"):
        assert f"'{heavy}'" not in done.stdout


def raised(error: BaseException, *, debug: bool = False) -> int:
    with pytest.raises(typer.Exit) as caught, reporting(debug=debug):
        raise error
    return caught.value.exit_code


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (CommandError("no such thing; do this"), 2, "error: no such thing; do this\n"),
        (AuthoringError("rename it"), 2, "error: rename it\n"),
        (SettingsError("too small"), 2, "error: too small\n"),
        (
            KeyError("inside"),
            1,
            "error: KeyError: 'inside'\nRun it again with --debug to see where this comes from.\n",
        ),
    ],
)
def test_errors_are_messages(error: Exception, code: int, said: str, capsys: Any) -> None:
    assert raised(error) == code
    assert capsys.readouterr().err == said
    assert raised(error, debug=True) == code
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback (most recent call last)")
    assert shown.endswith(f"{said.partition(chr(10))[0]}\n")


def test_the_traceback_is_of_what_went_wrong_in_the_first_place(capsys: Any) -> None:
    error = CommandError("in words")
    error.__cause__ = ZeroDivisionError("the cause")
    assert raised(error, debug=True) == 2
    assert "ZeroDivisionError: the cause\nerror: in words" in capsys.readouterr().err


@pytest.mark.parametrize("passing", [typer.Exit(7), BrokenPipeError(), KeyboardInterrupt(), SystemExit(3)])
def test_what_is_not_reported(passing: BaseException, capsys: Any) -> None:
    with pytest.raises(type(passing)), reporting():
        raise passing
    assert capsys.readouterr().err == ""
