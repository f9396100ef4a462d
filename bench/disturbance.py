"""How much of the two cores other programs took while something was measured."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

from cores import cores

CALM = 0.05
"""A sample is taken again when other programs took more of a core than this, as long as attempts are left."""
DISTURBED = 0.10
"""Above this nothing is said about a goal that is a matter of time."""
_TICK = os.sysconf("SC_CLK_TCK")


def core_busy_s(which: int) -> float:
    """Time that the server's core (0) or the load's (1) has spent in programs, whichever they are."""
    pair = cores()
    name = "cpu" if pair is None else f"cpu{pair[which]}"
    for line in Path("/proc/stat").read_text().splitlines():
        label, *numbers = line.split()
        if label == name:
            return sum(int(number) for number in numbers[:3]) / _TICK
    raise RuntimeError(f"/proc/stat has no line {name}")


def children_s() -> float:
    """Processor time of the child processes that have ended."""
    return _used(resource.RUSAGE_CHILDREN)


class Watch:
    """Looks at a whole measure, from before its first server starts until its last has ended."""

    def __init__(self) -> None:
        self._begun = self._now()

    def others(self) -> float:
        """The share of a core that other programs have taken on average since the start."""
        elapsed, busy = (now - then for now, then in zip(self._now(), self._begun, strict=True))
        return max(busy / elapsed / (1 if cores() is None else 2), 0.0)

    def _now(self) -> tuple[float, float]:
        busy = core_busy_s(0) + (0.0 if cores() is None else core_busy_s(1))
        return time.monotonic(), busy - children_s() - _used(resource.RUSAGE_SELF)


def _used(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime
