"""The order of a session's calls: a machine enters, ends and withdraws works at random and compares with the rule."""

from __future__ import annotations

from dataclasses import dataclass

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ors.core.gate import Gate
from ors.core.ports import Work


def work(kind: str) -> Work:
    """exclusive, concurrent, sync:<tool>, or async:<tool>."""
    mode, _, tool = kind.partition(":")
    return Work(
        lambda: None,
        label=kind,
        is_async=mode == "async",
        serial=tool or kind,
        concurrent=mode == "concurrent",
        exclusive=mode == "exclusive",
    )


@dataclass(eq=False)
class Entry:
    """A work that was entered, as the runtime sees it: handed over with what it runs after."""

    work: Work
    handed: bool = False
    after: Entry | None = None
    over: bool = False

    @property
    def running(self) -> bool:
        return self.handed and not self.over and (self.after is None or self.after.over)


def conflict(a: Work, b: Work) -> bool:
    """The rule: what may not overlap."""
    if a.exclusive or b.exclusive:
        return True
    if a.concurrent or b.concurrent:
        return False
    if not a.is_async and not b.is_async:
        return True
    return a.is_async and b.is_async and a.serial == b.serial


KINDS = ["exclusive", "concurrent", "sync:a", "sync:b", "async:a", "async:b"]


class Calls(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.entries: list[Entry] = []

    def _start(self, entry: Entry, after: Entry | None) -> Entry:
        assert not entry.handed, "started twice"
        entry.handed, entry.after = True, after
        return entry

    @rule(kind=st.sampled_from(KINDS))
    def enter(self, kind: str) -> None:
        entry = Entry(work(kind))
        self.entries.append(entry)
        self.gate.enter(entry.work, lambda after: self._start(entry, after))

    @precondition(lambda self: any(entry.running for entry in self.entries))
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from([entry for entry in self.entries if entry.running]))
        entry.over = True
        self.entries.remove(entry)
        self.gate.leave(entry.work, entry)

    @precondition(lambda self: any(not entry.handed for entry in self.entries))
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from([entry for entry in self.entries if not entry.handed]))
        self.entries.remove(entry)
        self.gate.withdraw(entry.work)

    @invariant()
    def runs_exactly_what_may_run(self) -> None:
        for place, entry in enumerate(self.entries):
            ahead = [earlier for earlier in self.entries[:place] if conflict(earlier.work, entry.work)]
            assert entry.running == (not ahead), f"{entry.work.label} with {[e.work.label for e in ahead]} before it"

    @invariant()
    def is_idle_when_all_have_ended(self) -> None:
        assert self.gate.idle == (not self.entries)

    def teardown(self) -> None:
        while running := [entry for entry in self.entries if entry.running]:
            running[0].over = True
            self.entries.remove(running[0])
            self.gate.leave(running[0].work, running[0])
            self.runs_exactly_what_may_run()
        assert not self.entries
        assert self.gate.idle


TestCalls = Calls.TestCase
TestCalls.settings = settings(max_examples=50, stateful_step_count=25, deadline=None)


def test_a_long_queue_that_ends_at_once_needs_no_deep_stack() -> None:
    gate = Gate()
    first = work("exclusive")
    gate.enter(first, lambda after: None)
    order: list[int] = []

    def refuse(number: int, queued: Work) -> None:
        order.append(number)
        gate.leave(queued)

    for number in range(5_000):
        queued = work("sync:a")
        gate.enter(queued, lambda after, number=number, queued=queued: refuse(number, queued))
    gate.leave(first)
    assert order == list(range(5_000))
    assert gate.idle


def test_a_withdrawn_work_lets_those_behind_it_in() -> None:
    gate = Gate()
    running, exclusive, behind = work("async:a"), work("exclusive"), work("async:b")
    started: list[str] = []
    for one in (running, exclusive, behind):
        gate.enter(one, lambda after, one=one: started.append(one.label))
    assert started == ["async:a"]
    gate.withdraw(exclusive)
    assert started == ["async:a", "async:b"]
    gate.leave(running)
    gate.leave(behind)
    assert gate.idle
