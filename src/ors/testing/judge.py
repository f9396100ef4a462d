"""What all rules are given: the class, the stage that its code runs on, and the ways to complain."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from ors.testing.complaints import RULES, CheckReport, Complaint
from ors.testing.places import line_of, raised_at
from ors.testing.stage import Stage

__all__ = ["Judge", "said"]


_ASKED = 64
"""How many tasks of a split are asked for by their index."""


class Judge:
    """A check of one class."""

    def __init__(
        self,
        cls: type[Any],
        stage: Stage,
        report: CheckReport,
        *,
        splits: tuple[str, ...],
        samples: int,
        secrets: Mapping[str, str],
        skip: frozenset[str],
        make: Callable[[], Any] | None = None,
        action_cls: Any = None,
    ) -> None:
        self.cls = cls
        self.make: Callable[[], Any] = make or cls
        self.action_cls = action_cls
        self.stage = stage
        self.report = report
        self.only_splits = splits
        self.samples = samples
        self.secrets = secrets
        self.skip = skip
        self.few = False
        """Its episodes are slow to begin, so few are played."""
        self.raised: list[tuple[str, str]] = []
        """What was raised in episodes: by which method, in its words."""

    def looked_at(self, *rules: str) -> None:
        """These rules could be looked at."""
        for rule in rules:
            assert rule in RULES, rule
            if rule not in self.report.checked and rule not in self.skip:
                self.report.checked.append(rule)

    def passed_over(self, rule: str, why: str) -> None:
        """A rule could not be looked at."""
        if rule not in self.report.checked and rule not in self.skip:
            self.report.skipped[rule] = why

    def complain(self, rule: str, message: str, method: str, exc: BaseException | None = None) -> None:
        """Complain of a method, at the line that raised where there is one. Once for each rule and method."""
        if exc is not None:
            self.raised.append((method, f"{exc}"))
        if rule in self.skip or any(
            c.rule.id == rule and c.method == self._named(method) for c in self.report.complaints
        ):
            return
        message = self._masked(message)
        file, line = raised_at(exc) if exc is not None else (None, None)
        if file is None:
            file, line = line_of(self.cls, method)
        self.looked_at(rule)
        self.report.complaints.append(Complaint(RULES[rule], message, self._named(method), file, line))

    def complain_at(self, rule: str, message: str, method: str, file: str, line: int) -> None:
        """Complain of a line."""
        if rule not in self.skip:
            self.looked_at(rule)
            message = self._masked(message)
            self.report.complaints.append(Complaint(RULES[rule], message, method, file, line))

    def _masked(self, message: str) -> str:
        for name, value in self.secrets.items():
            if len(value) >= 4:
                message = message.replace(value, f"[{name}]")
        return message

    def _named(self, method: str) -> str:
        return f"{self.cls.__name__}.{method}" if method else self.cls.__name__

    async def attempt(self, rule: str, method: str, function: Callable[..., Any], *args: Any, what: str = "") -> Any:
        """What author code returns; where it raises, a complaint, and `Judge.FAILED`."""
        self.looked_at(rule)
        try:
            return await self.stage.run(function, *args)
        except Exception as exc:
            self.complain(rule, f"{what or 'it'} raises {said(exc)}", method, exc)
            return self.FAILED

    def chosen(self, count: int) -> list[int]:
        """Some indices of a split, the first and the last among them, and the same each time."""
        if count <= self.samples:
            return list(range(count))
        some = random.Random(count).sample(range(count), self.samples - 2)  # noqa: S311  which ones is no secret
        return sorted({0, count - 1, *some})

    def many(self, count: int) -> list[int]:
        """Indices that are only asked for: all where there are few, and some from all over where there are many."""
        if count <= _ASKED:
            return list(range(count))
        return sorted({*self.chosen(count), *(place * (count - 1) // (_ASKED - 1) for place in range(_ASKED))})

    FAILED: Any = object()


def said(exc: BaseException) -> str:
    """An exception, in one line."""
    first = str(exc).strip().splitlines()[0][:200] if str(exc).strip() else ""
    return f"{type(exc).__name__}: {first}" if first else type(exc).__name__
