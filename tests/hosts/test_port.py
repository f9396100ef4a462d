"""The port, as every host keeps it: in this process, over frames, and each of them in a thread of its own."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from ors.core.failures import Failure
from ors.core.ports import Document, Op, Opened, Principal, Start, StepOutcome, TaskQuery, TaskRef, ToolOutcome
from ors.core.secrets import Secrets
from ors.tasks import task_key
from served import until

from .conftest import TRAINER, Player

pytestmark = pytest.mark.anyio

_numbers = itertools.count()


@pytest.fixture
def player(host: Any) -> Player:
    """A session that is not open yet."""
    return Player(host, f"session-{next(_numbers)}")


def output(outcome: Any) -> dict[str, Any]:
    assert isinstance(outcome, ToolOutcome), outcome
    value: dict[str, Any] = json.loads(outcome.body)
    return value


def kind(outcome: Any) -> str:
    assert isinstance(outcome, Failure), outcome
    return outcome.kind


async def test_offerings(host: Any) -> None:
    offered = host.offerings()
    assert list(offered) == ["workshop", "corridor"]
    assert offered["workshop"].name == "Workshop" or offered["workshop"].name == "workshop"
    assert {"echo", "add"} <= {spec["name"] for spec in json.loads(offered["workshop"].tools)}
    assert offered["corridor"].kind == "steps"


async def test_an_episode(player: Player) -> None:
    assert await player.open(ref=TaskRef("train", 3)) == Opened(
        player.sid, "workshop", task_key({"index": 3, "big": 10**4000 + 3})
    )
    prompt = await player.ask("prompt")
    assert json.loads(prompt.body)[0]["text"] == "task 3"
    assert "echo" in {spec["name"] for spec in json.loads((await player.ask("tools")).body)}
    first = await player.call("add", number=2)
    assert output(first)["blocks"][0]["text"] == "2"
    assert (first.reward, first.finished) == (2.0, False)
    last = await player.call("finish")
    assert (last.reward, last.finished) == (1.0, True)
    assert kind(await player.call("add", number=1)) == "episode_finished"
    assert await player.end() == Document(b"{}")
    assert kind(await player.call("add", number=1)) == "session_ended"
    assert kind(await player.open()) == "session_ended"


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -0.0, 1e300, 10**4299, -(2**64), "", "\u2028\x00 \U0001f600", [[]], {"": {"a": [1, 1.0, None]}}],
    ids=lambda value: f"{type(value).__name__}-{str(value)[:8]!r}",
)
async def test_values_cross_exactly(player: Player, value: Any) -> None:
    await player.open(task={"index": 0})
    metadata = output(await player.call("echo", value=value))["metadata"]
    assert metadata["value"] == value and type(metadata["value"]) is type(value)
    assert repr(metadata["value"]) == repr(value)


async def test_tasks(host: Any) -> None:
    async def ask(kind: str, *rest: Any, **named: Any) -> Any:
        return await host.task("workshop", TaskQuery(kind, *rest, **named))  # type: ignore[arg-type]

    assert [split["name"] for split in json.loads((await ask("splits")).body)] == ["train", "large"]
    assert (await ask("count", "train")).body == b"5"
    assert json.loads((await ask("get", "train", 4)).body) == {"index": 4, "big": 10**4000 + 4}
    assert len(json.loads((await ask("range", "train", start=-2)).body)) == 2
    assert json.loads((await ask("range", "train", start=3, stop=10**30)).body)[-1]["index"] == 4
    assert kind(await ask("get", "train", 10**30)) == "invalid_index"
    assert kind(await ask("count", "no")) == "unknown_split"
    assert kind(await host.task("nowhere", TaskQuery("splits"))) == "unknown_environment"


async def test_tasks_as_a_stream(host: Any) -> None:
    pieces = [piece async for piece in host.tasks("workshop", "large")]
    assert len(pieces) > 10
    tasks = json.loads(b"".join(pieces))
    assert [task["index"] for task in tasks] == list(range(256))
    assert [kind(piece) async for piece in host.tasks("workshop", "no")] == ["unknown_split"]
    assert [kind(piece) async for piece in host.tasks("nowhere", "no")] == ["unknown_environment"]


async def test_a_stream_that_nobody_reads_to_its_end(host: Any) -> None:
    stream = host.tasks("workshop", "large")
    assert (await anext(stream)).startswith(b"[")
    await stream.aclose()
    # the host goes on
    assert (await host.task("workshop", TaskQuery("count", "large"))).body == b"256"


async def test_a_stream_that_breaks_off_is_an_error(host: Any) -> None:
    stream = host.tasks("corridor", "train")
    assert await anext(stream) == b"[1"
    with pytest.raises(Exception, match="the disk is gone"):
        await anext(stream)


async def test_steps(player: Player) -> None:
    assert isinstance(await player.open("corridor"), Opened)
    start = Start(task={"n": 10**50}, seed=2**80, options={"length": 2}, secrets=Secrets({"a": "b"}))
    outcome = await player.ask("reset", start=start)
    assert outcome == StepOutcome(
        {"at": 0, "seed": 2**80, "task": {"n": 10**50}, "secrets": 1}, None, False, {"options": {"length": 2}}
    )
    outcome = await player.ask("step", input=1, timeout_s=2.5)
    assert outcome == StepOutcome({"at": 1, "limit": 2.5}, 0, False)
    assert (await player.ask("state")).body == b'{"at":1}'
    outcome = await player.ask("step", input=1)
    assert outcome.done is True and outcome.reward is True
    assert kind(await player.host.task("corridor", TaskQuery("splits"))) == "not_supported"


async def test_the_same_request_twice_joins(player: Player) -> None:
    first, again = await asyncio.gather(player.open(key="k"), player.open(key="k"))
    assert first == again == Opened(player.sid, "workshop")
    assert await player.open(key="k") == first
    assert kind(await player.open(key="other")) == "session_exists"
    assert kind(await player.open()) == "session_exists"


async def test_what_is_asked_together_keeps_its_order(player: Player) -> None:
    """A call that is sent right after the request that opens its session finds it; one sent after its end does not."""
    opened, first, second = await asyncio.gather(
        player.open(), _soon(lambda: player.call("add", number=1)), _soon(lambda: player.call("add", number=10))
    )
    assert isinstance(opened, Opened)
    assert [output(outcome)["blocks"][0]["text"] for outcome in (first, second)] == ["1", "11"]
    ended, late = await asyncio.gather(player.end(), _soon(lambda: player.call("add", number=100)))
    assert ended == Document(b"{}")
    assert kind(late) == "session_ended"


async def _soon(ask: Any) -> Any:
    return await ask()


async def test_failures(player: Player) -> None:
    assert kind(await player.call("echo")) == "unknown_session"
    assert kind(await player.open("nowhere")) == "unknown_environment"
    assert kind(await player.open(ref=TaskRef("no", 0))) == "unknown_split"
    await player.open()
    assert kind(await player.call("nothing")) == "unknown_tool"
    assert kind(await player.call("add", number="many")) == "invalid_input"
    assert kind(await player.ask("call", name="echo", call_id="x", env="corridor")) == "wrong_environment"
    other = Player(player.host, player.sid, Principal(key="other"))
    assert kind(await other.call("echo")) == "forbidden"
    assert kind(await other.end()) == "forbidden"
    assert kind(await player.host.touch(player.sid, other.principal)) == "forbidden"
    assert await player.host.touch(player.sid, TRAINER) is None
    assert kind(await player.host.touch("never", TRAINER)) == "unknown_session"
    assert (
        kind(await player.host.open("agents", None, Start(), Principal("agent", "k", player.sid), None)) == "forbidden"
    )


async def test_setup_that_fails_is_told_on_every_request(player: Player) -> None:
    assert isinstance(await player.open(task={"setup_error": "no glue"}), Opened)
    for _ in range(2):
        failed = await player.ask("prompt")
        assert kind(failed) == "setup_failed" and "no glue" in failed.detail


async def test_leaving_a_call_does_not_end_it(player: Player, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    await player.open()
    held = player.call("hold", call_id="mine", mode="run_or_attach", begun=str(begun), go=str(go))
    await until(begun.exists)
    held.cancel()
    with pytest.raises(asyncio.CancelledError):
        await held
    go.touch()
    again = await player.call("hold", call_id="mine", mode="run_or_attach", begun=str(begun), go=str(go))
    assert output(again)["blocks"][0]["text"] == "held 1"
    assert kind(await player.call("echo", call_id="mine", mode="run_or_attach")) == "call_conflict"
    assert kind(await player.call("hold", call_id="never", mode="attach")) == "unknown_call"


async def test_a_request_that_is_cut_off_lets_the_session_be(player: Player, tmp_path: Path) -> None:
    """Whoever sends /create and leaves finds the session there."""
    opening = asyncio.ensure_future(player.open(task={"index": 7}, key="k"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert await player.open(task={"index": 7}, key="k") == Opened(player.sid, "workshop", task_key({"index": 7}))
    assert json.loads((await player.ask("prompt")).body)[0]["text"] == "task 7"


async def test_cancelling_a_call(player: Player, tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    await player.open()
    held = player.call("hold", call_id="c", mode="run_or_attach", begun=str(begun), go=str(go))
    await until(begun.exists)
    assert json.loads((await player.host.cancel(player.sid, TRAINER, "c")).body) == {"cancelled": True}
    assert kind(await held) == "call_cancelled"
    assert json.loads((await player.host.cancel(player.sid, TRAINER, "c")).body) == {"cancelled": False}
    assert kind(await player.host.cancel(player.sid, TRAINER, "d")) == "unknown_call"
    assert kind(await player.host.cancel("never", TRAINER, "c")) == "unknown_session"


async def test_ending_cuts_what_runs_and_tears_down(player: Player, tmp_path: Path) -> None:
    begun, torn_down = tmp_path / "begun", tmp_path / "torn_down"
    await player.open(task={"torn_down": str(torn_down)})
    held = player.call("hold", begun=str(begun), go=str(tmp_path / "never"))
    await until(begun.exists)
    assert await player.end() == Document(b"{}")
    assert torn_down.exists()
    assert kind(await held) == "session_ended"
    assert await player.end() == Document(b"{}")


async def test_many_at_once(host: Any) -> None:
    players = [Player(host, f"many-{next(_numbers)}") for _ in range(100)]
    await asyncio.gather(*(player.open() for player in players))
    with anyio.fail_after(60):
        outcomes = await asyncio.gather(
            *(_soon(lambda p=p, n=n: p.call("echo", value=[p.sid, n])) for n in range(20) for p in players)
        )
    wanted = [[player.sid, number] for number in range(20) for player in players]
    assert [output(outcome)["metadata"]["value"] for outcome in outcomes] == wanted
    assert (await host.status())["calls"] == 0
    await asyncio.gather(*(player.end() for player in players))


async def test_twenty_megabytes_each_way(player: Player) -> None:
    await player.open()
    size = 20 << 20
    with anyio.fail_after(60):
        result = await player.call("big", size=size)
        assert output(result)["blocks"][0]["text"] == "é" * (size // 2)
        text = "x" * size
        assert output(await player.call("echo", value=text))["metadata"]["value"] == text


async def test_status(host: Any, player: Player, tmp_path: Path) -> None:
    before = (await host.status())["sessions"]
    begun, go = tmp_path / "begun", tmp_path / "go"
    await player.open()
    held = player.call("hold", begun=str(begun), go=str(go))
    await until(begun.exists)
    status = await host.status()
    assert status["ready"] is True and status["draining"] is False
    assert (status["sessions"], status["calls"]) == (before + 1, 1)
    assert status["environments"] == ["workshop", "corridor"]
    go.touch()
    await held
    assert (await host.status())["calls"] == 0


async def test_an_op_that_no_session_knows(player: Player) -> None:
    await player.open()
    assert kind(await player.host.perform(player.sid, TRAINER, Op("terminal"))) == "not_supported"
