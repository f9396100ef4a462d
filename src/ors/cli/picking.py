"""Which environment and split are meant, and words for what there is when that is not clear."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ors.cli.errors import CommandError

if TYPE_CHECKING:
    from ors.client import ORS, Environment, SplitName

__all__ = ["count_of", "pick", "pick_environment", "pick_split", "some_split"]


def pick(wanted: str, names: Sequence[str], what: str) -> str:
    """The name that is meant; upper and lower case are the same. Raises CommandError."""
    for same in (str, str.lower):
        for name in names:
            if same(name) == same(wanted):
                return name
    close = difflib.get_close_matches(wanted.lower(), names, n=1)
    hint = f"do you mean '{close[0]}'?" if close else f"there is {_listed(names)}" if names else "there is none"
    raise CommandError(f"there is no {what} '{wanted}'; {hint}")


def pick_environment(client: ORS, wanted: str | None) -> Environment:
    """The environment that is meant, or the only one. Raises CommandError."""
    names = client.environments.list()
    if wanted is not None:
        return client.environment(pick(wanted, names, "environment"))
    if len(names) != 1:
        raise CommandError(f"there are several environments: {_listed(names)}; name one with --env")
    return client.environment(names[0])


def pick_split(environment: Environment, wanted: str | None) -> SplitName:
    """The split that is meant, or the only one. Raises CommandError."""
    splits = environment.list_splits()
    if wanted is not None:
        name = pick(wanted, [split.name for split in splits], f"split of {environment.name}")
        return next(split for split in splits if split == name)
    if len(splits) != 1:
        raise CommandError(f"{environment.name} has several splits: {_listed(splits)}; name one with --split")
    return splits[0]


def some_split(splits: Sequence[SplitName], *kinds: str) -> SplitName | None:
    """The first split of the first of these types that there is, or just the first."""
    for kind in kinds:
        for split in splits:
            if split.type == kind:
                return split
    return splits[0] if splits else None


def count_of(environment: Environment, split: str) -> int | None:
    """How many tasks a split has; None where that is not known."""
    from ors.errors import RequestRefused

    try:
        return environment.num_tasks(split)
    except RequestRefused as exc:
        if exc.status == 501:
            return None
        raise


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(str(name) for name in names[:20])
    return f"{shown}, …" if len(names) > 20 else shown
