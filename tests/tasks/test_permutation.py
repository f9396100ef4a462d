"""Orders that take no memory are orders: everything once, the same everywhere, another for each seed and epoch."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ors.tasks.permutation import Permutation

ANY_SEED = st.integers(-(2**70), 2**70)


@given(size=st.integers(0, 600), seed=ANY_SEED, epoch=st.integers(0, 2**40))
def test_everything_comes_once(size: int, seed: int, epoch: int) -> None:
    order = Permutation(size, seed, epoch)
    assert sorted(order) == list(range(size))
    assert len(order) == size


@given(size=st.integers(1, 2**70), seed=ANY_SEED, data=st.data())
def test_places_in_huge_orders_are_distinct_and_inside(size: int, seed: int, data: st.DataObject) -> None:
    order = Permutation(size, seed)
    places = data.draw(st.sets(st.integers(0, size - 1), max_size=20))
    numbers = {order[place] for place in places}
    assert len(numbers) == len(places)
    assert all(0 <= number < size for number in numbers)


def test_orders_are_the_same_on_every_machine_and_in_every_version() -> None:
    assert list(Permutation(10, 7)) == [5, 4, 1, 6, 9, 8, 7, 0, 3, 2]
    assert [Permutation(7_595, 42, epoch=3)[place] for place in (0, 1, 12, 7_594)] == [1776, 3179, 5308, 5787]
    huge = Permutation(10**12, -1)
    assert [huge[place] for place in (0, 1, 10**12 - 1)] == [
        473255719374,
        269596007111,
        299516483201,
    ]


def test_each_seed_and_epoch_has_its_own_order() -> None:
    orders = {tuple(Permutation(50, seed, epoch)) for seed in range(10) for epoch in range(10)}
    assert len(orders) == 100


def test_no_place_favours_a_number() -> None:
    """Over many seeds every number comes about equally often everywhere: chi-squared over 60 has p < 1e-9."""
    for place in (0, 3, 9):
        seen = Counter(Permutation(10, seed)[place] for seed in range(5_000))
        assert sum((seen[number] - 500) ** 2 / 500 for number in range(10)) < 60


@pytest.mark.parametrize("place", [-1, 5, 10**9])
def test_places_outside_are_refused(place: int) -> None:
    with pytest.raises(IndexError, match="order of 5"):
        Permutation(5, 0)[place]


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        Permutation(-1, 0)
