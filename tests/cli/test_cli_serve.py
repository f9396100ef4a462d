"""`ors serve`: real servers in processes of their own."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import urllib.error
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_commands import Command, addition, ask
from jsonschema import Draft7Validator

from ors.schema import json_schema

Start = Callable[..., Command]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An environment in a file of the folder that commands run in."""
    (tmp_path / "sums.py").write_text(addition())
    return tmp_path / "sums.py"


@pytest.mark.parametrize(
    ("target", "number"),
    [("sums.py", signal.SIGTERM), ("sums.py:Addition", signal.SIGINT), ("sums", signal.SIGTERM)],
)
def test_an_episode_of_a_file_and_a_module(start: Start, file: Path, target: str, number: int) -> None:
    command = start("serve", target, "--port", "0")
    url = command.address()
    assert url.startswith("http://127.0.0.1:")
    assert ask(f"{url}/list_environments") == ["addition"]
    session = {"X-Session-ID": "one"}
    assert ask(f"{url}/create", {"split": "train", "index": 0}, **session) == {"sid": "one"}
    assert ask(f"{url}/prompt", **session)[0]["text"] == "What is 1 + 2?"
    result = ask(f"{url}/call", {"name": "submit", "input": {"answer": 3}}, **session)
    assert '"reward":1.0' in result
    assert command.end(number) == 0
    assert "graded" not in "\n".join(command.lines)


def test_answers_of_a_real_server_are_right_to_the_printed_schema(start: Start, file: Path) -> None:
    url = start("serve", "sums.py", "--port", "0").address()
    session = {"X-Session-ID": "one"}
    ask(f"{url}/create", {"split": "train", "index": 0}, **session)
    answers = {
        "ListToolsOutput": [ask(f"{url}/addition/tools"), ask(f"{url}/addition/task_tools", **session)],
        "Split": ask(f"{url}/addition/splits"),
        "Task": ask(f"{url}/addition/tasks", {"split": "train"})["tasks"],
        "Blocks": [ask(f"{url}/addition/prompt", **session)],
        "RunToolOutput": [],
    }
    for call in (
        {"name": "absent", "input": {}},
        {"name": "submit", "input": {}},
        {"name": "submit", "input": {"answer": 3}},
    ):
        data = re.findall(
            r"^event: (?:chunk|end)\r?\ndata: (.*?)\r?$", ask(f"{url}/addition/call", call, **session), re.M
        )
        answers["RunToolOutput"].append(json.loads("".join(data)))
    assert [answer["ok"] for answer in answers["RunToolOutput"]] == [False, False, True]
    for name, values in answers.items():
        assert values
        for value in values:
            Draft7Validator({**json_schema(), "$ref": f"#/definitions/{name}"}).validate(value)


