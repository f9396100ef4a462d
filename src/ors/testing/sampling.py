"""Which tasks of many are looked at."""

from __future__ import annotations

__all__ = ["spread", "spread_of"]


def spread(count: int, most: int) -> list[int]:
    """Indices from all over a range: all of them where there are few, else the ends and what is evenly between."""
    if count <= most:
        return list(range(count))
    return sorted({round(place * (count - 1) / (most - 1)) for place in range(most)})


def spread_of(values: list[int], most: int) -> list[int]:
    """Some of the values, from all over the list."""
    return [values[place] for place in spread(len(values), most)]
