"""JSON Lines: every row by its place, from files as they come."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ors.jsontext import JSONTextError, load
from ors.tasks import Jsonl, TaskFileError, offsets
from ors.tasks import jsonl as module


@pytest.fixture(params=["index in memory", "kept index"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the index is in a file, as that of a large file is."""
    if request.param == "kept index":
        monkeypatch.setattr(offsets, "_SMALL", -1)
    return request.param == "kept index"


class Written:
    """A file and a source of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "tasks.jsonl"

    def source(self, **options: Any) -> Jsonl:
        return Jsonl({"train": self.path}, cache=self.folder / "cache", **options)

    def write(self, content: bytes) -> Jsonl:
        self.path.write_bytes(content)
        return self.source()

    def kept(self) -> list[str]:
        folder = self.folder / "cache"
        return sorted(p.name for p in folder.iterdir() if not p.name.endswith(".lock")) if folder.exists() else []


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def rows(count: int) -> list[dict[str, Any]]:
    return [{"n": n, "text": "é" * (n % 7)} for n in range(count)]


def lines(tasks: list[Any]) -> bytes:
    return b"".join(json.dumps(task, ensure_ascii=False).encode() + b"\n" for task in tasks)


def test_every_row_by_its_place(written: Written, kept: bool) -> None:
    tasks = rows(100)
    source = written.write(lines(tasks))
    assert source.splits() == ["train"]
    assert source.count("train") == 100
    assert [source.get("train", index) for index in range(100)] == tasks
    assert source.range("train", 10, 20) == tasks[10:20]
    assert source.range("train", 90, 200) == tasks[90:]
    assert source.range("train", 100, 200) == source.range("train", 5, 5) == []
    assert [json.loads(text) for text in source.texts("train", 0, 1000)] == tasks
    for index in (-1, 100, 10**30):
        with pytest.raises(IndexError, match="outside split 'train', which has 100 tasks"):
            source.get("train", index)
    with pytest.raises(KeyError, match="no split 'test'; the splits are train"):
        source.count("test")
    assert bool(written.kept()) is kept


@pytest.mark.parametrize(
    ("content", "numbers"),
    [
        (b"", []),
        (b"\n\r\n  \n", []),
        (b'{"n":1}', [1]),
        (b'{"n":1}\n\n\n{"n":2}\n\n', [1, 2]),
        (b'\n{"n":1}\r\n \t\r\n{"n":2}\r\n', [1, 2]),
        (b'\xef\xbb\xbf{"n":1}\n{"n":2}', [1, 2]),
        (b"\xef\xbb\xbf", []),
        (b'\xef\xbb\xbf\n\n{"n":1}\n', [1]),
        (b'  {"n":1}  \n\t{"n":2}\t\n', [1, 2]),
        ('{"n":1,"t":"\u2028\x85\\n"}\n{"n":2}\n'.encode(), [1, 2]),
        (b'{"n":1}\n{"other":[1,{"n":null}]}\n{"n":"text"}\n', [1, None, "text"]),
    ],
)
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_lines_as_they_come(
    written: Written, kept: bool, content: bytes, numbers: list[Any], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    source = written.write(content)
    assert source.count("train") == len(numbers)
    assert [source.get("train", index).get("n") for index in range(len(numbers))] == numbers
    assert [json.loads(text).get("n") for text in source.texts("train", 0, 9)] == numbers


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (b'{"n": 1', "tasks.jsonl, row 2: EOF while parsing"),
        (b'{"n": NaN}', "row 2: .*NaN and Infinity are not JSON"),
        (b'{"n": 1, "n": 2}', "row 2: .*[Dd]uplicate"),
        (b'{"n": "\xff"}', "row 2: the row is not UTF-8: invalid start byte 0xff at byte 7"),
        (b'{"n": "\\ud800"}', "row 2: .*lone surrogate"),
        (b'{"n": 1e999}', "row 2: the number at \\$.n is too large"),
        (b'{"n": 1} {"n": 2}', "row 2: trailing characters"),
        (b"{'n': 1}", "row 2: key must be a string"),
        (b"[1]", "row 2: a task is an object, not an array"),
        (b"null", "row 2: a task is an object, not null"),
        (b'{"n":' + b"[" * 195 + b"]" * 195 + b"}", "row 2: the task is nested deeper than 190 levels"),
        (b'{"n":' + b"[" * 999 + b"]" * 999 + b"}", "row 2: nested deeper than 200 levels"),
        (b"\xef\xbb\xbf{}", "row 2: the row starts with a byte order mark"),
    ],
)
def test_a_bad_row_is_named_and_holds_its_place(written: Written, row: bytes, words: str) -> None:
    source = written.write(b'{"n":0}\n%s\n{"n":2}\n' % row)
    assert source.count("train") == 3
    assert source.get("train", 2) == {"n": 2}
    for read in (lambda: source.get("train", 1), lambda: source.range("train", 0, 3)):
        with pytest.raises(TaskFileError, match=words) as caught:
            read()
        assert (caught.value.row, caught.value.path) == (2, str(written.path))
    first, bad, last = source.texts("train", 0, 3)
    assert (first, last) == (b'{"n":0}', b'{"n":2}')
    assert json.loads(bad)["error"].startswith("task 1 of split 'train' cannot be JSON: ")


def test_a_file_that_is_cut_off_says_so_at_its_last_row(written: Written) -> None:
    source = written.write(lines(rows(3))[:-6])
    assert source.get("train", 1) == rows(3)[1]
    with pytest.raises(TaskFileError, match="row 3: .*; the file ends in this row and may be cut off"):
        source.get("train", 2)


def test_a_line_of_100_megabytes_is_a_row_as_any_other(written: Written) -> None:
    long = b'{"n":1,"text":"%s"}' % (b"x" * 100_000_000)
    source = written.write(b'{"n":0}\n' + long + b'\n{"n":2}\n')
    assert [source.get("train", index)["n"] for index in (0, 2)] == [0, 2]
    assert source.texts("train", 1, 3) == [long, b'{"n":2}']


def test_what_is_no_file_of_rows(written: Written) -> None:
    with pytest.raises(TaskFileError, match="tasks.jsonl: No such file"):
        written.source().count("train")
    with pytest.raises(TaskFileError, match="is UTF-16; write it as UTF-8"):
        written.write('{"n":1}\n'.encode("utf-16")).count("train")
    with pytest.raises(TypeError, match=r"split 'train' is \['a', 'b'\]; give the path of a file; `union` lays"):
        Jsonl({"train": ["a", "b"]})  # type: ignore[dict-item]
    written.path.unlink()
    os.mkfifo(written.path)
    with pytest.raises(TaskFileError, match="is no file that can be read by places"):
        written.source().count("train")
    written.path.unlink()
    written.path.mkdir()
    with pytest.raises(TaskFileError, match="is a folder; name a file for each split"):
        written.source().count("train")


ROWS = st.sampled_from([b'{"n":1}', b'{"n":2}', b"{}", b" ", b"[1]", b"{", b'{"n":"\xff"}', b"\xef\xbb\xbf", b"\x00"])


@settings(max_examples=80)
@given(
    content=st.lists(ROWS | st.binary(max_size=4), max_size=12).map(b"\n".join) | st.binary(max_size=20),
    block=st.integers(1, 30),
)
def test_any_bytes_are_rows_or_errors_in_their_places(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        source = Written(tmp_path_factory.mktemp("jsonl")).write(content)
        try:
            texts = source.texts("train", 0, 100)
        except TaskFileError:
            assert content.startswith((b"\xff\xfe", b"\xfe\xff"))
            return
    wanted = [line for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    assert source.count("train") == len(wanted) == len(texts)
    for index, (text, line) in enumerate(zip(texts, wanted, strict=True)):
        try:
            task = load(line)
        except JSONTextError:
            task = None
        if type(task) is dict:
            assert (load(text), source.get("train", index)) == (task, task)
        else:
            assert set(load(text)) == {"error"}
            with pytest.raises(TaskFileError, match=f"row {index + 1}: "):
                source.get("train", index)


# Changes of the file


def test_a_file_that_changed_is_read_as_it_is_now(written: Written, kept: bool) -> None:
    source = written.write(lines(rows(5)))
    assert source.count("train") == 5
    before = source.version("train")
    other = written.folder / "other"
    other.write_bytes(lines(rows(3)))
    os.replace(other, written.path)  # another inode
    assert (source.count("train"), source.get("train", 2)) == (3, rows(3)[2])
    with written.path.open("ab") as file:  # another size
        file.write(b'{"n":"new"}\n')
    assert source.get("train", 3) == {"n": "new"}
    written.path.write_bytes(lines([{"n": 7}] * 9))  # cut and written again
    assert source.range("train", 0, 20) == [{"n": 7}] * 9
    size = written.path.stat().st_size
    written.path.write_bytes(lines([{"n": 8}] * 9))  # only the times differ
    assert written.path.stat().st_size == size
    assert source.texts("train", 8, 9) == [b'{"n": 8}']
    assert source.version("train") != before
    written.path.unlink()
    with pytest.raises(TaskFileError, match="No such file"):
        source.get("train", 0)
    assert len(written.kept()) == kept  # those of earlier states are gone


def test_rows_are_never_of_another_state_while_the_file_is_rewritten(written: Written, kept: bool) -> None:
    """A writer replaces the file, by rename and in place; each row says of which state it is."""
    states = [lines([{"state": state, "n": n, "of": 50 + state} for n in range(50 + state)]) for state in range(8)]
    source = written.write(states[0])
    done = threading.Event()
    problems: list[Any] = []

    def read() -> None:
        index = 0
        while not done.is_set():
            index = (index + 7) % 50
            try:
                tasks = source.range("train", index, index + 10)
                places = [task["n"] for task in tasks]
                if places != list(range(index, index + len(tasks))) or len({task["state"] for task in tasks}) > 1:
                    problems.append(tasks)
            except TaskFileError as exc:
                if "written while it is read" not in str(exc) and "cut off" not in str(exc):
                    problems.append(exc)
            except Exception as exc:
                problems.append(exc)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number, state in enumerate(states * 5):
        other = written.folder / "other" if number % 2 else written.path
        other.write_bytes(state)
        os.replace(other, written.path)
        assert source.count("train") == 50 + number % 8
    done.set()
    for reader in readers:
        reader.join()
    assert problems == []
    assert source.count("train") == 57


# The index


def test_a_kept_index_is_used_again_and_a_damaged_one_is_made_again(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "_SMALL", -1)
    built: list[str] = []
    index = Jsonl._index
    monkeypatch.setattr(Jsonl, "_index", lambda self, file, add: (built.append(file.named), index(self, file, add)))
    tasks = rows(50)
    assert written.write(lines(tasks)).count("train") == 50
    for _ in range(2):
        assert written.source().get("train", 49) == tasks[49]
    assert len(built) == 1
    (kept,) = (written.folder / "cache").glob("*-index")
    whole = kept.read_bytes()
    for number, damaged in enumerate((b"", whole[:-8], whole[:10], b"x" + whole[1:], whole + b"x"), 2):
        kept.write_bytes(damaged)
        assert written.source().range("train", 0, 50) == tasks
        assert len(built) == number


FULL = """
import resource, sys
from pathlib import Path
from ors.tasks import Jsonl, TaskFileError, offsets
offsets._SMALL = -1
folder = Path(sys.argv[1])
source = Jsonl({"train": folder / "tasks.jsonl"}, cache=folder / "cache")
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))  # no file may be larger
try:
    source.count("train")