def test_several_targets(start: Start, file: Path, tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text(addition("Second") + addition("Third"))
    command = start("serve", "more.py", "sums.py", "--port", "0")
    assert ask(f"{command.address()}/list_environments") == ["second", "third", "addition"]


def test_settings_from_options_and_from_the_environment(start: Start, file: Path) -> None:
    command = start(
        *("serve", "sums.py", "--log-format", "json", "--max-body", "100"),
        ORS_PORT="0",
        ORS_API_KEYS="first,second",
        ORS_MAX_BODY="50",
        ORS_SESSION_IDLE="5",
    )
    url = command.wait_for(r"(http://127\.0\.0\.1:\d+)")[1]
    assert json.loads(command.lines[-1])["level"].lower() == "info"
    assert ask(f"{url}/health") == {"status": "ok"}
    with pytest.raises(urllib.error.HTTPError, match="401"):
        ask(f"{url}/list_environments")
    key = {"X-API-Key": "second"}
    assert ask(f"{url}/list_environments", **key) == ["addition"]
    body = {"split": "train", "index": 0, "secrets": {"a": "b" * 10}}
    assert ask(f"{url}/create", body, **key, **{"X-Session-ID": "one"}) == {"sid": "one"}
    with pytest.raises(urllib.error.HTTPError, match="413"):
        ask(f"{url}/create", {**body, "secrets": {"a": "b" * 100}}, **key, **{"X-Session-ID": "two"})
    assert command.end() == 0


def test_keys_from_a_file_open_a_public_address(start: Start, file: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("# ours\nsesame\n")
    command = start("serve", "sums.py", "--port", "0", "--host", "0.0.0.0", "--api-key-file", "keys")
    port = command.address().rpartition(":")[2]
    assert ask(f"http://127.0.0.1:{port}/list_environments", Authorization="Bearer sesame") == ["addition"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.invalid"])
def test_a_public_address_without_keys_is_refused(ors: Run, file: Path, host: str) -> None:
    done = ors("serve", "sums.py", "--port", "0", "--host", host)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: without API keys, whoever reaches {host} can list tasks with their answers")
    assert "--api-key" in done.stderr
    assert "--insecure" in done.stderr


def test_an_insecure_server_is_served_and_warned_of(start: Start, file: Path) -> None:
    command = start("serve", "sums.py", "--port", "0", "--insecure", ORS_HOST="0.0.0.0")
    command.wait_for("listening on 0.0.0.0 without API keys")
    port = command.address().rpartition(":")[2]
    assert ask(f"http://127.0.0.1:{port}/list_environments") == ["addition"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_addresses_of_this_machine_need_no_keys(start: Start, file: Path, host: str) -> None:
    assert ask(f"{start('serve', 'sums.py', '--port', '0', '--host', host).address()}/health") == {"status": "ok"}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["serve"], 2, "Missing argument 'TARGET'"),
        (["serve", "absent.py"], 2, "error: 'absent.py': there is no such file"),
        (["serve", "sums.py:Additoin"], 2, "error: sums.py has no 'Additoin'; do you mean 'Addition'?"),
        (["serve", "sums.py", "--max-sessions", "0"], 2, "error: max_sessions (ORS_MAX_SESSIONS): Input should be"),
        (["serve", "sums.py", "--max-sessions", "many"], 2, "Invalid value for '--max-sessions'"),
        (["serve", "sums.py", "--port", "65536"], 2, "Invalid value for '--port'"),
        (["serve", "sums.py", "--log-level", "loud"], 2, "Invalid value for '--log-level'"),
        (["serve", "sums.py", "--api-key", "b l a n k s "], 2, "error: api_keys (ORS_API_KEYS): an API key is"),
        (["serve", "sums.py", "--api-key-file", "absent"], 2, "error: api_key_file: absent cannot be read"),
        (["serve", "twice.py"], 2, "error: two environments are named 'Addition'"),
        (["serve", "toolless.py"], 2, "error: Environment 'Toolless' has no tools defined"),
        (["serve", "broken.py"], 2, "error: Broken.go: the parameter 'answer' has no type; annotate it"),
    ],
)
def test_what_cannot_be_served(ors: Run, tmp_path: Path, file: Path, words: list[str], code: int, said: str) -> None:
    head = "from ors import Environment, tool\n"
    prompt = "    def get_prompt(self): return 'x'\n"
    (tmp_path / "twice.py").write_text(f"{addition()}class Again(Addition):\n    @classmethod\n"
                                       f"    def name(cls): return 'Addition'\n")  # fmt: skip
    (tmp_path / "toolless.py").write_text(f"{head}class Toolless(Environment):\n{prompt}")
    (tmp_path / "broken.py").write_text(
        f"{head}class Broken(Environment):\n{prompt}    @tool\n    def go(self, answer): ...\n"
    )
    done = ors(*words)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_traceback_for_who_asks(ors: Run, tmp_path: Path) -> None:
    (tmp_path / "raises.py").write_text("\n\ndef inner():\n    return 1 / 0\ninner()\n")
    done = ors("serve", "raises.py", "--debug")
    assert done.returncode == 2
    assert "in inner\n    return 1 / 0" in done.stderr
    assert done.stderr.endswith(
        "'raises.py' cannot be imported: raises.py, line 4: ZeroDivisionError: division by zero\n"
    )


def test_a_port_that_is_taken(ors: Run, file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = ors("serve", "sums.py", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "address already in use" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_distribution_with_the_same_import_name_is_told_of(start: Start, file: Path, tmp_path: Path) -> None:
    installed = tmp_path / "site" / "ors_sdk-0.1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: ors-sdk\nVersion: 0.1.0\n")
    command = start("serve", "sums.py", "--port", "0", PYTHONPATH=str(tmp_path / "site"))
    command.wait_for("ors-sdk 0.1.0 is installed beside ors-kit.*`pip uninstall ors-sdk`")
    assert ask(f"{command.address()}/health") == {"status": "ok"}


def test_one_distribution_alone_is_not_told_of(start: Start, file: Path) -> None:
    command = start("serve", "sums.py", "--port", "0")
    command.address()
    assert not [line for line in command.lines if "ors-sdk" in line]


# Again and again


def answer_of(url: str) -> str:
    """What the environment says now."""
    session = {"X-Session-ID": "one"}
    ask(f"{url}/create", {"split": "train", "index": 0}, **session)
    result: str = ask(f"{url}/call", {"name": "submit", "input": {"answer": 3}}, **session)
    return result


def test_a_changed_file_is_served_again(start: Start, file: Path) -> None:
    pytest.importorskip("watchfiles")
    command = start("serve", "sums.py", "--port", "0", "--reload", "--log-level", "info")
    assert '"text":"Thanks."' in answer_of(command.address())
    file.write_text(addition(answer="Changed."))
    command.wait_for(r"sums\.py changed: starting again")
    assert '"text":"Changed."' in answer_of(command.address())
    file.write_text("def f(:")
    command.wait_for(r"error: 'sums\.py' cannot be imported: sums\.py, line 1: SyntaxError")
    command.wait_for("the server ended with exit code 2; it starts again when a file changes")
    file.write_text(addition(answer="Mended."))
    url = command.address()
    assert '"text":"Mended."' in answer_of(url)
    assert command.end(signal.SIGINT) == 0
    with pytest.raises(urllib.error.URLError):
        ask(f"{url}/health")


def test_a_folder_beside_is_watched_too_and_only_python_files_are(start: Start, file: Path, tmp_path: Path) -> None:
    pytest.importorskip("watchfiles")
    (tmp_path / "env").mkdir()
    file.rename(tmp_path / "env" / "sums.py")
    (tmp_path / "shared").mkdir()
    command = start("serve", "env/sums.py", "--port", "0", "--reload", "--reload-dir", "shared", "--api-key", "k")
    command.address()
    (tmp_path / "env" / "log.txt").write_text("written by the environment")
    (tmp_path / "shared" / "rewards.py").write_text("x = 1")
    # the first thing that is told of is the Python file, though the other changed before
    assert command.wait_for("changed: starting again").string == "ors serve: rewards.py changed: starting again"
    command.address()
    assert command.end() == 0


def test_watching_needs_a_package_that_is_named(ors: Run, file: Path, tmp_path: Path) -> None:
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "watchfiles.py").write_text("raise ImportError('not here')")
    done = ors("serve", "sums.py", "--reload", PYTHONPATH=str(tmp_path / "blocked"))
    assert done.returncode == 2
    assert "--reload needs the package watchfiles: pip install 'ors-kit[reload]'" in done.stderr
