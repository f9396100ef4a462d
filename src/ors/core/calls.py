"""The call log of a session: every call runs exactly once, and its result can be fetched again.

A call is known by its id from the moment it is asked for until its session ends. Its result is kept whole for a while
after it ended; when it has been dropped, the id is still known, so a late repeat is told so and never runs again.

Covers: repeats with the same id, on any connection, while the session lives in its owner process. Does not cover: the
death of the owner process (the session is then lost, and said to be).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import tempfile
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from ors.core.failures import failure
from ors.core.ports import Outcome, ToolOutcome, Work

__all__ = ["Call", "CallLog", "ResultStore", "digest_of"]

logger = logging.getLogger("ors.session")

_FILE_SIZE = 64 << 20
_OVERHEAD = 400  # what a kept result costs beside its body: its id, its entries, its objects


def digest_of(name: str, value: Any) -> bytes:
    """What tells two calls apart: the tool's name and the input, whatever the order of keys."""
    try:
        text = msgspec.json.encode([name, value], order="sorted")
    except (OverflowError, TypeError, ValueError, RecursionError):  # integers over 64 bits, lone surrogates
        text = json.dumps([name, value], sort_keys=True, separators=(",", ":")).encode()
    return hashlib.blake2b(text, digest_size=16).digest()


class Call(msgspec.Struct, eq=False):
    """A call that has not ended: who waits for it and what runs."""

    id: str
    name: str
    input: Any
    waiters: list[asyncio.Future[Outcome]] = msgspec.field(default_factory=list)
    work: Work | None = None
    running: Any = None
    script: Any = None
    started: float = 0.0
    ended: bool = False

    def same(self, name: str, value: Any) -> bool:
        """Whether a repeat asks for the same thing. Compared as JSON: in Python 1, 1.0 and True are equal."""
        return self.name == name and digest_of(name, self.input) == digest_of(name, value)

    def attached(self) -> bool:
        """Whether anybody still waits; forgets those who left."""
        self.waiters = [waiter for waiter in self.waiters if not waiter.done()]
        return bool(self.waiters)


class _File:
    """An unlinked file that holds many results, one after another: a descriptor for each would soon be too many."""

    __slots__ = ("_file", "live", "size")

    def __init__(self) -> None:
        self._file: Any = tempfile.TemporaryFile(prefix="ors-results-", buffering=0)  # noqa: SIM115 - closed below
        self.size = 0
        self.live = 0

    def append(self, body: bytes) -> int:
        """Write a body at the end and return where it begins. Raises OSError when there is no room."""
        start, rest = self.size, memoryview(body)
        while rest:
            rest = rest[os.pwrite(self._file.fileno(), rest, start + len(body) - len(rest)) :]
        self.size += len(body)
        self.live += 1
        return start

    def read(self, start: int, size: int) -> bytes:
        parts = []
        while size and (part := os.pread(self._file.fileno(), size, start)):
            parts.append(part)
            start, size = start + len(part), size - len(part)
        return b"".join(parts)

    def close(self) -> None:
        self._file.close()


class _Kept:
    """A result on disk."""

    __slots__ = ("file", "finished", "reward", "size", "start")

    def __init__(self, file: _File, outcome: ToolOutcome) -> None:
        self.start = file.append(outcome.body)
        self.size = len(outcome.body)
        self.file = file
        self.reward = outcome.reward
        self.finished = outcome.finished

    def outcome(self) -> Outcome:
        try:
            return ToolOutcome(self.file.read(self.start, self.size), self.reward, self.finished)
        except OSError as exc:
            return failure("call_forgotten", f"the call ran; its result cannot be read back: {exc.strerror}", ran="yes")


