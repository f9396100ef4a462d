"""The order of tasks: every task exactly once in an epoch, whatever the shards, and from any place on."""

from __future__ import annotations

import json
import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ors.client.order import Cursor, Order, Shard

SIZES = st.integers(0, 300)
SEEDS = st.integers(0, 2**64)
WORLDS = st.integers(1, 17)


def shards(world: int, remainder: str = "keep") -> list[Shard]:
    return [Shard(rank, world, remainder) for rank in range(world)]  # type: ignore[arg-type]


def walked(order: Order, shard: Shard, epoch: int = 0, position: int = 0) -> list[int]:
    return [index for index, _ in order.walk(shard, epoch, position)]


@given(size=SIZES, seed=SEEDS, world=WORLDS, epoch=st.integers(0, 5))
def test_an_epoch_has_every_task_exactly_once(size: int, seed: int, world: int, epoch: int) -> None:
    order = Order(size).shuffled(seed)
    parts = [walked(order, shard, epoch) for shard in shards(world)]
    assert sorted(index for part in parts for index in part) == list(range(size))
    lengths = [len(part) for part in parts]
    assert max(lengths) - min(lengths) <= 1
    assert lengths == [shard.size(size) for shard in shards(world)]


@given(size=SIZES, seed=SEEDS, world=WORLDS, then=WORLDS, rounds=st.integers(0, 40))
def test_a_run_goes_on_with_another_number_of_processes(
    size: int, seed: int, world: int, then: int, rounds: int
) -> None:
    """Each process has used as many tasks; wherever that was, the rest comes exactly once."""
    order = Order(size).shuffled(seed)
    used: list[int] = []
    position = 0
    for shard in shards(world):
        for number, (index, reached) in enumerate(order.walk(shard, 0, 0)):
            if number == rounds:
                break
            used.append(index)
            position = max(position, reached)
    rest = [index for shard in shards(then) for index in walked(order, shard, 0, position)]
    assert sorted(used + rest) == list(range(size))


@given(size=SIZES, world=WORLDS, seed=SEEDS)
def test_what_does_not_come_out_even_is_dropped_or_padded(size: int, world: int, seed: int) -> None:
    order = Order(size).shuffled(seed)
    dropped = [walked(order, shard) for shard in shards(world, "drop")]
    assert {len(part) for part in dropped} == {size // world}
    assert len({index for part in dropped for index in part}) == size // world * world
    padded = [walked(order, shard) for shard in shards(world, "pad")]
    assert {len(part) for part in padded} == {-(-size // world)}
    counts = Counter(index for part in padded for index in part)
    assert set(counts) == set(range(size))
    if size >= world:
        assert max(counts.values(), default=0) <= 2


@given(size=SIZES, world=WORLDS, workers=st.integers(1, 5), seed=SEEDS)
def test_workers_divide_a_shard(size: int, world: int, workers: int, seed: int) -> None:
    order = Order(size).shuffled(seed)
    for shard in shards(world):
        parts = [walked(order, shard.split(part, workers)) for part in range(workers)]
        assert sorted(index for part in parts for index in part) == sorted(walked(order, shard))


@given(data=st.data(), size=st.integers(0, 80))
def test_steps_are_what_lists_would_do(data: st.DataObject, size: int) -> None:
    order, expected = Order(size), list(range(size))
    for _ in range(data.draw(st.integers(0, 4))):
        match data.draw(st.sampled_from(["cut", "shuffle", "share"])):
            case "cut":
                bounds = st.none() | st.integers(-90, 90)
                part = slice(data.draw(bounds), data.draw(bounds), data.draw(st.sampled_from([None, 1, 2, -1, -3])))
                order, expected = order.cut(part), expected[part]
            case "shuffle":
                seed = data.draw(SEEDS)
                mixed = Order(len(expected)).shuffled(seed)
                order, expected = order.shuffled(seed), [expected[mixed.index(i)] for i in range(len(expected))]
            case _:
                world = data.draw(st.integers(1, 4))
                rank = data.draw(st.integers(0, world - 1))
                order, expected = order.shared(Shard(rank, world)), expected[rank::world]
    assert len(order) == len(expected)
    assert [order.index(place) for place in range(len(order))] == expected
    assert pickle.loads(pickle.dumps(order)) == order


def test_epochs_differ_and_the_order_without_a_shuffle_does_not() -> None:
    order = Order(100).shuffled(3)
    assert walked(order, Shard(), 0) != walked(order, Shard(), 1)
    assert walked(Order(100), Shard(), 5) == list(range(100))
    assert order.seed == 3
    assert Order(100).seed is None


def test_a_billion_tasks_cost_nothing() -> None:
    order = Order(10**9).cut(slice(5, None)).shuffled(1).cut(slice(None, 10**8))
    assert len(order) == 10**8
    walk = order.walk(Shard(3, 1024), 0, 0)
    assert len({next(walk)[0] for _ in range(100)}) == 100


@pytest.mark.parametrize(("rank", "world"), [(1, 1), (-1, 2), (0, 0), (4, 3)])
def test_shards_that_are_none_are_refused(rank: int, world: int) -> None:
    with pytest.raises(ValueError, match=f"shard {rank} of {world}"):
        Shard(rank, world)


def test_other_mistakes_are_refused() -> None:
    with pytest.raises(ValueError, match="'keep', 'drop' or 'pad'"):
        Shard(0, 2, "wrap")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="padded"):
        Shard(0, 2, "pad").split(0, 2)


def test_a_cursor_survives_json() -> None:
    cursor = Cursor(7, 2, 1234)
    assert Cursor(*json.loads(json.dumps(cursor))) == cursor
