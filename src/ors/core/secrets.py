"""Secrets: they reach the environment and nothing else.

The values of live sessions are known here, so that texts which leave the process (logs, error texts) can be masked by
value. Values under 8 characters are too common to mask.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping

__all__ = ["Secrets", "mask"]

_MIN_LENGTH = 8
_MASK = "[secret]"
_FEW = 30
_live: Counter[str] = Counter()
# The live forms by how they begin. Replaced and never changed: other threads read them.
_starts: dict[str, tuple[str, ...]] = {}


class Secrets(Mapping[str, str]):
    """A mapping that shows its names and never its values; `reveal()` is for the environment's constructor alone."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or ())

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self._values)})" if self._values else "Secrets()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secrets) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def reveal(self) -> dict[str, str]:
        """A plain copy of the names and values."""
        return dict(self._values)

    def hold(self) -> None:
        """Mask these values in every text from now on."""
        for form in self._forms():
            _live[form] += 1
            if _live[form] == 1:
                start = form[:_MIN_LENGTH]
                _starts[start] = (*_starts.get(start, ()), form)

    def release(self) -> None:
        """Undo one `hold`."""
        for form in self._forms():
            _live[form] -= 1
            if _live[form] <= 0:
                del _live[form]
                start = form[:_MIN_LENGTH]
                if not (rest := tuple(other for other in _starts[start] if other != form)):
                    del _starts[start]
                else:
                    _starts[start] = rest

    def _forms(self) -> set[str]:
        """The values as they stand in a text, and as they are quoted in one: in JSON, in what `repr` shows."""
        long = [value for value in self._values.values() if len(value) >= _MIN_LENGTH]
        quoted = [
            form for value in long for form in (repr(value), json.dumps(value), json.dumps(value, ensure_ascii=False))
        ]
        return {*long, *(form[1:-1] for form in quoted)}


def mask(text: str) -> str:
    """Replace every live secret in a text."""
    if len(_live) > _FEW:
        return _mask_many(text)
    if _live:
        for value in sorted(_live, key=len, reverse=True):
            if value in text:
                text = text.replace(value, _MASK)
    return text


def _mask_many(text: str) -> str:
    """With a secret for each of many sessions, a text is walked once instead of searched once for each."""
    parts: list[str] = []
    kept = at = 0
    while at <= len(text) - _MIN_LENGTH:
        forms = _starts.get(text[at : at + _MIN_LENGTH], ())
        found = max((len(form) for form in forms if text.startswith(form, at)), default=0)
        if not found:
            at += 1
            continue
        parts += (text[kept:at], _MASK)
        kept = at = at + found
    return "".join((*parts, text[kept:])) if parts else text
