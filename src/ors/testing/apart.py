"""Whether episodes leave nothing behind and do not see each other: the same episode alone, and beside another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from ors.testing.held import Held, growth, held
from ors.testing.inspection import Inspection
from ors.testing.shared_state import SharedState

__all__ = ["Playable", "check_apart"]

_TIMES = 3


class Playable(Protocol):
    """An episode that is played in steps, whose outcomes are kept."""

    transcript: list[tuple[str, str]]

    def steps(self) -> Sequence[Callable[[], object]]:
        """What to do from its opening on, without closing it."""
        ...

    def close(self) -> None:
        """Close it, however far it came."""
        ...


def check_apart(look: Inspection, make: Callable[[str, int], Playable]) -> None:
    """Play an episode alone a few times, then side by side with another.

    make(label, task): an episode of one of the sampled tasks, 0 or 1, that complains of nothing.
    """
    shared = SharedState(look.own)
    alone: list[list[tuple[str, str]]] = []
    grown: list[list[tuple[str, str]]] = []
    for _ in range(_TIMES):
        shared.restore()
        before = _held(look)
        episode = make("one", 0)
        _play(episode)
        alone.append(episode.transcript)
        grown.append(growth(before, lambda: _held(look)))
    _check_leaks(look, grown)
    if any(transcript != alone[0] for transcript in alone):
        look.unseen("an episode of the same task is another each time", "class-apart")
        shared.restore()
        return
    look.seen("class-apart")
    for other_task in (1, 0):
        beside, changed = _beside(shared, make, other_task)
        # once more, so that chance is not taken for a fault
        if beside != alone[0] and _beside(shared, make, other_task)[0] == beside:
            shared.restore()
            again = make("one", 0)
            _play(again)
            if again.transcript == alone[0]:
                _tell(look, alone[0], beside, changed)
                break
    shared.restore()


def _held(look: Inspection) -> Held:
    if look.stage.loop is not None:
        look.stage.call("", lambda: asyncio.sleep(0.001))  # tasks that were cancelled end now
    return held(look.stage.thread, look.stage.loop)


def _play(episode: Playable) -> None:
    try:
        for step in episode.steps():
            if step() is False:
                return
    finally:
        episode.close()


def _beside(
    shared: SharedState, make: Callable[[str, int], Playable], other_task: int
) -> tuple[list[tuple[str, str]], list[tuple[str, object]]]:
    """What becomes of the first episode while another is played step for step beside it, and what both share."""
    shared.restore()
    one, other = make("one", 0), make("other", other_task)
    open_ = {id(one): True, id(other): True}
    # the other one is opened before the first is asked anything, and acts first each time
    queues = {id(one): list(one.steps()), id(other): list(other.steps())}
    order = [one, other]
    while any(queues.values()):
        for episode in order:
            if queues[id(episode)]:
                step = queues[id(episode)].pop(0)
                if open_[id(episode)] and step() is False:
                    open_[id(episode)] = False
        order = [other, one]
    changed = list(shared.changed())
    other.close()
    one.close()
    return one.transcript, changed  # type: ignore[return-value]


def _tell(
    look: Inspection,
    alone: list[tuple[str, str]],
    beside: list[tuple[str, str]],
    changed: list[tuple[str, object]],
) -> None:
    step, before, after = "", "", ""
    for (name, one), (_, other) in zip(alone, beside, strict=False):
        if one != other:
            step, before, after = name, one, other
            break
    method = step or "setup"
    words = f"what '{method}' gives is {after:.100} beside another session, and {before:.100} alone"
    if changed:
        names = ", ".join(name for name, _ in changed[:4])
        look.complain(
            "class-apart",
            f"{words}. The sessions share {names}",
            changed[0][0] if "." in changed[0][0] else method,
            spot=changed[0][1],  # type: ignore[arg-type]
        )
    else:
        look.complain("class-apart", words, method)


def _check_leaks(look: Inspection, grown: list[list[tuple[str, str]]]) -> None:
    look.seen("episode-leaks")
    for kind in ("thread", "file", "process", "asyncio task"):
        each = [[name for what, name in one if what == kind] for one in grown]
        # what is made once and kept by all episodes is no leak
        if all(each):
            names = ", ".join(dict.fromkeys(each[-1]))
            several = f"{len(each[-1])} {kind}" + ("" if len(each[-1]) == 1 else "es" if kind == "process" else "s")
            method = "close" if look.kind == "steps" else "teardown"
            defined = callable(getattr(look.cls, method)) and any(method in vars(cls) for cls in look.own.classes)
            maker = "__init__" if look.kind == "steps" else "setup"
            look.complain(
                "episode-leaks",
                f"each episode leaves {several} behind: {names[:200]}",
                method if defined else maker,
                mend=f"release in {method}() what the episode took"
                + ("" if defined else f"; there is no {method}() yet"),
            )
