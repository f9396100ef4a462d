"""Parquet and Arrow files: any row by its place, columns of every type, files that change, and files that are none."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import pickle
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ors.errors import TaskFileError
from ors.tasks import HuggingFace, Parquet, task_json
from ors.tasks.arrow import Rows
from ors.types import ImageBlock


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def numbered(count: int, first: int = 0) -> pa.Table:
    return pa.table({"n": range(first, first + count), "text": [f"row {n}" for n in range(first, first + count)]})


def row(n: int) -> dict[str, Any]:
    return {"n": n, "text": f"row {n}"}


def write(path: Path, table: pa.Table, **options: Any) -> Path:
    """A file of the kind that its name says."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, **options)
    else:
        make = pa.ipc.new_stream if path.suffix == ".arrows" else pa.ipc.new_file
        with make(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=options.get("row_group_size", 1000))
    return path


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "rows.arrows", "rows.feather"])
@pytest.mark.parametrize(("count", "group"), [(0, 10), (1, 1), (25, 10), (25_000, 20_000), (25_000, 7_000)])
def test_every_row_stands_in_its_place(tmp_path: Path, name: str, count: int, group: int) -> None:
    source = Parquet({"train": write(tmp_path / name, numbered(count), row_group_size=group)}, cache=tmp_path / "c")
    assert source.count("train") == count
    for index in {0, group - 1, group, count // 2, count - 1} & set(range(count)):
        assert source.get("train", index) == row(index)
    for index in (-1, count, count + 10):
        with pytest.raises(IndexError, match=f"has {count} tasks"):
            source.get("train", index)
    for start, stop in [(0, 5), (group - 2, group + 2), (count - 2, count + 5), (count, count + 1), (3, 3)]:
        start = max(start, 0)
        expected = [row(n) for n in range(start, min(stop, count))]
        assert source.range("train", start, stop) == expected
        assert [json.loads(text) for text in source.texts("train", start, stop)] == expected
    converted = list((tmp_path / "c").glob("*.arrow")) if (tmp_path / "c").exists() else []
    assert bool(converted) == (name == "rows.parquet" and min(count, group) > 10_000)


def test_what_was_converted_once_is_used_again(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.parquet", numbered(20_000))
    first = Parquet({"train": path}, cache=tmp_path / "c")
    assert first.get("train", 19_999) == row(19_999)
    (kept,) = (tmp_path / "c").glob("*.arrow")
    made = kept.stat()
    again = pickle.loads(pickle.dumps(first))
    assert again.get("train", 12_345) == row(12_345)
    assert kept.stat().st_mtime_ns == made.st_mtime_ns
    path.unlink()
    write(path, numbered(20_000, 5))
    assert first.get("train", 0) == again.get("train", 0) == row(5)
    assert len(list((tmp_path / "c").glob("*.arrow"))) == 1


def test_several_files_are_one_after_another(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / f"train-{number}.parquet", numbered(4, 4 * number))
    more = write(tmp_path / "more.arrow", numbered(2, 12))
    source = Parquet({"pattern": tmp_path / "train-*.parquet", "list": [tmp_path / "train-*.parquet", more]})
    assert source.count("pattern") == 12 and source.count("list") == 14
    assert [source.get("list", n) for n in range(14)] == [row(n) for n in range(14)]
    assert source.range("list", 3, 13) == [row(n) for n in range(3, 13)]
    with pytest.raises(TaskFileError, match="no file fits this pattern"):
        Parquet({"train": tmp_path / "test-*.parquet"}).count("train")


DAY = datetime.datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([True, None]), [True, None]),
        (pa.array([1, 2**63], pa.uint64()), [1, 2**63]),
        (pa.array([1.5], pa.float16()), [1.5]),
        (pa.array(["ß", None], pa.large_string()), ["ß", None]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pa.array([decimal.Decimal("1.10")], pa.decimal128(5, 2)), ["1.10"]),
        (pa.array([DAY], pa.timestamp("us", "UTC")), ["2024-02-29T12:30:00.123456+00:00"]),
        (pa.array([1_709_209_800_123_456_789], pa.timestamp("ns")), ["2024-02-29T12:30:00.123456"]),
        (pa.array([1_709_209_800], pa.timestamp("s")), ["2024-02-29T12:30:00"]),
        (pa.array([[1_000_000_001]], pa.list_(pa.timestamp("ns"))), [["1970-01-01T00:00:01"]]),
        (pa.array([DAY.date()]), ["2024-02-29"]),
        (pa.array([45_000_000_001], pa.time64("ns")), ["00:00:45"]),
        (pa.array([90_061_000_000_001], pa.duration("ns")), ["P1DT1H1M1S"]),
        (pa.array([b"\x00\xff", None]), ["AP8=", None]),
        (pa.array([b"ab"], pa.binary(2)), ["YWI="]),
        (pa.array([[1, 2], [], None]), [[1, 2], [], None]),
        (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), [[1, 2]]),
        (pa.array([{"a": 1, "b": [{"c": "x"}]}, None]), [{"a": 1, "b": [{"c": "x"}]}, None]),
        (pa.array([[("k", 1), ("l", None)]], pa.map_(pa.string(), pa.int32())), [{"k": 1, "l": None}]),
        (pa.array([[(3, b"x")]], pa.map_(pa.int8(), pa.binary())), [{"3": "eA=="}]),
        (pa.array([None, None]), [None, None]),
    ],
    ids=lambda value: str(value.type) if hasattr(value, "type") else "",
)
def test_columns_of_every_type(tmp_path: Path, array: Any, expected: list[Any]) -> None:
    table = pa.table({"x": array, "nested": pa.StructArray.from_arrays([array], ["x"])})
    path = tmp_path / "rows.arrow"
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    source = Parquet({"train": path})
    wanted = [{"x": value, "nested": {"x": value}} for value in expected]
    assert [json.loads(text) for text in source.texts("train", 0, 9)] == wanted
    assert [json.loads(task_json(source.get("train", index))) for index in range(len(wanted))] == wanted


