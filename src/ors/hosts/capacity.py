"""How many sessions of each environment there may be at once, and how many there are.

An environment that says nothing has as many as the machine bears: one for every descriptor that the process may still
open but 256, for every 128 KiB of memory that are available, and for every thread that may still be made but 128,
whichever is least.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from ors.core.failures import Failure, failure
from ors.core.ports import Offering

__all__ = ["Capacity", "machine_bears"]

logger = logging.getLogger("ors.server")

_DESCRIPTORS_LEFT = 256
_THREADS_LEFT = 128
_BYTES = 128 << 10


class Capacity:
    """The places of the sessions of an owner process. A place is taken until its session's teardown is over."""

    def __init__(
        self, offerings: Mapping[str, Offering], max_sessions: int, retry_after: float, patience: float
    ) -> None:
        self._retry_after = retry_after
        self._patience = patience
        self._limits: dict[str, int] = {}
        self._taken: Counter[str] = Counter()
        self._ending: dict[str, set[asyncio.Future[None]]] = {}
        bears = 0
        for name, offering in offerings.items():
            if offering.spec.max_sessions is not None:
                self._limits[name] = offering.spec.max_sessions
            elif offering.spec.kind == "steps":
                bears = bears or machine_bears()
                self._limits[name] = min(max_sessions, bears)
                logger.info("%s: up to %d sessions at once", offering.spec.name, self._limits[name])

    async def room(self, name: str) -> Failure | None:
        """Wait for a place that is being cleared; refuse where there is none."""
        limit = self._limits.get(name)
        if limit is None:
            return None
        while self._taken[name] >= limit:
            ending = self._ending.get(name)
            if not ending:
                return self._full(name, limit)
            done, _ = await asyncio.wait(ending, timeout=self._patience, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                return self._full(name, limit)
        return None

    def taken(self, name: str) -> int:
        """How many places are taken."""
        return self._taken[name]

    def take(self, name: str) -> None:
        """A session has a place."""
        self._taken[name] += 1

    def clearing(self, name: str, over: asyncio.Future[None]) -> None:
        """A session is being torn down; its place is free when that is over."""
        ending = self._ending.setdefault(name, set())
        ending.add(over)

        def cleared(_: asyncio.Future[None]) -> None:
            ending.discard(over)
            self.leave(name)

        over.add_done_callback(cleared)

    def leave(self, name: str) -> None:
        """A place is free again."""
        self._taken[name] -= 1

    def _full(self, name: str, limit: int) -> Failure:
        words = f"Server at capacity: {self._taken[name]}/{limit} sessions of '{name}' are active"
        full = failure("too_many_sessions", words, retry_after=self._retry_after)
        return Failure(
            full.kind,
            full.detail,
            full.retryable,
            full.ran,
            full.retry_after,
            about={"active_sessions": self._taken[name], "max_sessions": limit},
        )


def machine_bears() -> int:
    """How many sessions this machine bears, as far as the system says."""
    found = [100_000]
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY:
            found.append(soft - len(list(Path("/proc/self/fd").iterdir())) - _DESCRIPTORS_LEFT)
    except (ImportError, OSError, ValueError):
        pass
    if (available := _available_memory()) is not None:
        found.append(available // _BYTES)
    found += [threads - _THREADS_LEFT for threads in _threads()]
    return max(1, min(found))


def _available_memory() -> int | None:
    found = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) << 10)
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()) - _number("/sys/fs/cgroup/memory.current"))
    except (OSError, ValueError, IndexError):  # not this system's, or no limit
        pass
    return min(found) if found else None


def _threads() -> list[int]:
    return [
        number for path in ("/proc/sys/kernel/threads-max", "/sys/fs/cgroup/pids.max") if (number := _number(path)) > 0
    ]


def _number(path: str) -> int:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return 0
