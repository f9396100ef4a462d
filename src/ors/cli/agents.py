"""What `ors run` is asked to let play: `module:function` or `file.py:function` → an agent."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ors.cli.errors import CommandError
from ors.cli.importing import import_file, import_module
from ors.evaluation import Agent, AgentError

__all__ = ["load_agents"]

_DEFAULT = "agent"


def load_agents(texts: Sequence[str]) -> dict[str, Agent]:
    """The agents by the words that name them. Raises CommandError."""
    return {text: _load(text) for text in dict.fromkeys(texts)}


def _load(text: str) -> Agent:
    source, colon, attribute = text.rpartition(":")
    if not colon or os.sep in attribute or "/" in attribute:
        source, attribute = text, _DEFAULT
    if not all(part.isidentifier() for part in attribute.split(".")):
        raise CommandError(f"'{text}': after the colon stands the name of a function, as in 'my_agent.py:play'")
    if source.endswith(".py") or os.sep in source or "/" in source:
        file = Path(source).expanduser().resolve()
        if not file.is_file():
            raise CommandError(f"'{text}': there is no file {source}")
        module = import_file(text, file)
    elif source and all(part.isidentifier() for part in source.split(".")):
        module = import_module(text, source)
    else:
        raise CommandError(f"'{text}' is no agent; write 'my_agent.py:play' or 'my_package.my_module:play'")
    value: Any = module
    for part in attribute.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            names = [name for name, one in vars(module).items() if callable(one) and not name.startswith("_")]
            close = difflib.get_close_matches(part, names, n=1)
            hint = f"; do you mean '{close[0]}'?" if close else f"; it has {', '.join(names[:10])}" if names else ""
            raise CommandError(f"'{text}': {source} has no '{part}'{hint}") from None
    try:
        return Agent(text, value)
    except AgentError as exc:
        raise CommandError(f"'{text}': {exc}") from exc