except TaskFileError as exc:
    print(exc)
print(*(path.name for path in (folder / "cache").glob("*-index*")))
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
print(source.count("train"))
"""


def test_a_full_disk_is_an_error_that_names_the_folder_of_the_cache(written: Written) -> None:
    written.path.write_bytes(lines(rows(20_000)))
    done = subprocess.run([sys.executable, "-c", FULL, str(written.folder)], capture_output=True, text=True, check=True)
    error, kept, count = done.stdout.splitlines()
    assert error.endswith(f"tasks.jsonl: File too large ({written.folder / 'cache'})")
    assert kept.endswith(".lock")
    assert len(kept.split()) == 1
    assert count == "20000"


MEASURE = """
import random, sys
from pathlib import Path
from ors.tasks import Jsonl
def anonymous():
    return int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1])
folder = Path(sys.argv[1])
source = Jsonl({"train": folder / "tasks.jsonl"}, cache=folder / "cache")
(folder / "small.jsonl").write_text("{}")
assert Jsonl({"train": folder / "small.jsonl"}).texts("train", 0, 1) == [b"{}"]
before = anonymous()
count = source.count("train")
for _ in range(2000):
    index = random.randrange(count)
    assert source.get("train", index)["n"] == index
for start in range(0, count, 1000):
    source.texts("train", start, start + 1000)
