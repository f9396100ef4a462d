"""A file of results: whole lines, whatever tore it, and one writer at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ors.evaluation import Failure, Key, Result, ResultsFile, ResultsFileError


def result(number: int, **more: Any) -> Result:
    made = Result(Key("agent", "env", "test", number, 0), rewards=[0.5, 0.25], finished=True, seed=number)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def read(path: Path, *, drop_failed: bool = False) -> list[Result]:
    found: list[Result] = []
    with ResultsFile(path) as file:
        file.open(found.append, drop_failed=drop_failed)
    return found


def test_a_line_says_everything_and_comes_back_as_it_was() -> None:
    before = result(
        4,
        failure=Failure("tool_failed", "wörds\nof two lines"),
        stopped="max_calls",
        warning="late",
        refused=2,
        call_seconds=[0.125, 0.25],
        seconds=1.5,
        started=1000.5,
        session="s",
        notes={"tokens": [1, 2]},
    )
    line = before.line("sum")
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    said = json.loads(line)
    assert said["reward"] is None
    assert said["failure"] == {"kind": "tool_failed", "detail": "wörds\nof two lines"}
    assert Result.read(line) == before
    assert json.loads(result(1).line("last"))["reward"] == 0.25
    assert json.loads(result(1).line("sum"))["reward"] == 0.75


def test_a_task_that_is_given_in_full_has_a_key() -> None:
    before = Result(Key("agent", "env", None, "f00d", 3))
    assert json.loads(before.line("sum"))["task_key"] == "f00d"
    assert Result.read(before.line("sum")).key == before.key


def test_notes_that_are_no_json_lose_no_result() -> None:
    line = result(1, notes={"x": object(), "nan": float("nan")}).line("sum")
    assert "object object" in json.loads(line)["notes"]["text"]
    assert Result.read(line).rewards == [0.5, 0.25]


def test_a_file_cut_at_every_byte_loses_only_what_was_torn(tmp_path: Path) -> None:
    lines = [result(number, notes={"text": "zwölf\n" * number}).line("sum") for number in range(4)]
    whole = b"".join(lines)
    ends = [sum(map(len, lines[: count + 1])) for count in range(4)]
    path = tmp_path / "results.jsonl"
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        found = read(path)
        # a line that lacks its end only is whole
        kept = sum(end - 1 <= cut for end in ends)
        assert [one.key.task for one in found] == list(range(kept))
        assert path.read_bytes() == b"".join(lines[:kept])


def test_what_is_written_after_a_cut_stands_on_lines_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(result(0).line("sum") + result(1).line("sum")[:40])
    with ResultsFile(path) as file:
        file.open(lambda _: None)
        file.write(result(2).line("sum"))
    assert [one.key.task for one in read(path)] == [0, 2]


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    for text in (b"dear diary\nit rained\n", b'{"a": 1}\n', b"[]\n", b'{"env": "e"}\nhalf'):
        path.write_bytes(text)
        with pytest.raises(ResultsFileError, match="line 1 is no result"):
            read(path)
        assert path.read_bytes() == text


def test_a_file_that_only_holds_a_text_without_a_line_end_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"dear diary")
    with pytest.raises(ResultsFileError, match="is no result"):
        read(path)
    assert path.read_bytes() == b"dear diary"


def test_failures_can_be_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with ResultsFile(path) as file:
        file.open(lambda _: None)
        for number in range(4):
            file.write(result(number, failure=Failure("k", "d") if number % 2 else None).line("sum"))
    assert len(read(path)) == 4
    found: list[Result] = []
    with ResultsFile(path) as file:
        file.open(found.append, drop_failed=True)
        file.write(result(1).line("sum"))
        with pytest.raises(ResultsFileError, match="another `ors run`"):
            read(path)
    assert [one.key.task for one in found] == [0, 2]
    assert [one.key.task for one in read(path)] == [0, 2, 1]
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.jsonl"]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with ResultsFile(path) as file:
        file.open(lambda _: None)
        with pytest.raises(ResultsFileError, match="is being written by another `ors run`"):
            read(path)
        file.write(result(0).line("sum"))
    assert len(read(path)) == 1


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ResultsFileError, match="No such file or directory"):
        read(tmp_path / "absent" / "results.jsonl")
    with pytest.raises(ResultsFileError, match="Is a directory"):
        read(tmp_path)


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    file = ResultsFile(full)
    import os

    file._fd = os.open(full, os.O_WRONLY)
    with file, pytest.raises(ResultsFileError, match="No space left"):
        file.write(b"{}\n")
