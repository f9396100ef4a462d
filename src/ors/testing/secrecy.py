"""Secrets in a check: which ones a class asks for, sentinels in their places, and finding them in texts."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from urllib.parse import quote

__all__ = ["leaked", "names_asked", "sentinels"]

_ASKED = re.compile(r"""secrets\b[^\n"']{0,30}?(?:\.get\(|\.pop\(|\[)\s*["']([\w.\-]+)["']""")
_SHORTEST = 8


def names_asked(classes: list[type]) -> list[str]:
    """The names of secrets that the source of these classes asks for, as in `secrets.get("api_key")`."""
    names: dict[str, None] = {}
    for cls in classes:
        try:
            names.update(dict.fromkeys(_ASKED.findall(inspect.getsource(cls))))
        except (OSError, TypeError):
            continue
    return list(names)


def sentinels(names: list[str]) -> dict[str, str]:
    """A value for each name that stands in no text by chance."""
    return {name: f"sentinel-{number}-{name}-9f3c51e7" for number, name in enumerate(names)}


def leaked(text: str, *secrets: Mapping[str, str]) -> str | None:
    """The name of the first secret whose value is in a text, as it is or quoted; values under 8 characters are not."""
    for values in secrets:
        for name, value in values.items():
            if len(value) >= _SHORTEST and any(form in text for form in {value, json.dumps(value)[1:-1], quote(value)}):
                return name
    return None
