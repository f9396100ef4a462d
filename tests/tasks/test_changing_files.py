"""A file that is written in every way between reads is always read as it is now, by every source that has it open."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from ors.tasks import Csv, Jsonl, TaskFileError, offsets
from ors.tasks import csv as csv_module
from ors.tasks import jsonl as jsonl_module

TEXT = st.text(st.sampled_from("ab é{\n"), max_size=8)
TASKS = st.lists(st.fixed_dictionaries({"a": TEXT, "b": TEXT}), max_size=8)
PLACES = st.integers(0, 20)


class ChangingFile(RuleBasedStateMachine):
    """The file, what it should hold, and three sources: one stays, one is pickled again and again, one is made anew."""

    form: Any
    head = b""
    cut = b""
    """Before the last of these the file is cut off."""

    def __init__(self) -> None:
        super().__init__()
        self._temporary = tempfile.TemporaryDirectory()
        self._patch = pytest.MonkeyPatch()
        self.path = Path(self._temporary.name) / "tasks.data"
        self.rows: list[dict[str, str] | None] = []

    @initialize(kept=st.booleans(), block=st.integers(1, 40), tasks=TASKS)
    def begin(self, kept: bool, block: int, tasks: list[dict[str, str]]) -> None:
        self._patch.setattr(offsets, "_SMALL", -1 if kept else 1 << 20)
        self._patch.setattr(csv_module, "_BLOCK", block)
        self._patch.setattr(jsonl_module, "_BLOCK", block)
        self.replace(tasks)
        self.sources = [self.made() for _ in range(3)]

    def made(self) -> Any:
        return self.form({"train": self.path}, cache=self.path.parent / "cache")

    def encode(self, tasks: list[dict[str, str]]) -> bytes:
        raise NotImplementedError

    @rule(tasks=TASKS)
    def replace(self, tasks: list[dict[str, str]]) -> None:
        other = self.path.with_name("other")
        other.write_bytes(self.head + self.encode(tasks))
        os.replace(other, self.path)
        self.rows = list(tasks)

    @rule(tasks=TASKS)
    def write_in_place(self, tasks: list[dict[str, str]]) -> None:
        self.path.write_bytes(self.head + self.encode(tasks))
        self.rows = list(tasks)

    @rule(tasks=TASKS)
    def append(self, tasks: list[dict[str, str]]) -> None:
        if None not in self.rows:
            with self.path.open("ab") as file:
                file.write(self.encode(tasks))
            self.rows += tasks

    @rule()
    def reverse_with_the_same_size(self) -> None:
        if None not in self.rows:
            with self.path.open("r+b") as file:
                self.rows.reverse()
                file.write(self.head + self.encode(self.rows))  # type: ignore[arg-type]

    @rule()
    def cut_off_within_the_last_row(self) -> None:
        if self.rows and self.rows[-1] is not None:
            content = self.path.read_bytes()
            os.truncate(self.path, content.rindex(self.cut))
            self.rows[-1] = None

    @rule(which=st.integers(0, 2), start=PLACES, length=PLACES)
    def read(self, which: int, start: int, length: int) -> None:
        source = self.sources[which]
        wanted = self.rows[start : start + length]
        texts = source.texts("train", start, start + length)
        assert source.count("train") == len(self.rows)
        for index, (text, row) in enumerate(zip(texts, wanted, strict=True), start):
            if row is None:
                assert set(json.loads(text)) == {"error"}
                with pytest.raises(TaskFileError, match=f"tasks.data, row {index + 1}: "):
                    source.get("train", index)
            else:
                assert json.loads(text) == source.get("train", index) == row
        if start >= len(self.rows):
            with pytest.raises(IndexError):
                source.get("train", start)
        self.sources[1] = pickle.loads(pickle.dumps(self.sources[1]))
        self.sources[2] = self.made()

    def teardown(self) -> None:
        self._patch.undo()
        self._temporary.cleanup()


class ChangingJsonl(ChangingFile):
    form = Jsonl
    cut = b"}"

    def encode(self, tasks: list[dict[str, str]]) -> bytes:
        return b"".join(json.dumps(task, ensure_ascii=False).encode() + b"\n" for task in tasks)


class ChangingCsv(ChangingFile):
    form = Csv
    head = b'"a","b"\n'
    cut = b',"'

    def encode(self, tasks: list[dict[str, str]]) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text, quoting=csv.QUOTE_ALL).writerows((task["a"], task["b"]) for task in tasks)
        return text.getvalue().encode()


TestChangingJsonl = ChangingJsonl.TestCase
TestChangingCsv = ChangingCsv.TestCase
TestChangingJsonl.settings = TestChangingCsv.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