def test_images_are_blocks(tmp_path: Path) -> None:
    picture = {"bytes": png(), "path": "a.png"}
    sound = {"bytes": b"OggS" + b"\0" * 20, "path": None}
    table = pa.table(
        {
            "image": [picture, {"bytes": None, "path": "b.png"}, None, sound],
            "several": [[picture, picture], [], None, [sound]],
            "raw": [png(), None, png(), png()],
            "other": [png()] * 4,
        }
    )
    source = Parquet({"train": write(tmp_path / "rows.parquet", table)}, images=["raw"])
    first, second, third, fourth = source.range("train", 0, 4)
    block = ImageBlock.from_image(png())
    assert ImageBlock.model_validate(first["image"]) == ImageBlock.model_validate(first["raw"]) == block
    assert [ImageBlock.model_validate(item) for item in first["several"]] == [block, block]
    assert second["image"] == {"bytes": None, "path": "b.png"} and second["raw"] is None and third["image"] is None
    # what no image is stays what it was, and so does what nobody calls one
    assert fourth["image"] == sound and fourth["several"] == [sound]
    assert first["other"] == png()


def test_one_bad_row_holds_its_place(tmp_path: Path) -> None:
    table = pa.table({"n": [0, 1, 2], "score": [0.5, float("nan"), 1.0], "picture": [png(), png(), b"no"]})
    source = Parquet({"train": write(tmp_path / "rows.parquet", table)}, images=["picture"])
    good, nan, blurred = (json.loads(text) for text in source.texts("train", 0, 3))
    assert good["n"] == 0
    assert "task 1 of split 'train'" in nan["error"] and "$.score" in nan["error"]
    assert "task 2 of split 'train'" in blurred["error"] and "$.picture is no image" in blurred["error"]
    assert "rows.parquet" in blurred["error"]
    with pytest.raises(TaskFileError, match=r"rows\.parquet.*3.*no image"):
        source.get("train", 2)
    twice = pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int32()))
    source = Parquet({"train": write(tmp_path / "map.parquet", pa.table({"m": twice}))})
    assert list(json.loads(source.texts("train", 0, 1)[0])) == ["error"]


def test_columns_can_be_chosen(tmp_path: Path) -> None:
    for name, count in [("small.parquet", 10), ("large.parquet", 20_000), ("rows.arrow", 10)]:
        path = write(tmp_path / name, numbered(count))
        source = Parquet({"train": path}, columns=["text"], cache=tmp_path / "c")
        assert source.get("train", 9) == {"text": "row 9"}
        with pytest.raises(TaskFileError, match="nope"):
            Parquet({"train": path}, columns=["nope"], cache=tmp_path / "c").count("train")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"PAR1", "rows"),
        (b"PAR1" + b"\0" * 100 + b"PAR1", "rows"),
        (b"ARROW1\0\0 and no more", "rows"),
        (b'{"n": 1}\n', "rows"),
    ],
)
def test_files_that_are_none(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(content)
    with pytest.raises(TaskFileError, match=words):
        Parquet({"train": path}).count("train")


@settings(deadline=None, max_examples=60)
@given(cut=st.integers(0, 2500), name=st.sampled_from(["rows.parquet", "rows.arrow", "rows.arrows"]))
def test_a_file_that_is_cut_off_is_never_read_wrongly(tmp_path_factory: Any, cut: int, name: str) -> None:
    path = write(tmp_path_factory.mktemp("cut") / name, numbered(40), row_group_size=10)
    content = path.read_bytes()
    path.write_bytes(content[:cut])
    source = Parquet({"train": path})
    try:
        count = source.count("train")
        rows = [source.get("train", index) for index in range(count)]
    except TaskFileError:
        assert cut < len(content)
    else:
        assert rows == [row(n) for n in range(count)]


def test_a_folder_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TaskFileError, match="is a folder; name its files"):
        Parquet({"train": tmp_path}).count("train")
    with pytest.raises(TaskFileError, match="No such file"):
        Parquet({"train": tmp_path / "none.parquet"}).count("train")
    with pytest.raises(ValueError, match="images names nope; the columns are n, text"):
        Rows(numbered(1).schema, ["nope"])


