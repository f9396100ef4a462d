"""The directory of sessions: who may ask, how many there may be, when they end, and what is remembered of them."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from ors.core.failures import Failure
from ors.core.ports import Document, Opened, Principal, Start, TaskRef
from ors.core.secrets import Secrets, mask
from ors.core.session import Session
from ors.hosts.local import HostOptions, LocalHost
from ors.runtime import RuntimeOptions
from ors.tasks import task_key
from served import until

from .conftest import TRAINER, Player
from .environments import offerings

pytestmark = pytest.mark.anyio


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def make(anyio_backend: str, clock: Clock) -> AsyncIterator[Any]:
    """`make(**options)` → a local host on the test's clock."""
    made: list[LocalHost] = []

    def start(**options: Any) -> LocalHost:
        made.append(LocalHost(offerings(), HostOptions(**options), clock=clock))
        return made[-1]

    yield start
    for host in made:
        await host.close()


def kind(outcome: Any) -> str:
    assert isinstance(outcome, Failure), outcome
    return outcome.kind


async def is_set_up(player: Player, **start: Any) -> Player:
    assert isinstance(await player.open(**start), Opened)
    assert isinstance(await player.ask("prompt"), Document)
    return player


async def count(host: LocalHost) -> int:
    return int((await host.status())["sessions"])


# Opening


async def test_a_repeat_joins_while_the_first_is_under_way_and_after(make: Any) -> None:
    host = make()
    player = Player(host, "one")
    ref = TaskRef("train", 2)
    answers = await asyncio.gather(*(player.open(ref=ref, key="k") for _ in range(5)))
    assert answers == [Opened("one", "workshop", task_key({"index": 2, "big": 10**4000 + 2}))] * 5
    assert (await host.status())["opened"] == 1
    assert await player.open(ref=ref, key="k") == answers[0]
    for key in (None, "other"):
        assert kind(await player.open(ref=ref, key=key)) == "session_exists"
    stranger = Player(host, "one", Principal(key="stranger"))
    assert kind(await stranger.open(ref=ref, key="k")) == "session_exists"


async def test_a_repeat_of_what_fails_fails_the_same_way(make: Any) -> None:
    host = make()
    player = Player(host, "one")
    answers = await asyncio.gather(*(player.open(ref=TaskRef("train", 99), key="k") for _ in range(3)))
    assert [kind(answer) for answer in answers] == ["invalid_index"] * 3
    # nothing was opened, so the id is free
    assert await count(host) == 0
    assert isinstance(await player.open(ref=TaskRef("train", 0), key="k"), Opened)


async def test_who_waits_for_a_session_that_does_not_come_about_is_told(make: Any) -> None:
    host = make()
    player = Player(host, "one")
    opening = asyncio.ensure_future(player.open(ref=TaskRef("train", 99)))
    await asyncio.sleep(0)
    waiting = [player.ask("prompt"), player.call("echo"), player.call("add", number=1)]
    with anyio.fail_after(10):
        assert kind(await opening) == "invalid_index"
        assert [kind(outcome) for outcome in await asyncio.gather(*waiting)] == ["invalid_index"] * 3
    status = await host.status()
    assert (status["sessions"], status["calls"], status["failed"]) == (0, 0, 1)
    assert kind(await player.call("echo")) == "unknown_session"


async def test_deleting_while_the_task_is_looked_up(make: Any) -> None:
    host = make()
    player = Player(host, "one")
    opening = asyncio.ensure_future(player.open(ref=TaskRef("train", 1)))
    await asyncio.sleep(0)
    with anyio.fail_after(10):
        assert await player.end() == Document(b"{}")
        assert kind(await opening) == "session_ended"
    assert await count(host) == 0


async def test_an_environment_is_found_whatever_its_case(make: Any) -> None:
    host = make()
    assert (await Player(host, "one").open("CORRIDOR")).env == "corridor"
    assert (await Player(host, "two").open(None)).env == "workshop"
    assert kind(await Player(host, "three").open("shop")) == "unknown_environment"


# Limits


async def test_sessions_are_limited(make: Any) -> None:
    host = make(max_sessions=2, retry_after_s=7.0)
    one, two, three = (Player(host, name) for name in ("one", "two", "three"))
    await one.open(key="k")
    await two.open()
    refused = await three.open()
    assert kind(refused) == "too_many_sessions" and refused.retry_after == 7.0
    # a repeat opens nothing
    assert isinstance(await one.open(key="k"), Opened)
    await two.end()
    assert isinstance(await three.open(), Opened)