print(count, anonymous() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_does_not_grow_with_the_file(written: Written) -> None:
    with written.path.open("wb") as file:
        for start in range(0, 400_000, 10_000):
            file.write(b"".join(b'{"n": %d, "text": "%s"}\n' % (n, b"x" * 120) for n in range(start, start + 10_000)))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(written.folder)], capture_output=True, text=True, check=True
    )
    count, grown_kib = map(int, done.stdout.split())
    assert count == 400_000
    assert grown_kib < 10 << 10  # the file has 56 MiB, its index 3


def test_without_a_folder_to_write_to_the_index_is_temporary(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "_SMALL", -1)
    (written.folder / "cache").write_text("a file stands where the folder should be")
    assert written.write(lines(rows(9))).range("train", 0, 9) == rows(9)


def test_the_cache_is_in_the_users_folder(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "_SMALL", -1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(written.folder / "xdg"))
    written.write(lines(rows(9)))
    assert Jsonl({"train": written.path}).count("train") == 9
    assert [path.suffix for path in (written.folder / "xdg" / "ors" / "tasks").glob("*-index")] == [".jsonl-index"]


READ = """
import sys
from pathlib import Path
from ors.tasks import Jsonl, offsets
offsets._SMALL = -1
sys.stdin.readline()
folder = Path(sys.argv[1])
source = Jsonl({"train": folder / "tasks.jsonl"}, cache=folder / "cache")
index, made = Jsonl._index, []
Jsonl._index = lambda *given: (made.append(1), index(*given))
print(source.count("train"), source.get("train", 19_999)["n"], len(made))
"""


