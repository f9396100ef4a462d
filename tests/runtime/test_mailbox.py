"""Handing things to a loop: all of them, in order, and never so many at a stretch that nothing else gets its turn."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from ors.runtime.mailbox import AT_A_STRETCH, Mailbox

pytestmark = pytest.mark.anyio


async def test_everything_arrives_once_and_in_order() -> None:
    loop = asyncio.get_running_loop()
    got: list[tuple[int, int]] = []
    done = asyncio.Event()

    def take(item: tuple[int, int]) -> None:
        got.append(item)
        if len(got) == 4_000:
            done.set()

    box: Mailbox[tuple[int, int]] = Mailbox(loop, take)

    def post(number: int) -> None:
        for count in range(1_000):
            box.post((number, count))

    threads = [threading.Thread(target=post, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    await asyncio.wait_for(done.wait(), 30)
    for thread in threads:
        thread.join()
    for number in range(4):
        assert [count for who, count in got if who == number] == list(range(1_000))


async def test_a_full_box_leaves_the_loop_its_turns() -> None:
    loop = asyncio.get_running_loop()
    events: list[Any] = []
    done = asyncio.Event()

    def take(item: int) -> None:
        if item % AT_A_STRETCH == 0:
            loop.call_soon(events.append, "turn")
        events.append(item)
        if item == 3 * AT_A_STRETCH:
            done.set()

    box: Mailbox[int] = Mailbox(loop, take)
    for item in range(3 * AT_A_STRETCH + 1):
        box.post(item)
    await asyncio.wait_for(done.wait(), 30)
    turns = [place for place, event in enumerate(events) if event == "turn"]
    assert turns[:3] == [AT_A_STRETCH, 2 * AT_A_STRETCH + 1, 3 * AT_A_STRETCH + 2]


async def test_what_cannot_be_delivered_holds_nothing_back() -> None:
    got: list[int] = []
    done = asyncio.Event()

    def take(item: int) -> None:
        if item == 1:
            raise ValueError("on purpose")
        got.append(item)
        if item == 2:
            done.set()

    box: Mailbox[int] = Mailbox(asyncio.get_running_loop(), take)
    for item in range(3):
        box.post(item)
    await asyncio.wait_for(done.wait(), 30)
    assert got == [0, 2]
