"""CSV: records by their place, as Python's own reader tells them apart."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ors.tasks import Csv, TaskFileError, offsets
from ors.tasks import csv as module


@pytest.fixture(params=["index in memory", "kept index"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "kept index":
        monkeypatch.setattr(offsets, "_SMALL", -1)


def written(folder: Path, content: bytes, name: str = "tasks.csv", **options: Any) -> Csv:
    (folder / name).write_bytes(content)
    return Csv({"train": folder / name}, cache=folder / "cache", **options)


def everything(source: Csv) -> list[dict[str, Any]]:
    count = source.count("train")
    tasks = [source.get("train", index) for index in range(count)]
    assert source.range("train", 0, count + 5) == tasks
    assert [json.loads(text) for text in source.texts("train", 0, count)] == tasks
    with pytest.raises(IndexError):
        source.get("train", count)
    return tasks


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("block", [1, 7, 1 << 20])
@pytest.mark.parametrize(
    ("content", "cells"),
    [
        (b"a,b\n1,2\n", [["1", "2"]]),
        (b"a,b\r\n1,2\r\n\r\n3,4", [["1", "2"], ["3", "4"]]),
        (b"\xef\xbb\xbfa,b\n1,2\n", [["1", "2"]]),
        (b"a,b\n\n\n1,2\n\n3,4\n\n", [["1", "2"], ["3", "4"]]),
        (b'"a","b"\n"x\ny","say ""hi"""\n1,2\n', [["x\ny", 'say "hi"'], ["1", "2"]]),
        (b'a,b\n"\r\n",\n"","\n\n"\n1,2', [["\r\n", ""], ["", "\n\n"], ["1", "2"]]),
        (b'a,b\n5" disk,2\n3," 4"\n', [['5" disk', "2"], ["3", " 4"]]),
        ('a,b\né,"日\n本"\n\u2028,\x85\n'.encode(), [["é", "日\n本"], ["\u2028", "\x85"]]),
        (b"a,b\n007,true\n, 1 \n", [["007", "true"], ["", " 1 "]]),
        (b"a,b\n", []),
        (b'a,b\r1,2\r"3\r",4\r', [["1", "2"], ["3\r", "4"]]),
        (b"a,b\n1,2\r3,4\r\r\n5,6", [["1", "2"], ["3", "4"], ["5", "6"]]),
        (b"\n\na,b", []),
        (b"a,b\n  \n", None),
    ],
)
def test_records(
    tmp_path: Path, content: bytes, cells: list[list[str]] | None, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    source = written(tmp_path, content)
    if cells is None:
        error = f"{tmp_path / 'tasks.csv'}, row 1: has 1 cells where the header has 2"
        found = json.loads(source.texts("train", 0, 1)[0])
        assert found == {"error": f"task 0 of split 'train' cannot be JSON: {error}"}
    else:
        assert everything(source) == [dict(zip("ab", row)) for row in cells]


TEXT = st.text(st.sampled_from("ab,;\t\"\n\r'é日 0{"), max_size=6)


@settings(max_examples=60)
@given(
    table=st.lists(st.tuples(TEXT, TEXT), max_size=12),
    ends=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    delimiter=st.sampled_from([",", ";", "\t"]),
    block=st.integers(1, 40),
    bom=st.booleans(),
)
def test_what_pythons_writer_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    table: list[tuple[str, str]],
    ends: str,
    quoting: Any,
    delimiter: str,
    block: int,
    bom: bool,
) -> None:
    if quoting == csv.QUOTE_MINIMAL and ends == "\n":  # Python's writer does not quote the other end of lines
        table = [tuple(cell.replace("\r", "") for cell in row) for row in table]  # type: ignore[misc]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=ends, quoting=quoting, delimiter=delimiter)
    writer.writerows([("one", "two"), *table])
    content = b"\xef\xbb\xbf" * bom + text.getvalue().encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        source = written(tmp_path_factory.mktemp("csv"), content, delimiter=delimiter)
        assert everything(source) == [{"one": one, "two": two} for one, two in table]