def test_many_processes_make_one_index(written: Written) -> None:
    written.path.write_bytes(lines(rows(20_000)))
    command = [sys.executable, "-c", READ, str(written.folder)]
    many = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for process in many:
        process.stdin.write("\n")
        process.stdin.flush()
    assert sorted(process.communicate(timeout=60)[0] for process in many) == ["20000 19999 0\n"] * 3 + [
        "20000 19999 1\n"
    ]
    assert len(written.kept()) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.timeout(60)
def test_after_a_fork_and_pickled(written: Written, kept: bool) -> None:
    tasks = rows(1000)
    source = written.write(lines(tasks))
    assert source.get("train", 999) == tasks[999]
    copy = pickle.loads(pickle.dumps(source))
    assert copy.range("train", 0, 1000) == tasks
    reader, writer = os.pipe()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with source._lock:
            held.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    if (child := os.fork()) == 0:
        try:
            same = source.range("train", 0, 1000) == tasks
            source._opened.clear()
            same = same and source.range("train", 0, 1000) == tasks
            os.write(writer, b"same" if same else b"other")
        finally:
            os._exit(0)
    os.close(writer)
    try:
        assert os.read(reader, 10) == b"same"
    finally:
        done.set()
        holder.join()
        os.waitpid(child, 0)
        os.close(reader)
    assert source.range("train", 0, 1000) == tasks