async def test_calls_are_limited(make: Any, tmp_path: Path) -> None:
    host = make(max_calls=2, retry_after_s=3.0)
    player = await is_set_up(Player(host, "one"))
    go = tmp_path / "go"
    held = [player.call("hold", begun=str(tmp_path / str(number)), go=str(go)) for number in range(2)]
    await until(lambda: len(list(tmp_path.iterdir())) == 2)
    refused = await player.call("echo", call_id="again")
    assert kind(refused) == "too_many_calls" and refused.retry_after == 3.0 and refused.ran == "no"
    go.touch()
    await asyncio.gather(*held)
    # a refused call was never there: its id may be used
    assert not isinstance(await player.call("echo", call_id="again", mode="run_or_attach"), Failure)


async def test_results_that_are_kept_are_limited(make: Any, clock: Clock) -> None:
    host = make(result_memory=1000, result_keep_s=60.0)
    player = await is_set_up(Player(host, "one"))
    mode = "run_or_attach"
    first = await player.call("echo", call_id="0", mode=mode)
    ran = 1
    while not isinstance(refused := await player.call("echo", call_id=str(ran), mode=mode), Failure):
        ran += 1
        assert ran < 20
    assert kind(refused) == "results_full" and refused.ran == "no"
    # those that are kept can still be fetched
    assert await player.call("echo", call_id="0", mode=mode) == first
    clock.now += 61
    await host.touch("one", TRAINER)
    host.sweep()
    assert (await host.status())["result_bytes"] == 0
    forgotten = await player.call("echo", call_id="0", mode=mode)
    assert kind(forgotten) == "call_forgotten" and forgotten.ran == "yes"
    again = await player.call("echo", call_id=str(ran), mode=mode)
    assert json.loads(again.body)["metadata"]["count"] == ran + 1


async def test_zombies_make_a_host_not_ready(make: Any, tmp_path: Path) -> None:
    host = make(max_zombies=1, runtime=RuntimeOptions(grace_s=0.05))
    player = await is_set_up(Player(host, "one"))
    go = tmp_path / "go"
    assert kind(await player.call("ignore", go=str(go))) == "tool_timeout"

    async def zombies(wanted: int) -> bool:
        return len((await host.status())["zombies"]) == wanted

    await until(lambda: zombies(1))
    status = await host.status()
    assert status["ready"] is False and "ignore" in status["zombies"][0]
    # its session is lost; those of others are not
    assert await count(host) == 0
    lost = await player.call("echo")
    assert kind(lost) == "session_ended" and "a tool hung" in lost.detail
    await is_set_up(Player(host, "two"))
    go.touch()
    await until(lambda: zombies(0))
    assert (await host.status())["ready"] is True


# Time


async def test_a_session_expires_when_nobody_asks(make: Any, clock: Clock, tmp_path: Path) -> None:
    host = make(idle_s=900.0)
    marks = [tmp_path / "one", tmp_path / "two"]
    one, two = [await is_set_up(Player(host, mark.name), task={"torn_down": str(mark)}) for mark in marks]
    clock.now += 899.9
    host.sweep()
    assert await count(host) == 2
    assert await host.touch("one", TRAINER) is None
    clock.now += 0.2
    host.sweep()
    assert await count(host) == 1
    await until(marks[1].exists)
    assert not marks[0].exists()
    expired = await two.call("echo")
    assert kind(expired) == "session_ended" and expired.detail == "Session expired"
    # asking is activity too
    clock.now += 899.7
    await one.ask("prompt")
    clock.now += 899.7
    host.sweep()
    assert await count(host) == 1
    clock.now += 0.4
    host.sweep()
    assert await count(host) == 0


async def test_all_that_expire_are_torn_down_side_by_side(make: Any, clock: Clock, tmp_path: Path) -> None:
    host = make(idle_s=900.0, teardown_timeout_s=60.0)
    go = tmp_path / "go"
    players = [Player(host, f"p{number}") for number in range(50)]
    for player in players:
        await is_set_up(player, task={"hang_teardown": str(go), "torn_down": str(tmp_path / player.sid)})
    clock.now += 901
    host.sweep()
    assert await count(host) == 0
    # all of them are in their teardown at once
    await until(lambda: _running(host, 50), within_s=20)
    go.touch()
    await until(lambda: len(list(tmp_path.iterdir())) == 51)