@settings(max_examples=100)
@given(
    content=st.text(st.sampled_from('a,"\n\r'), max_size=30).map(str.encode) | st.binary(max_size=30),
    block=st.integers(1, 40),
)
def test_any_bytes_are_read_as_python_reads_them_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, block: int
) -> None:
    source = written(tmp_path_factory.mktemp("csv"), content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        try:
            texts = source.texts("train", 0, 100)
        except TaskFileError:
            return
    text = content.decode("utf-8-sig", "surrogateescape")
    header, *rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    assert len(texts) == len(rows)
    for found, row in zip(map(json.loads, texts), rows):
        if set(found) != {"error"} or "error" in header:
            assert found == dict(zip(header, row, strict=True))
        else:
            assert len(row) != len(header) or any("\udc80" <= char <= "\udcff" for cell in row for char in cell)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty; the first line names the columns"),
        (b"\n\n", "is empty"),
        (b"a,b,a\n1,2,3\n", "the header has 'a' twice"),
        (b"a,\xff\n1,2\n", "the header is not UTF-8"),
        (b'a,b\n1,2\n"3,4\n5,6\n', "row 2: unexpected end of data; rows from here on cannot be told apart"),
        (b'a,b\n1,2\n"3"x,4\n5,6\n', "row 2: ',' expected after '\"'; rows from here on cannot be told apart"),
        ("a,b\n1,2\n".encode("utf-16"), "is UTF-16"),
    ],
)
def test_a_file_whose_rows_cannot_be_told_apart(tmp_path: Path, content: bytes, words: str) -> None:
    source = written(tmp_path, content)
    for read in (lambda: source.count("train"), lambda: source.texts("train", 0, 5)):
        with pytest.raises(TaskFileError, match=words):
            read()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (b"1", "row 2: has 1 cells where the header has 2"),
        (b"1,2,3", "row 2: has 3 cells where the header has 2"),
        (b"1,\xff", "row 2: is not UTF-8: invalid start byte 0xff at byte 2 of the row"),
        (b"x,2", "row 2: column 'a' holds 'x': invalid literal for int"),
    ],
)
def test_a_bad_row_is_named_and_holds_its_place(tmp_path: Path, row: bytes, words: str) -> None:
    source = written(tmp_path, b"a,b\n1,2\n%s\n5,6\n" % row, columns={"a": int})
    assert source.get("train", 2) == {"a": 5, "b": "6"}
    with pytest.raises(TaskFileError, match=words):
        source.get("train", 1)
    assert [json.loads(text).get("a") for text in source.texts("train", 0, 3)] == [1, None, 5]


def test_columns_have_the_types_they_are_given(tmp_path: Path) -> None:
    content = b'i,f,t,j,s,c\n-7,1e3,Yes,"{""a"": [1]}",007,a b\n,,,,,\n'
    kinds = {"i": int, "f": float, "t": bool, "j": "json", "s": str, "c": str.split}
    source = written(tmp_path, content, columns=kinds)
    assert everything(source) == [
        {"i": -7, "f": 1000.0, "t": True, "j": {"a": [1]}, "s": "007", "c": ["a", "b"]},
        {"i": None, "f": None, "t": None, "j": None, "s": "", "c": None},
    ]
    with pytest.raises(TaskFileError, match="the header has no 'x', which the source gives a type; it has i, f, t"):
        written(tmp_path, content, columns={"x": int}).count("train")
    with pytest.raises(TypeError, match=r"columns\['i'\] is 'integer'"):
        written(tmp_path, content, columns={"i": "integer"})
    with pytest.raises(ValueError, match="delimiter='::'"):
        written(tmp_path, content, delimiter="::")


def test_tabs_and_compressed(tmp_path: Path) -> None:
    assert everything(written(tmp_path, b"a\tb\n1\t2,3\n", "tasks.tsv")) == [{"a": "1", "b": "2,3"}]
    packed = gzip.compress(b"a\tb\n1\t2,3\n")
    assert everything(written(tmp_path, packed, "more.tsv.gz")) == [{"a": "1", "b": "2,3"}]


def test_a_cell_longer_than_pythons_limit(tmp_path: Path) -> None:
    source = written(tmp_path, b'a,b\n1,"%s"\n2,3\n' % (b"x\n" * 500_000))
    assert len(source.get("train", 0)["b"]) == 1_000_000
    assert source.get("train", 1) == {"a": "2", "b": "3"}