def test_many_threads(written: Written, kept: bool) -> None:
    tasks = rows(500)
    source = written.write(lines(tasks))
    found: list[Any] = []

    def read(first: int) -> None:
        found.append([source.get("train", index) == tasks[index] for index in range(first, 500, 8)])

    threads = [threading.Thread(target=read, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(map(all, found))


# Compressed files


def packed(content: bytes, kind: str) -> bytes:
    if kind == "gz":
        return gzip.compress(content)
    try:
        zstd = importlib.import_module("compression.zstd")
    except ImportError:
        zstd = importlib.import_module("backports.zstd")
    compressed: bytes = zstd.compress(content, options={zstd.CompressionParameter.checksum_flag: 1})
    return compressed


@pytest.fixture(params=["gz", "zst"])
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    return request.param  # type: ignore[return-value]


def test_a_compressed_file_is_unpacked_once(written: Written, kind: str) -> None:
    path = written.folder / f"tasks.jsonl.{kind}"
    tasks = rows(1000)
    # two members, one after another: what appending makes
    path.write_bytes(packed(lines(tasks[:400]), kind) + packed(lines(tasks[400:]), kind))
    for _ in range(2):
        source = Jsonl({"train": path}, cache=written.folder / "cache")
        assert source.count("train") == 1000
        assert source.range("train", 0, 1000) == tasks
        (kept,) = written.kept()
        assert kept.endswith(f".{kind}-unpacked")
    path.write_bytes(packed(lines(tasks[:10]), kind))
    assert source.range("train", 0, 1000) == tasks[:10]
    assert len(written.kept()) == 1
    assert written.kept() != [kept]


def test_a_compressed_file_that_is_cut_off_or_damaged(written: Written, kind: str) -> None:
    path = written.folder / f"tasks.jsonl.{kind}"
    whole = packed(lines(rows(2000)), kind)
    source = Jsonl({"train": path}, cache=written.folder / "cache")
    for content, words in (
        (whole[:-20], "cut off"),
        (b"not compressed", "damaged"),
        (whole[:50] + b"xxxx" * 5 + whole[70:], "damaged|cut off"),
    ):
        path.write_bytes(content)
        with pytest.raises(TaskFileError, match=rf"tasks.jsonl.{kind}: the compressed file is ({words})"):
            source.count("train")
        assert written.kept() == []
    path.write_bytes(whole)
    assert source.count("train") == 2000


def test_without_zstd_the_error_names_the_extra(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written.folder / "tasks.jsonl.zst"
    path.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    with pytest.raises(ImportError, match=r"pip install 'ors-kit\[zstd\]'"):
        Jsonl({"train": path}).count("train")


def test_paths_start_from_the_file_that_makes_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.jsonl").write_bytes(lines(rows(3)))
    (tmp_path / "defined_here.py").write_text(
        "from ors.tasks import Jsonl\n"
        "class Mine(Jsonl):\n"
        "    def __init__(self):\n"
        "        super().__init__({'train': 'data/train.jsonl', 'test': 'missing.jsonl'}, id='n')\n"
        "source = Mine()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    source = importlib.import_module("defined_here").source
    monkeypatch.delitem(sys.modules, "defined_here")
    assert source.count("train") == 3
    assert source.key("train", 2) == "2"
    with pytest.raises(TaskFileError, match=r"^missing.jsonl: No such file"):
        source.count("test")
