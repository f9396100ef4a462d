"""The answer of a task that stands in its prompt: a warning where that is so in most tasks that were looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ors.testing.inspection import Inspection

__all__ = ["check_answers"]

_KEYS = re.compile(
    r"(?:^|_)(?:answers?|solutions?|gold|ground_?truth|truth|expected|correct|labels?|secret|hidden)(?:$|_)",
    re.IGNORECASE,
)
_CHOICES = re.compile(r"(?:^|_)(?:choices|options|candidates|alternatives)(?:$|_)", re.IGNORECASE)
_SHORTEST = 4


def check_answers(look: Inspection, prompts: list[tuple[Mapping[str, Any], str]]) -> None:
    """Point out the keys whose values stand in the prompts of most tasks that have them."""
    asked: dict[str, int] = {}
    shown: dict[str, list[str]] = {}
    for task, text in prompts:
        choices = {str(one) for key, value in task.items() if _CHOICES.search(key) for one in _flat(value)}
        for key, value in _answers(task):
            if value in choices:
                continue  # the agent has to choose among what it is shown
            asked[key] = asked.get(key, 0) + 1
            if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE):
                shown.setdefault(key, []).append(value)
    if prompts:
        look.seen("prompt-answer")
    for key, values in shown.items():
        if len(values) * 2 > asked[key]:
            words = f"the value of '{key}' of the task stands in {len(values)} of {asked[key]} prompts"
            look.complain("prompt-answer", f"{words}, for instance {values[0]!r:.60}", "get_prompt")


def _answers(task: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in task.items():
        if isinstance(value, Mapping):
            yield from ((f"{key}.{inner}", text) for inner, text in _answers(value))
        elif _KEYS.search(key) and isinstance(value, (str, int, float)) and not isinstance(value, bool):
            text = str(value).strip()
            if len(text) >= _SHORTEST:
                yield key, text


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _flat(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _flat(inner)
    else:
        yield value