async def _running(host: LocalHost, wanted: int) -> bool:
    status = await host.status()
    return bool(status["running"] == wanted and status["lanes_waiting"] == 0)


async def test_a_running_call_keeps_its_session_while_its_client_waits(make: Any, clock: Clock, tmp_path: Path) -> None:
    host = make(idle_s=900.0, call_ceiling_s=5000.0)
    player = await is_set_up(Player(host, "one"))
    held = player.call("hold", begun=str(tmp_path / "begun"), go=str(tmp_path / "never"))
    await until((tmp_path / "begun").exists)
    for _ in range(4):
        clock.now += 1000
        host.sweep()
        assert await count(host) == 1
    held.cancel()
    # the moment in which the client left counts as activity
    clock.now += 500
    host.sweep()
    clock.now += 899
    host.sweep()
    assert await count(host) == 1
    clock.now += 2
    host.sweep()
    assert await count(host) == 0


async def test_a_call_over_the_ceiling_keeps_nothing(make: Any, clock: Clock, tmp_path: Path) -> None:
    host = make(idle_s=900.0, call_ceiling_s=2000.0)
    player = await is_set_up(Player(host, "one"))
    held = player.call("hold", begun=str(tmp_path / "begun"), go=str(tmp_path / "never"))
    await until((tmp_path / "begun").exists)
    clock.now += 1999
    host.sweep()
    assert await count(host) == 1
    clock.now += 901
    host.sweep()
    assert await count(host) == 0
    assert kind(await held) == "session_ended"


async def test_a_slow_setup_is_not_taken_for_idleness(make: Any, clock: Clock, tmp_path: Path) -> None:
    host = make(idle_s=900.0)
    go = tmp_path / "go"
    player = Player(host, "one")
    await player.open(task={"slow_setup": str(go)})
    clock.now += 2000
    host.sweep()
    assert await count(host) == 1
    go.touch()
    assert isinstance(await player.ask("prompt"), Document)


async def test_the_timer_sweeps(anyio_backend: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalHost, "SWEEP_S", 0.01)
    host = LocalHost(offerings(), HostOptions(idle_s=900.0), clock=clock)
    await is_set_up(Player(host, "one"))
    clock.now += 901
    await until(lambda: _none(host))
    await host.close()


async def _none(host: LocalHost) -> bool:
    return await count(host) == 0


# Ended sessions


async def test_an_ended_id_is_remembered_and_not_used_again(make: Any, clock: Clock) -> None:
    host = make()
    key = Principal(key="ours")
    player, stranger = Player(host, "one", key), Player(host, "one", Principal(key="theirs"))
    await player.open()
    await player.end()
    gone = await player.ask("prompt")
    assert kind(gone) == "session_ended" and gone.status == 410 and gone.detail == "Session deleted"
    assert kind(await player.open()) == "session_ended"
    # to others it never was
    assert kind(await stranger.ask("prompt")) == "unknown_session"
    assert kind(await host.touch("one", stranger.principal)) == "unknown_session"
    clock.now += LocalHost.ENDED_KEPT_S + 1
    host.sweep()
    assert kind(await player.ask("prompt")) == "unknown_session"
    assert isinstance(await player.open(), Opened)


async def test_what_is_remembered_is_bounded(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalHost, "ENDED_KEPT", 10)
    host = make()
    players = [Player(host, f"p{number:02}") for number in range(15)]
    for player in players:
        await player.open()
        await player.end()
    host.sweep()
    kinds = [kind(await player.ask("prompt")) for player in players]
    assert kinds == ["unknown_session"] * 5 + ["session_ended"] * 10


def sessions(sid: str) -> int:
    """How many of this name are in memory."""
    return sum(isinstance(thing, Session) and thing.id == sid for thing in gc.get_objects())


async def test_an_ended_session_is_garbage(make: Any) -> None:
    host = make()
    player = await is_set_up(Player(host, "one"))
    await player.call("echo", value="x" * 1000)
    assert sessions("one") == 1
    await player.end()

    await until(lambda: gc.collect() >= 0 and sessions("one") == 0)
    assert (await host.status())["result_bytes"] == 0


# Draining


