"""Sessions over WebSocket: messages and their order."""

from __future__ import annotations

from typing import Any

from ors.conformance.judging import NotApplicable
from ors.conformance.openenv_place import OpenEnvPlace as Place
from ors.conformance.table import Area
from ors.conformance.websocket import Socket

SOCKET = Area("OPENENV", "SOCKET")
row = SOCKET.row

DOC = "openenv"
RESET = {"type": "reset", "data": {}}
STATE = {"type": "state"}


def observed(socket: Socket, message: dict[str, Any]) -> dict[str, Any]:
    """The data of an `observation` message. Raises Failed."""
    data = message.get("data")
    if message.get("type") != "observation" or not isinstance(data, dict):
        raise socket.failed(f"this is no observation: {str(message)[:200]}")
    if not isinstance(data.get("observation"), dict) or not isinstance(data.get("done"), bool) or "reward" not in data:
        raise socket.failed("an observation has the keys `observation`, `reward` and `done`")
    return data


def stated(socket: Socket, message: dict[str, Any]) -> dict[str, Any]:
    """The data of a `state` message. Raises Failed."""
    data = message.get("data")
    if message.get("type") != "state" or not isinstance(data, dict):
        raise socket.failed(f"this is no state: {str(message)[:200]}")
    return data


@row("must", DOC, "WS /ws", "`reset` is answered by an `observation`")
async def _socket_001(at: Place) -> None:
    async with at.socket() as socket:
        observed(socket, await socket.ask(RESET))
        observed(socket, await socket.ask({"type": "reset"}))


@row("must", DOC, "WS /ws", "`step` is answered by an `observation`, or by an `error` where the environment raises one")
async def _socket_002(at: Place) -> None:
    action = await at.an_action()
    async with at.socket() as socket:
        await socket.ask(RESET)
        message = await socket.ask({"type": "step", "data": action})
        if message.get("type") != "error":
            observed(socket, message)


@row("must", DOC, "WS /ws", "`state` is answered by the `state`")
async def _socket_003(at: Place) -> None:
    async with at.socket() as socket:
        await socket.ask(RESET)
        data = stated(socket, await socket.ask(STATE))
        if "step_count" not in data or "episode_id" not in data:
            raise socket.failed("the state has no `episode_id` or no `step_count`")


@row("must", DOC, "WS /ws", "`close` is answered by the end of the socket, with code 1000")
async def _socket_004(at: Place) -> None:
    async with at.socket() as socket:
        await socket.say({"type": "close"})
        code = await socket.ended()
        if code != 1000:
            raise socket.failed(f"the code is {code}, not 1000")


@row("must", DOC, "WS /ws", "messages are answered one by one, in their order")
async def _socket_005(at: Place) -> None:
    async with at.socket() as socket:
        for message in (RESET, STATE, RESET, STATE, STATE):
            await socket.say(message)
        kinds = [(await socket.hear()).get("type") for _ in range(5)]
        if kinds != ["observation", "state", "observation", "state", "state"]:
            raise socket.failed(f"the answers are {kinds}")


@row("must", DOC, "Observations", "`metadata` stands in the observation, and `reward` and `done` do not")
async def _socket_006(at: Place) -> None:
    async with at.socket() as socket:
        observation = observed(socket, await socket.ask(RESET))["observation"]
        if "metadata" not in observation or {"reward", "done"} & observation.keys():
            raise socket.failed(f"the observation has the keys {sorted(observation)}")


@row(
    "must",
    "task-api",
    "Selecting a task in `reset()`",
    "the keys of `reset` that the environment declares arrive, and others do no harm",
    probe=True,
)
async def _socket_007(at: Place) -> None:
    data = {"split": "test", "index": 12, "no_such_key": 1}
    async with at.socket() as socket:
        told = observed(socket, await socket.ask({"type": "reset", "data": data}))["observation"].get("told")
        if told != {"split": "test", "index": 12, "seed": None}:
            raise socket.failed(f"the environment was told {str(told)[:100]}")


@row("must", DOC, "WS /ws", "steps of a socket are steps of one episode, and `reset` begins another", probe=True)
async def _socket_008(at: Place) -> None:
    async with at.socket() as socket:
        for _ in range(2):
            await socket.ask(RESET)
            for count in (1, 2, 3):
                step = await socket.ask({"type": "step", "data": {"text": "a"}})
                found = observed(socket, step)["observation"].get("count")
                if found != count:
                    raise socket.failed(f"the step is number {found}, not {count}")


@row("must", DOC, "Observations", "rewards keep their type, and text every character", probe=True)
async def _socket_009(at: Place) -> None:
    async with at.socket() as socket:
        await socket.ask(RESET)
        for reward in (None, 0.5, 3, True, -1e300):
            text = f" ä\u2028\x00🙂\n{reward}"
            data = observed(
                socket, await socket.ask({"type": "step", "data": {"text": text, "reward": reward, "done": True}})
            )
            if data["reward"] != reward or type(data["reward"]) is not type(reward):
                raise socket.failed(f"the reward {reward!r} came as {data['reward']!r}")
            if data["observation"].get("text") != text or data["done"] is not True:
                raise socket.failed("the text or `done` came as another")


@row("must", DOC, "WS /ws", "two sockets are two sessions")
async def _socket_010(at: Place) -> None:
    async with at.socket() as one, at.socket() as other:
        answers = [await socket.ask({"type": "reset"}) for socket in (one, other)]
        for message in answers:
            data = message.get("data")
            if isinstance(data, dict) and data.get("code") == "CAPACITY_REACHED":
                raise NotApplicable("the server takes one session at a time")
        ids = [stated(socket, await socket.ask(STATE)).get("episode_id") for socket in (one, other)]
        if ids[0] is not None and ids[0] == ids[1]:
            raise other.failed(f"both are the episode {ids[0]!r}")


@row("must", DOC, "WS /ws", "a slow step of one session does not hold up another", probe=True)
async def _socket_011(at: Place) -> None:
    async with at.socket() as slow, at.socket() as quick:
        for socket in (slow, quick):
            await socket.ask(RESET)
        await slow.say({"type": "step", "data": {"text": "slow", "wait_s": 2}})
        for _ in range(3):
            observed(quick, await quick.ask({"type": "step", "data": {"text": "quick"}}))
        if slow.waiting:
            raise NotApplicable("the slow step had ended by then")
        observed(slow, await slow.hear())
