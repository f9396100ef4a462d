"""Task files of any number of rows, about 210 bytes each, the same at every run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_CHUNK = 10_000
_WORDS = ("alpha", "beta", "gamma", "delta", "epsilon")
_CONTEXT = "lorem ipsum dolor sit amet " * 2


def write_jsonl(path: Path, count: int) -> None:
    """One task in each line: id, question, context, answer and level."""
    line = (
        '{"id": "task-%08d", "question": "What is %d + %d, written out in words for the reader %s?", '
        f'"context": "{_CONTEXT}", "answer": "%d", "level": %d}}\n'
    )
    with path.open("w") as file:
        for some in _chunks(count):
            file.write("".join([line % (n, n, n, _WORDS[n % 5], 2 * n, n % 5) for n in some]))


def write_parquet(path: Path, count: int) -> None:
    """The same tasks, in row groups of 10,000."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ("id", "question", "context", "answer", "level")
    schema = pa.schema([(name, pa.int64() if name == "level" else pa.string()) for name in names])
    with pq.ParquetWriter(path, schema) as writer:
        for some in _chunks(count):
            columns = (
                [f"task-{n:08}" for n in some],
                [f"What is {n} + {n}, written out in words for the reader {_WORDS[n % 5]}?" for n in some],
                [_CONTEXT] * len(some),
                [str(2 * n) for n in some],
                [n % 5 for n in some],
            )
            writer.write_table(pa.table(dict(zip(names, columns, strict=True)), schema=schema))


def _chunks(count: int) -> Iterator[range]:
    for start in range(0, count, _CHUNK):
        yield range(start, min(start + _CHUNK, count))