async def test_draining_lets_calls_end_and_refuses_new_sessions(make: Any, tmp_path: Path) -> None:
    host = make()
    player = await is_set_up(Player(host, "one"), task={"torn_down": str(tmp_path / "torn_down")})
    go = tmp_path / "go"
    held = player.call("hold", begun=str(tmp_path / "begun"), go=str(go))
    await until((tmp_path / "begun").exists)
    draining = asyncio.ensure_future(host.drain(30))
    await asyncio.sleep(0)
    status = await host.status()
    assert status["ready"] is False and status["draining"] is True
    refused = await Player(host, "two").open()
    assert kind(refused) == "draining" and refused.retry_after == 2.0
    # the episode goes on
    assert not isinstance(await player.call("echo"), Failure)
    assert not draining.done()
    go.touch()
    assert not isinstance(await held, Failure)
    with anyio.fail_after(10):
        await draining
    assert (tmp_path / "torn_down").exists()


async def test_draining_ends_what_does_not_end(make: Any, tmp_path: Path) -> None:
    host = make()
    player = await is_set_up(Player(host, "one"))
    held = player.call("hold", begun=str(tmp_path / "begun"), go=str(tmp_path / "never"))
    await until((tmp_path / "begun").exists)
    with anyio.fail_after(10):
        await host.drain(0.05)
    outcome = await held
    assert kind(outcome) == "draining" and outcome.retryable
    assert await count(host) == 0


async def test_draining_waits_for_teardowns_that_began_before(make: Any, tmp_path: Path) -> None:
    host = make()
    go, torn_down = tmp_path / "go", tmp_path / "torn_down"
    player = await is_set_up(Player(host, "one"), task={"hang_teardown": str(go), "torn_down": str(torn_down)})
    ending = asyncio.ensure_future(player.end())
    await until(lambda: _running(host, 1))
    draining = asyncio.ensure_future(host.drain(5))
    await asyncio.sleep(0.05)
    assert not draining.done()
    go.touch()
    with anyio.fail_after(10):
        await draining
        await ending
    assert torn_down.exists()


# Who may ask


async def test_a_session_answers_to_its_own_key(make: Any) -> None:
    host = make()
    player = Player(host, "one", Principal(key="ours"))
    await player.open()
    stranger = Player(host, "one", Principal(key="theirs"))
    assert kind(await stranger.call("echo")) == "forbidden"
    assert kind(await stranger.ask("prompt")) == "forbidden"
    assert kind(await stranger.end()) == "forbidden"
    assert kind(await host.cancel("one", stranger.principal, "x")) == "forbidden"
    assert kind(await host.touch("one", stranger.principal)) == "forbidden"
    assert not isinstance(await player.call("echo"), Failure)


async def test_an_agent_acts_in_its_session_and_does_no_more(make: Any) -> None:
    host = make()
    trainer = await is_set_up(Player(host, "one"))
    await Player(host, "two").open()
    agent = Principal("agent", key="token", session="one")
    acting = Player(host, "one", agent)
    assert not isinstance(await acting.call("echo", call_id="a", value=1), Failure)
    assert isinstance(await acting.ask("prompt"), Document)
    assert isinstance(await acting.ask("tools"), Document)
    assert isinstance(await host.cancel("one", agent, "a"), Document)
    assert await host.touch("one", agent) is None
    for outcome in (
        await acting.end(),
        await acting.ask("reset", start=Start()),
        await acting.open(),
        await Player(host, "new", agent).open(),
        await Player(host, "two", agent).call("echo"),
        await host.cancel("two", agent, "a"),
        await host.touch("two", agent),
    ):
        assert kind(outcome) == "forbidden"
    assert not isinstance(await trainer.call("echo"), Failure)


# Logs and secrets


async def test_one_line_per_episode(make: Any, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    host = make()
    player = Player(host, "one")
    await player.open(ref=TaskRef("train", 3))
    await player.call("add", number=2)
    await player.call("nothing")
    await player.call("finish")
    clock.now += 12.5
    await player.end()
    (line,) = [record for record in caplog.records if record.name == "ors.episode" and record.levelno == logging.INFO]
    told = {name: getattr(line, name) for name in ("session", "env", "task", "why", "seconds", "calls", "failed")}
    assert told == {
        "session": "one",
        "env": "workshop",
        "task": "train[3]",
        "why": "deleted",
        "seconds": 12.5,
        "calls": 3,
        "failed": 1,
    }
    assert (line.reward, line.finished) == (3.0, True)


async def test_secrets_are_masked_for_as_long_as_their_session_lives(make: Any) -> None:
    host = make()
    player = Player(host, "one")
    words = "the token is sesame-open-wide"
    await player.open(secrets=Secrets({"token": "sesame-open-wide"}))
    assert mask(words) == "the token is [secret]"
    await player.end()
    assert mask(words) == words
