"""`ors envs`, `ors splits`, `ors tasks`, `ors tools`, `ors call`: of targets and servers, for people and programs."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_commands import Command
from jsonschema import Draft202012Validator

Start = Callable[..., Command]
Run = Callable[..., subprocess.CompletedProcess[str]]
FILE = Path(__file__).with_name("cli_environments.py")


GAMES = str(FILE)
SHAPES = str(FILE.with_name("cli_task_environments.py"))


def value_of(done: subprocess.CompletedProcess[str]) -> Any:
    """The JSON that a command printed, and nothing else."""
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def test_environments(here: Run) -> None:
    assert value_of(here("envs", GAMES, "--json")) == [
        {
            "name": name,
            "splits": [
                {"name": "train", "type": "train", "tasks": 1200},
                {"name": "held out", "type": "test", "tasks": 5},
            ],
            "tools": tools,
            "terminal_tool": last,
        }
        for name, tools, last in (
            ("sums", ["explode", "fail", "hint", "reveal", "rude", "submit"], None),
            ("forms", ["paint"], "answer"),
        )
    ]
    shown = here("envs", GAMES)
    assert shown.returncode == 0
    assert re.search(r"^ sums +train \(1,200\), held out \(5\) +explode, fail, hint", shown.stdout, re.MULTILINE)


def test_splits(here: Run) -> None:
    assert value_of(here("splits", f"{GAMES}:Sums", "--json")) == [
        {"env": "sums", "split": "train", "type": "train", "tasks": 1200},
        {"env": "sums", "split": "held out", "type": "test", "tasks": 5},
    ]
    shown = here("splits", GAMES, "--env", "FORMS")
    assert shown.returncode == 0
    assert re.findall(r"^ (\w+) +(train|held out) +(\w+) +([\d,]+) *$", shown.stdout, re.MULTILINE) == [
        ("forms", "train", "train", "1,200"),
        ("forms", "held out", "test", "5"),
    ]


@pytest.mark.parametrize(
    ("words", "indices"),
    [
        ((), list(range(1200))),
        (("--range", "1:3"), [1, 2]),
        (("--range", "-2:"), [1198, 1199]),
        (("--range", ":1000", "--limit", "2"), [0, 1]),
        (("--range", "7"), [7]),
        (("--range", "-1"), [1199]),
        (("--range", "5:2"), []),
        (("--limit", "3"), [0, 1, 2]),
    ],
)
def test_tasks(here: Run, words: tuple[str, ...], indices: list[int]) -> None:
    found = value_of(here("tasks", f"{GAMES}:Sums", "--split", "train", "--json", *words))
    assert found == [{"index": index, "task": {"number": index, "secret": f"answer {index}"}} for index in indices]


def test_tasks_for_people_are_the_first_twenty(here: Run) -> None:
    done = here("tasks", f"{GAMES}:Sums", "--split", "train")
    assert done.returncode == 0
    shown = re.findall(r"^ +(\d+) +(\d+) +answer (\d+) *$", done.stdout, re.MULTILINE)
    assert shown == [(str(number),) * 3 for number in range(20)]
    assert done.stderr == "20 of 1,200 tasks; --range, --where and --limit choose others\n"


@pytest.mark.parametrize(
    ("words", "indices"),
    [
        (("--where", "number=7"), [7]),
        (("--where", "secret=answer 9"), [9]),
        (("-w", "number=7", "-w", "secret=answer 8"), []),
        (("--where", "number=7", "--range", "8:"), []),
        (("--where", "deep.list.1.name=x"), [3]),
        (("--where", "flag=true"), [2, 4]),
        (("--where", "flag=1"), [5]),
        (("--where", "none=null"), [1]),
        (("--where", "flag=true", "--limit", "1"), [2]),
    ],
)
def test_tasks_that_fit(here: Run, words: tuple[str, ...], indices: list[int]) -> None:
    target = f"{GAMES}:Sums" if "number" in str(words) or "secret" in str(words) else f"{SHAPES}:Mixed"
    found = value_of(here("tasks", target, "--split", "train", "--json", *words))
    assert [one["index"] for one in found] == indices


def test_a_sample_is_the_same_for_the_same_seed(here: Run) -> None:
    def sample(*words: str) -> list[int]:
        found = value_of(here("tasks", f"{GAMES}:Sums", "--split", "train", "--json", "--sample", "30", *words))
        return [one["index"] for one in found]

    first = sample("--seed", "1")
    assert first == sample("--seed", "1") == sorted(set(first)) and len(first) == 30
    assert first != sample("--seed", "2")
    assert len(set(sample()) | set(sample())) > 30
    assert set(sample("--seed", "1", "--range", "100:140")) <= set(range(100, 140))
    assert sample("--seed", "1", "--where", "number=7") == [7]
    shown = here("tasks", f"{GAMES}:Sums", "-s", "train", "--sample", "3")
    seed = re.search(r"--seed (\d+) picks them again", shown.stderr)
    assert here("tasks", f"{GAMES}:Sums", "-s", "train", "--sample", "3", "--seed", seed[1]).stdout == shown.stdout


def test_tasks_as_lines_and_as_a_file_are_read_again(here: Run, tmp_path: Path) -> None:
    from ors.tasks import Jsonl, Parquet

    done = here("tasks", f"{GAMES}:Sums", "--split", "train", "--format", "jsonl")
    (tmp_path / "rows.jsonl").write_text(done.stdout)
    source = Jsonl({"train": tmp_path / "rows.jsonl"})
    assert (source.count("train"), source.get("train", 1199)["number"]) == (1200, 1199)
    done = here("tasks", f"{GAMES}:Sums", "--split", "train", "-f", "parquet", "-o", str(tmp_path / "rows.parquet"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    rows = Parquet({"train": tmp_path / "rows.parquet"})
    assert rows.range("train", 0, 2000) == source.range("train", 0, 2000)
    mixed = here("tasks", f"{SHAPES}:Mixed", "--split", "train", "-f", "parquet", "-o", str(tmp_path / "mixed.parquet"))
    assert mixed.returncode == 2 and "these tasks make no table" in mixed.stderr
    assert "--format jsonl takes any" in mixed.stderr


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_columns_fit_the_terminal(here: Run, columns: int) -> None:
    done = here("tasks", f"{SHAPES}:Wide", "--split", "train", COLUMNS=str(columns))
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= columns
    assert len(lines) == 5, "a task takes a line"
    heading = lines[0].split()
    assert heading[:2] == ["index", "id"]
    if columns < 200:
        assert "…" in done.stdout
    hidden = re.search(r"not shown: (.*); --format jsonl has all", " ".join(done.stderr.split()))
    assert bool(hidden) == (columns < 80), done.stderr
    names = ["id", "question", *(f"field{number}" for number in range(6))]
    if hidden:
        assert names[-len(hidden[1].split(", ")) :] == hidden[1].split(", ")


def test_tools(here: Run) -> None:
    found = value_of(here("tools", GAMES, "--env", "forms", "--json"))
    assert [tool["name"] for tool in found] == ["paint"]
    Draft202012Validator.check_schema(found[0]["input_schema"])
    shown = here("tools", GAMES)
    assert shown.returncode == 0
    for line in (
        r"^sums$",
        r"^  submit  Submit the sum\.$",
        r"^ +answer +integer +The sum\.$",
        r"^  paint  Paint something\.$",
        r"^ +title +text +What it is called\.$",
        r"^ +\(count\) +integer; default 3$",
        r"^ +colour +one of red, green$",
        r"^ +\(ratio\) +number; optional$",
        r"^  answer  \(takes the agent's final message\)  Say the last word\.$",
    ):
        assert re.search(line, re.sub(r" +$", "", shown.stdout, flags=re.MULTILINE), re.MULTILINE), line


def test_tools_of_a_task(here: Run) -> None:
    found = value_of(here("tools", GAMES, "-e", "sums", "--split", "train", "--index", "3", "--json"))
    assert [tool["name"] for tool in found] == ["explode", "fail", "hint", "reveal", "rude", "submit"]


@pytest.mark.parametrize("format", ["openai", "openai-chat", "anthropic", "google", "google-json", "openrouter", "mcp"])
def test_tools_in_the_formats_of_providers(here: Run, format: str) -> None:
    from ors.client.formats import FORMATS

    assert format in FORMATS
    found = value_of(here("tools", GAMES, "--env", "forms", "--format", format))
    assert "paint" in json.dumps(found[0])
    assert "What it is called." in json.dumps(found[0])


def test_every_format_there_is_can_be_asked_for() -> None:
    import typing

    from ors.cli.tools import Format
    from ors.client.formats import FORMATS

    assert typing.get_args(Format) == FORMATS


def test_a_server_elsewhere_with_a_key(start: Start, here: Run) -> None:
    url = start("serve", GAMES, "--port", "0", "--api-key", "open sesame").address()
    address = url.removeprefix("http://")
    assert [one["name"] for one in value_of(here("envs", address, "--json", "--api-key", "open sesame"))] == [
        "sums",
        "forms",
    ]
    assert value_of(here("splits", url, "-e", "sums", "--json", ORS_API_KEY="open sesame"))[1]["split"] == "held out"
    refused = here("envs", url)
    assert refused.returncode == 1
    assert "give the server's key with --api-key or ORS_API_KEY" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("envs", GAMES.replace("environments", "environment")), "do you mean 'cli_environments.py'"),
        (("splits", GAMES, "--env", "sum"), "there is no environment 'sum'; do you mean 'sums'?"),
        (("tasks", GAMES, "--split", "train"), "several environments: sums, forms; name one with --env"),
        (("tasks", f"{GAMES}:Sums"), "sums has several splits: train, held out; name one with --split"),
        (("tasks", f"{GAMES}:Sums", "--split", "test"), "there is no split of sums 'test'; there is train, held out"),
        (("tasks", f"{GAMES}:Sums", "-s", "train", "--range", "a:b"), "--range is first:last"),
        (("tasks", f"{GAMES}:Sums", "-s", "train", "--where", "number"), "--where is key=value"),
        (("tasks", f"{GAMES}:Sums", "-s", "train", "--seed", "1"), "--seed is for --sample"),
        (("tasks", f"{GAMES}:Sums", "-s", "train", "-o", "x"), "--output is for --format parquet"),
        (("tasks", f"{GAMES}:Sums", "-s", "train", "--json", "-f", "jsonl"), "give one of them"),
        (("tools", GAMES, "--json"), "name one with --env"),
        (("tools", GAMES, "--split", "train"), "--split goes with --index"),
        (("call", f"{GAMES}:Sums", "submit", "answer"), "'answer' is neither NAME=VALUE nor a JSON object"),
        (("call", f"{GAMES}:Sums", "submit", "answer=five"), "answer: five is not an integer"),
        (("call", f"{GAMES}:Sums", "submit", "answer=5", "answer=6"), "'answer' is given twice"),
        (("call", f"{GAMES}:Sums", "submit", "{broken"), "the input is no JSON"),
        (("call", f"{GAMES}:Sums", "submit", "@absent.json"), "absent.json cannot be read: No such file"),
        (("call", f"{GAMES}:Sums", "hint", "--index", "99999"), "index 99999"),
        (("call", f"{GAMES}:Sums", "hint", "--task", "[1]"), "--task is a JSON object"),
        (("call", f"{GAMES}:Sums", "hint", "--task", "{}", "--split", "train"), "either --task or --split"),
        (("call", f"{GAMES}:Sums", "hint", "--secret", "ABSENT_ONE"), "no environment variable of that name"),
        (("play", f"{GAMES}:Sums", "--task", "{}", "--index", "1"), "either --task, or --split and --index"),
    ],
)
def test_what_cannot_be_done_as_it_was_asked(here: Run, words: tuple[str, ...], said: str) -> None:
    done = here(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_nobody_answers(here: Run) -> None:
    done = here("envs", "http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: the server does not answer: ")
    assert "Traceback" not in done.stderr
    assert "Traceback" in here("envs", "http://127.0.0.1:9", "--debug").stderr


def call(here: Run, *words: str, **env: str) -> tuple[int, str, str]:
    done = here("call", f"{GAMES}:Sums", *words, **env)
    return done.returncode, done.stdout, done.stderr


def test_a_call(here: Run) -> None:
    assert call(here, "submit", "answer=1") == (0, "Right.\n", "reward +1, the episode is finished\n")
    assert call(here, "submit", '{"answer": 1}', "--index", "4") == (
        0,
        "Wrong.\n",
        "reward +0, the episode is finished\n",
    )
    assert call(here, "submit", "answer=8", "--split", "HELD OUT", "--task", '{"number": 7}')[0] == 2
    assert call(here, "submit", "answer=8", "--task", '{"number": 7}')[1] == "Right.\n"


def test_a_call_for_programs(here: Run, tmp_path: Path) -> None:
    (tmp_path / "input.json").write_text('{"answer": 1}')
    for input in ("@input.json", "answer=1"):
        code, out, err = call(here, "submit", input, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out) == {
            "ok": True,
            "output": {
                "blocks": [{"text": "Right.", "detail": None, "type": "text"}],
                "metadata": None,
                "reward": 1.0,
                "finished": True,
            },
        }


@pytest.mark.parametrize(
    ("words", "code", "reason", "said"),
    [
        (("fail",), 3, "tool_error", "not today"),
        (("no_such_tool",), 3, "not_found", "no_such_tool"),
        (("submit", '{"answer": "five"}'), 3, "input_validation", "answer"),
        (("submit",), 3, "input_validation", "answer"),
        (("explode",), 1, "tool_failed", "out of order"),
    ],
)
def test_a_call_that_did_not_go_well(here: Run, words: tuple[str, ...], code: int, reason: str, said: str) -> None:
    got, out, err = call(here, *words)
    assert (got, out) == (code, "")
    assert said in err
    assert "Traceback" not in err
    got, out, err = call(here, *words, "--json")
    assert (got, err) == (code, "")
    answer = json.loads(out)
    assert (answer["ok"], answer["reason"]) == (False, reason)
    assert said in answer["error"]


def test_secrets_and_prints_of_tools_stay_out_of_the_output(here: Run) -> None:
    words = ("reveal", "--secret", "KEY=12345678", "--secret", "FROM_OUTSIDE")
    assert call(here, *words, FROM_OUTSIDE="abc") == (0, "FROM_OUTSIDE=3, KEY=8\n", "")


def test_a_terminal_is_not_obeyed(here: Run) -> None:
    assert call(here, "rude") == (0, "\\x1b[2J\\x1b]0;owned\\x07clean\n", "")


def test_the_session_is_ended(here: Run, tmp_path: Path) -> None:
    place = tmp_path / "teardowns"
    for tool in ("hint", "fail", "explode"):
        call(here, tool, TEARDOWNS=str(place))
    assert place.read_text() == "torn down\n" * 3


def test_images_are_described(here: Run) -> None:
    done = here("call", f"{GAMES}:Forms", "paint", "title=Dusk", "colour=red", 'tags=["a"]', "loud=yes")
    assert done.stdout == "'Dusk' red 3 None True None ['a']\n[image: image/png, 2×3, 76 bytes]\n"
