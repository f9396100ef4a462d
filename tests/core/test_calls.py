"""The call log and the results it keeps: in memory, on disk, for a while, and within bounds."""

from __future__ import annotations

import errno
import os
from typing import Any

import psutil
import pytest

from ors.core.calls import CallLog, ResultStore, digest_of
from ors.core.failures import failure
from ors.core.ports import ToolOutcome

from .play import Clock, pass_time


def finish(log: CallLog, call_id: str, outcome: Any) -> None:
    log.finish(log.begin(call_id, "tool", {}, remember=True), outcome)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_large_results_are_on_disk_and_come_back_whole(clock: Clock) -> None:
    store = ResultStore(clock, spill_over=1000)
    log = CallLog(store)
    results = {f"c{n}": ToolOutcome(os.urandom(1 + n * 700), float(n), n == 3) for n in range(6)}
    for call_id, outcome in results.items():
        finish(log, call_id, outcome)
    assert store.disk == sum(len(outcome.body) for outcome in results.values() if len(outcome.body) > 1000)
    for _ in range(2):
        for call_id, outcome in results.items():
            assert log.ended(call_id) == outcome
    log.close()
    assert (store.memory, store.disk) == (0, 0)


def test_many_large_results_need_few_descriptors(clock: Clock) -> None:
    store = ResultStore(clock, spill_over=10)
    log = CallLog(store)
    before = psutil.Process().num_fds()
    for n in range(500):
        finish(log, f"c{n}", ToolOutcome(b"x" * 100 + b"%d" % n))
    assert psutil.Process().num_fds() - before <= 1
    assert log.ended("c499") == ToolOutcome(b"x" * 100 + b"499")
    pass_time(store, clock, 61)
    assert psutil.Process().num_fds() == before
    assert store.disk == 0
    finish(log, "again", ToolOutcome(b"y" * 100))
    assert log.ended("again") == ToolOutcome(b"y" * 100)
    log.close()


def test_files_are_cut_at_a_size_and_closed_when_nothing_in_them_is_kept(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ors.core.calls._FILE_SIZE", 1000)
    store = ResultStore(clock, spill_over=10)
    log = CallLog(store)
    before = psutil.Process().num_fds()
    for n in range(25):
        finish(log, f"c{n}", ToolOutcome(b"%03d" % n * 100))
        pass_time(store, clock, 1)
    assert psutil.Process().num_fds() - before == 7
    pass_time(store, clock, 60 - 14)  # 12 of 25 are over: three files of four are empty now
    assert psutil.Process().num_fds() - before == 4
    assert [n for n in range(25) if log.ended(f"c{n}") == ToolOutcome(b"%03d" % n * 100)] == list(range(12, 25))
    log.close()
    assert psutil.Process().num_fds() == before


def test_a_disk_that_writes_little_at_a_time_loses_nothing(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    write, read = os.pwrite, os.pread
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: write(fd, bytes(data)[:7], at))
    monkeypatch.setattr(os, "pread", lambda fd, size, at: read(fd, min(size, 5), at))
    log = CallLog(ResultStore(clock, spill_over=10))
    outcome = ToolOutcome(os.urandom(100), 1.0, True)
    finish(log, "c", outcome)
    assert log.ended("c") == outcome
    log.close()


def test_a_disk_without_room_keeps_no_result_from_its_call(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = ResultStore(clock, spill_over=10)
    log = CallLog(store)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        finish(log, "c", ToolOutcome(b"x" * 100))
    assert log.ended("c") == ToolOutcome(b"x" * 100)
    assert store.disk == 0 and store.memory > 100
    assert "No space left on device" in caplog.text
    finish(log, "d", ToolOutcome(b"y" * 100))
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", full)
        assert log.ended("d") == failure(
            "call_forgotten", "the call ran; its result cannot be read back: No space left on device", ran="yes"
        )
    assert log.ended("d") == ToolOutcome(b"y" * 100)
    log.close()
    assert (store.memory, store.disk) == (0, 0)


def test_the_store_says_when_it_is_full(clock: Clock) -> None:
    store = ResultStore(clock, max_memory=1000, max_disk=1000, spill_over=700)
    log = CallLog(store)
    finish(log, "small", ToolOutcome(b"x" * 500))
    assert not store.full
    finish(log, "large", ToolOutcome(b"x" * 1000))
    assert store.full
    log.forget_result("large")
    assert not store.full
    finish(log, "another", failure("tool_failed", "no"))
    assert store.full, "failures take room too"
    log.close()
    assert not store.full


def test_each_result_has_its_own_time(clock: Clock) -> None:
    store = ResultStore(clock, keep_s=60)
    one, another = CallLog(store), CallLog(store)
    finish(one, "a", ToolOutcome(b"a"))
    pass_time(store, clock, 30)
    finish(another, "b", ToolOutcome(b"b"))
    pass_time(store, clock, 30)
    assert one.ended("a") is None and one.knows("a")
    assert another.ended("b") == ToolOutcome(b"b")
    another.close()
    pass_time(store, clock, 60)  # of a log that is closed: nothing is released twice
    assert (store.memory, store.disk) == (0, 0)


HUGE = 10**400


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"y": 2, "x": 1}]}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": HUGE}, {"a": HUGE}, True),
        ({"a": HUGE}, {"a": HUGE + 1}, False),
        ({"a": 2**64}, {"a": 2**64 + 1}, False),
        ({"a": "\ud800"}, {"a": "\ud801"}, False),
        ({"a": "é"}, {"a": "e\u0301"}, False),
        ({}, None, False),
    ],
)
def test_inputs_are_the_same_when_their_json_is(a: Any, b: Any, same: bool) -> None:
    assert (digest_of("t", a) == digest_of("t", b)) is same
    assert digest_of("t", a) != digest_of("u", a)
    log = CallLog(ResultStore(Clock()))
    call = log.begin("c", "t", a, remember=True)
    assert log.same("c", "t", b) is same
    assert not log.same("c", "u", a)
    log.finish(call, ToolOutcome(b"{}"))
    assert log.same("c", "t", b) is same
    log.close()


def test_ids_that_the_server_made_are_not_remembered_for_ever() -> None:
    clock = Clock()
    store = ResultStore(clock)
    log = CallLog(store)
    log.finish(log.begin("servers", "t", {}, remember=False), ToolOutcome(b"{}"))
    assert log.ended("servers") is not None and not log.knows("servers")
    pass_time(store, clock, 61)
    assert log.ended("servers") is None