def test_a_file_that_is_replaced_is_read_anew(tmp_path: Path) -> None:
    for name in ("rows.parquet", "rows.arrow"):
        path = write(tmp_path / name, numbered(10))
        source = Parquet({"train": path})
        before = source.version("train")
        assert source.get("train", 0) == row(0)
        write(tmp_path / f"new-{name}", numbered(20, 100)).replace(path)
        assert source.get("train", 19) == row(119)
        assert source.count("train") == 20
        assert source.version("train") != before


def test_many_threads(tmp_path: Path) -> None:
    source = Parquet({"train": write(tmp_path / "rows.parquet", numbered(5000), row_group_size=100)})
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: source.get("train", n * 37 % 5000), range(2000)))
    assert found == [row(n * 37 % 5000) for n in range(2000)]


# Hugging Face


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import datasets

    folder = tmp_path_factory.mktemp("saved")
    columns = {"n": [0, 1, 2], "image": [{"bytes": png(), "path": None}] * 3, "score": [0.5, float("nan"), 1.0]}
    data = datasets.Dataset.from_dict(columns).cast_column("image", datasets.Image())
    data.save_to_disk(str(folder / "one"))
    datasets.DatasetDict({"train": data, "test": data.select([2, 0])}).save_to_disk(str(folder / "both"))
    data.to_parquet(str(folder / "rows.parquet"))
    return folder


def named(folder: Path, **options: Any) -> HuggingFace:
    where = {"path": "parquet", "data_files": str(folder / "rows.parquet"), "split": "train"}
    return HuggingFace({"train": where}, cache_dir=str(folder / "cache"), **options)


def test_data_sets_on_disk_and_by_name(saved: Path) -> None:
    import datasets

    loaded = datasets.load_from_disk(str(saved / "one"))
    sources = [HuggingFace({"train": where}) for where in (saved / "one", saved / "both", loaded)]
    for source in (*sources, named(saved)):
        assert source.count("train") == 3
        assert ImageBlock.model_validate(source.get("train", 2)["image"]).mimeType == "image/png"
        first, bad, last = (json.loads(text) for text in source.texts("train", 0, 9))
        assert (first["n"], last["n"], list(bad)) == (0, 2, ["error"])
        assert len(source.range("train", 2, 9)) == 1 and source.range("train", 3, 9) == []
        assert [task["n"] for task in source.range("train", 0, 2)] == [0, 1]
        with pytest.raises(IndexError):
            source.get("train", 3)
        with pytest.raises(IndexError):
            source.get("train", -1)
    shuffled = HuggingFace({"test": saved / "both"})
    assert [shuffled.get("test", index)["n"] for index in range(2)] == [2, 0]
    with pytest.raises(TaskFileError, match="has no split 'dev'; there are train, test"):
        HuggingFace({"dev": saved / "both"}).count("dev")
    assert pickle.loads(pickle.dumps(sources[0])).count("train") == 3


def test_a_data_set_that_is_streamed_has_no_places(saved: Path) -> None:
    source = named(saved, streaming=True)
    assert source.count("train") is None
    for ask in (lambda: source.get("train", 0), lambda: source.range("train", 0, 1)):
        with pytest.raises(NotImplementedError, match="a stream has no places: list its tasks"):
            ask()
    tasks = source.iterate("train")
    assert next(tasks)["n"] == 0
    assert next(source.iterate("train"))["n"] == 0, "each reads from the beginning"


def test_images_are_not_decoded(saved: Path) -> None:
    task = named(saved).get("train", 0)
    assert ImageBlock.model_validate(task["image"]) == ImageBlock.from_image(io.BytesIO(png()).getvalue())
