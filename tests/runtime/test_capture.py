"""What author code prints stays with its call, bounded, however much it is."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import io
import logging
import sys
import threading
from collections.abc import Iterator

import psutil
import pytest

from ors.runtime import capture

from .harness import bench

pytestmark = pytest.mark.anyio


@contextlib.contextmanager
def captured() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """The standard streams, captured. No fixture: pytest sets its own again between setup and call."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        capture.install()
        try:
            yield out, err
        finally:
            capture.uninstall()
        assert sys.stdout is out
        assert sys.stderr is err


async def test_a_gigabyte_is_counted_and_not_kept() -> None:
    megabyte = "x" * (1 << 20)

    def work() -> None:
        for _ in range(512):
            print(megabyte, end="")
            sys.stderr.write(megabyte)

    with captured() as streams:
        async with bench(capture=True) as b:
            memory = psutil.Process().memory_info().rss
            started = b.start(work)
            output = started.running.output
            await started.outcome
            assert output is not None
            assert output.size == 1 << 30
            assert len(str(output)) < capture.LIMIT + 100
            assert str(output).endswith(f"… ({(1 << 30) - capture.LIMIT} more characters)")
            assert psutil.Process().memory_info().rss - memory < 64 << 20
        assert streams[0].getvalue() == streams[1].getvalue() == ""


async def test_each_call_keeps_its_own(caplog: pytest.LogCaptureFixture) -> None:
    def thread_work(name: str) -> None:
        print("thread", name)

    async def asynchronous() -> None:
        print("before")
        await asyncio.sleep(0.01)
        await asyncio.to_thread(thread_work, "of a task")
        print("after")

    def synchronous() -> None:
        print("one", file=sys.stderr)
        thread = threading.Thread(target=contextvars.copy_context().run, args=(thread_work, "of a lane"))
        thread.start()
        thread.join()

    with captured() as streams, caplog.at_level(logging.DEBUG, "ors.runtime"):
        async with bench(capture=True) as b:
            both = [b.start(asynchronous, label="slow"), b.start(synchronous, label="quick")]
            outputs = [one.running.output for one in both]
            for one in both:
                assert await one.outcome is None
        print("mine")
    assert [str(output) for output in outputs] == ["before\nthread of a task\nafter\n", "one\nthread of a lane\n"]
    assert "slow printed: before\nthread of a task" in caplog.text
    assert streams[0].getvalue() == "mine\n"


async def test_the_streams_stay_streams() -> None:
    def work() -> str:
        sys.stdout.writelines(["a", "b"])
        sys.stdout.flush()
        assert sys.stdout.writable() and not sys.stdout.isatty()
        with pytest.raises(TypeError, match="write\\(\\) argument must be str, not bytes"):
            sys.stdout.write(b"bytes")  # type: ignore[arg-type]
        sys.stdout.close()
        print("after it was closed")
        return "fine"

    with captured() as streams:
        async with bench(capture=True) as b:
            started = b.start(work)
            output = started.running.output
            assert await started.outcome == "fine"
            assert str(output) == "abafter it was closed\n"
        capture.install()  # a second time changes nothing
        sys.stdout.flush()
        print("still open")
        assert streams[0].getvalue() == "still open\n"


async def test_without_capture_nothing_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    async with bench() as b:
        started = b.start(lambda: print("passes"))
        await started.outcome
        assert started.running.output is None
    assert capsys.readouterr().out == "passes\n"


def test_a_process_without_streams_stays_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    capture.install()
    try:
        assert sys.stdout is None
    finally:
        capture.uninstall()