class ResultStore:
    """The results of all sessions of an owner process, kept for a while and bounded in bytes."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        keep_s: float = 60.0,
        max_memory: int = 1 << 30,
        max_disk: int = 8 << 30,
        spill_over: int = 256 << 10,
    ) -> None:
        self._clock = clock
        self._keep_s = keep_s
        self._max_memory = max_memory
        self._max_disk = max_disk
        self._spill_over = spill_over
        self._file: _File | None = None
        self.memory = 0
        self.disk = 0
        # what was kept since the last sweep, and before that sweep by sweep; each is two lists in step, since a tuple
        # for each result would give the garbage collector a million things to look at
        self._newest = 0.0
        self._logs: list[CallLog] = []
        self._ids: list[str] = []
        self._older: deque[tuple[float, list[CallLog], list[str]]] = deque()

    @property
    def full(self) -> bool:
        """No new call may start until older results have been dropped."""
        return self.memory >= self._max_memory or self.disk >= self._max_disk

    def keep(self, log: CallLog, call_id: str, outcome: Outcome) -> Any:
        """Account for a result and return what the log keeps in its place."""
        self._newest = self._clock()
        self._logs.append(log)
        self._ids.append(call_id)
        if isinstance(outcome, ToolOutcome) and len(outcome.body) > self._spill_over:
            try:
                return self._spill(outcome)
            except OSError as exc:  # no room, no descriptors: the result is no less the call's
                logger.warning("a result of %d bytes stays in memory: %s", len(outcome.body), exc)
        self.memory += _size(outcome)
        return outcome

    def _spill(self, outcome: ToolOutcome) -> _Kept:
        file = self._file
        if file is None or file.size >= _FILE_SIZE:
            file = self._file = _File()
        kept = _Kept(file, outcome)
        self.disk += kept.size
        return kept

    def release(self, kept: Any) -> None:
        """A kept result is dropped."""
        if isinstance(kept, _Kept):
            file = kept.file
            self.disk -= kept.size
            file.live -= 1
            if not file.live:
                file.close()
                if file is self._file:
                    self._file = None
        else:
            self.memory -= _size(kept)

    def sweep(self) -> None:
        """Drop the results whose time is over."""
        now = self._clock()
        if self._ids:
            # they go together, when the time of the youngest is over
            self._older.append((self._newest + self._keep_s, self._logs, self._ids))
            self._logs, self._ids = [], []
        while self._older and self._older[0][0] <= now:
            _, logs, ids = self._older.popleft()
            for log, call_id in zip(logs, ids, strict=True):
                log.forget_result(call_id)


def _size(outcome: Outcome) -> int:
    return _OVERHEAD + (len(outcome.body) if isinstance(outcome, ToolOutcome) else 0)


class CallLog:
    """The calls of one session by id: running, ended with a kept result, or known by id alone."""

    __slots__ = ("_ended", "_known", "_store", "running")

    def __init__(self, store: ResultStore) -> None:
        self._store = store
        self.running: dict[str, Call] = {}
        self._ended: dict[str, Any] = {}
        self._known: dict[str, bytes] = {}

    def ended(self, call_id: str) -> Outcome | None:
        """The result of a call that has ended and is still kept."""
        kept = self._ended.get(call_id)
        if kept is None:
            return None
        return kept.outcome() if type(kept) is _Kept else kept

    def knows(self, call_id: str) -> bool:
        """Whether a call with this id was ever asked for, unless the server made the id itself and has forgotten it."""
        return call_id in self.running or call_id in self._known

    def same(self, call_id: str, name: str, value: Any) -> bool:
        """Whether a known id was used for this tool and input."""
        call = self.running.get(call_id)
        if call is not None:
            return call.same(name, value)
        return self._known.get(call_id) == digest_of(name, value)

    def begin(self, call_id: str, name: str, value: Any, *, remember: bool) -> Call:
        """Register a new call. `remember` its id for the session's life: it was made by a client."""
        call = Call(call_id, name, value)
        self.running[call_id] = call
        if remember:
            self._known[call_id] = digest_of(name, value)
        return call

    def finish(self, call: Call, outcome: Outcome) -> None:
        """A call has ended: keep its result."""
        self.running.pop(call.id, None)
        self._ended[call.id] = self._store.keep(self, call.id, outcome)

    def forget_result(self, call_id: str) -> None:
        """Drop a kept result; the id stays known if it was a client's."""
        kept = self._ended.pop(call_id, None)
        if kept is not None:
            self._store.release(kept)

    def close(self) -> None:
        """The session is over: drop everything."""
        for kept in self._ended.values():
            self._store.release(kept)
        self._ended.clear()
        self._known.clear()
