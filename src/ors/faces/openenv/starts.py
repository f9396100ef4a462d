"""What `reset` was given → the start of an episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ors.core.failures import Failure, failure
from ors.core.ports import OfferingSpec, Start, TaskRef
from ors.core.secrets import Secrets

__all__ = ["start_of"]

_TAKES = ("episode_id", "index", "secrets", "seed", "split", "task_spec")


def start_of(
    spec: OfferingSpec, data: Mapping[str, Any], strict: bool
) -> tuple[Start, dict[str, Any] | None] | Failure:
    """The start, and what there is to say of keys that mean nothing to the environment.

    One of steps gets them all, and sorts them itself. One of tools is told its task (`split` and `index`, either, or
    `task_spec`), a seed, a name for the episode, and secrets.
    """
    if spec.kind == "steps":
        return Start(options=data), None
    dropped = sorted(data.keys() - set(_TAKES))
    if dropped and strict:
        words = (
            f"reset() does not take {', '.join(repr(key[:100]) for key in dropped[:20])}; it takes {', '.join(_TAKES)}"
        )
        return failure("invalid_request", words)
    wrong = _wrong(data)
    if wrong is not None:
        return failure("invalid_input", wrong)
    split, index, task = data.get("split"), data.get("index"), data.get("task_spec")
    ref = TaskRef(split, index) if split is not None and index is not None else None
    options = {key: data[key] for key in ("episode_id", "split", "index") if data.get(key) is not None}
    start = Start(ref=ref, task=task, seed=data.get("seed"), options=options, secrets=Secrets(data.get("secrets")))
    return start, {"dropped": dropped, "accepted": list(_TAKES)} if dropped else None


def _wrong(data: Mapping[str, Any]) -> str | None:
    for name, kind, words in (
        ("split", str, "a text"),
        ("index", int, "an integer"),
        ("seed", int, "an integer"),
        ("episode_id", str, "a text"),
        ("secrets", dict, "an object of texts"),
    ):
        value = data.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            return f"{name}: it is {words}"
    if not all(isinstance(value, str) for value in (data.get("secrets") or {}).values()):
        return "secrets: it is an object of texts"
    if data.get("task_spec") is not None and (data.get("split") is not None or data.get("index") is not None):
        return "task_spec: it stands for a task itself; give it, or split and index"
    return None
