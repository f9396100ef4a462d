"""Which environments and splits `ors run` plays, as the server says what there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ors.cli.errors import CommandError
from ors.cli.picking import count_of, pick, pick_split, some_split
from ors.cli.places import Place, client_of

__all__ = ["Row", "plan"]


class Row(NamedTuple):
    """A split to play, and how many tasks of it there are to choose from."""

    env: str
    split: str
    tasks: int


def plan(place: Place, wanted: Sequence[str], split: str | None, limit: int | None) -> list[Row]:
    """The splits to play. Raises CommandError for what there is not."""
    with client_of(place) as client:
        names = client.environments.list()
        rows = []
        for name in dict.fromkeys(pick(one, names, "environment") for one in wanted) if wanted else names:
            environment = client.environment(name)
            if split is not None:
                chosen = pick_split(environment, split)
            else:
                found = some_split(environment.list_splits(), "test", "validation")
                if found is None:
                    raise CommandError(f"{name} has no split to play")
                chosen = found
            count = count_of(environment, chosen)
            if count is None:
                if limit is None:
                    raise CommandError(f"split {chosen} of {name} has no end: say with --limit how many tasks to play")
                count = limit
            if count == 0:
                raise CommandError(f"split {chosen} of {name} has no tasks")
            rows.append(Row(name, chosen.name, count))
        return rows
