"""OpenEnv environments of every shape, played on a host."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from openenv_authoring.play import SHAPES, Least, offering, staged
from ors.adapters.openenv_environment import OpenEnvOffering, offering_of
from ors.core.failures import Failure
from ors.core.ports import Start, TaskRef
from ors.openenv import Action, Observation
from served import until

pytestmark = pytest.mark.anyio


async def test_a_game_is_played_and_reset() -> None:
    async with staged(offering("columns")) as stage:
        game = await stage.open()
        first = await game.reset()
        assert first == {
            "observation": {"metadata": {"turn": 1}, "board": [[0] * 3] * 2, "legal_actions": [0, 1, 2]},
            "reward": 0.0,
            "done": False,
        }
        after = await game.step(column=2)
        assert after["observation"]["board"] == [[0, 0, 1], [0, 0, 0]]
        assert await game.state() == {
            "episode_id": (await game.state())["episode_id"],
            "step_count": 1,
            "board": [[0, 0, 1], [0, 0, 0]],
            "next_player": -1,
        }
        last: Any = None
        for column in (2, 1, 1, 0, 0):
            last = await game.step(column=column)
        assert last["done"] is True and last["reward"] == 1 and type(last["reward"]) is int
        assert (await game.step(column=0)).detail == "Invalid action"
        assert (await game.reset())["observation"] == first["observation"]


async def test_an_action_is_checked_by_the_model_before_the_environment_sees_it() -> None:
    async with staged(offering("ladder")) as stage:
        ladder = await stage.open()
        await ladder.reset()
        wrong = await ladder.step(action="LEFT")
        assert isinstance(wrong, Failure)
        assert (wrong.kind, wrong.ran, wrong.status) == ("invalid_input", "no", 422)
        assert wrong.errors is not None
        assert [(error["type"], error["loc"]) for error in wrong.errors] == [("enum", ["action"])]
        assert all("input" not in error for error in wrong.errors)
        missing = await ladder.step(way="UP")
        assert [error["loc"] for error in missing.errors] == [["action"], ["way"]]
        assert (await ladder.state())["step_count"] == 0
        assert (await ladder.step(action="UP")) == {
            "observation": {"metadata": {}, "y": 1, "message": "UP"},
            "reward": -0.1,
            "done": False,
        }
        assert (await ladder.step(action="UP"))["done"] is True


async def test_an_error_of_a_validator_is_one_of_the_action() -> None:
    class Even(Action):
        number: int

        def model_post_init(self, _: Any) -> None:
            if self.number % 2:
                raise ValueError("odd")

    class Counts(Least):
        def step(self, action: Even) -> Any:
            return Observation(reward=action.number)

    async with staged(OpenEnvOffering(Counts, Even, Observation)) as stage:
        session = await stage.open()
        await session.reset()
        wrong = await session.step(number=3)
        assert wrong.kind == "invalid_input" and "odd" in wrong.detail
        assert (await session.step(number=2))["reward"] == 2


async def test_reset_gets_the_keys_that_it_takes_and_the_others_are_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ors.server"):
        async with staged(offering("echo")) as stage:
            echo = await stage.open()
            seen = await echo.reset(seed=-1, episode_id="e" * 300, topic="x", topik="y")
            assert seen["observation"]["seen"] == {"seed": -1, "episode_id": "e" * 300, "topic": "x"}
            assert seen["notes"] == {"dropped": ["topik"], "accepted": ["episode_id", "seed", "topic"]}
            assert "notes" not in await echo.reset(seed=None)
            assert (await echo.reset(topik=1, other=2))["notes"]["dropped"] == ["other", "topik"]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2 and "'topik'" in told[0] and "'other', 'topik'" in told[1]


async def test_an_environment_that_takes_no_seed_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ors.server"):
        async with staged(offering("columns")) as stage:
            for _ in range(3):
                game = await stage.open()
                assert (await game.reset(seed=1234))["notes"]["dropped"] == ["seed"]
    assert [record.getMessage().count("'seed'") for record in caplog.records] == [1]


async def test_strict_reset_refuses_what_is_not_taken() -> None:
    async with staged(offering("echo", strict_reset=True)) as stage:
        echo = await stage.open()
        refused = await echo.reset(topik="y")
        assert (refused.kind, refused.status, refused.ran) == ("invalid_request", 422, "no")
        assert "'topik'" in refused.detail and "episode_id, seed, topic" in refused.detail
        assert (await echo.reset(topic="y"))["observation"]["seen"]["topic"] == "y"


async def test_rewards_keep_their_type() -> None:
    async with staged(offering("echo")) as stage:
        echo = await stage.open()
        await echo.reset()
        for message, reward in (("true", True), ("three", 3), ("half", 0.5), ("none", None), ("other", 0.0)):
            got = (await echo.step(message=message))["reward"]
            assert got == reward and type(got) is type(reward)


async def test_values_become_json_as_openenv_has_it() -> None:
    async with staged(offering("echo")) as stage:
        echo = await stage.open()
        await echo.reset()
        assert (await echo.step(message="nan"))["observation"]["seen"] == {"value": None, "values": [None, 1.5]}
        odd = (await echo.step(message="odd"))["observation"]["seen"]
        assert odd == {"set": [1], "tuple": [1, 2], "way": "UP", "raw": "bytes"}


async def test_what_the_environment_raises_is_told_in_its_words() -> None:
    async with staged(offering("echo")) as stage:
        echo = await stage.open()
        await echo.reset()
        broke = await echo.step(message="raise")
        assert (broke.kind, broke.detail, broke.ran) == ("tool_failed", "it broke", "yes")
        # a model that the environment itself fills wrongly is not the client's fault
        assert (await echo.step(message="invalid")).kind == "tool_failed"
        assert (await echo.state())["step_count"] == 2


async def test_transforms_and_no_super_init() -> None:
    async with staged(offering("coder")) as stage:
        coder = await stage.open()
        first = await coder.reset()
        assert first["observation"]["metadata"] == {"noted": True} and first["reward"] == 1
        assert (await coder.step(code="print(1)"))["reward"] == 0
        assert await coder.state() == {"episode_id": "code", "step_count": 1}


async def test_asynchronous_methods_and_a_rubric() -> None:
    async with staged(offering("judged")) as stage:
        judged = await stage.open()
        assert (await judged.reset(seed=4))["observation"]["stdout"] == "seed 4"
        rewards = [(await judged.step(code="x"))["reward"] for _ in range(3)]
        assert rewards == [0.0, 0.0, 1.0]
        assert await judged.state() == {"episode_id": None, "step_count": 3, "custom": [1, 2]}


async def test_a_session_keeps_to_its_thread_from_the_constructor_to_the_end() -> None:
    SHAPES.Bound.seen.clear()
    async with staged(offering("bound")) as stage:
        sessions = [await stage.open() for _ in range(4)]
        for _ in range(3):
            for session in sessions:
                await session.reset()
                assert isinstance(await session.step(message=""), dict)
                assert isinstance(await session.state(), dict)
        for session in sessions:
            await session.end()
    assert sorted({what for what, _ in SHAPES.Bound.seen}) == ["close", "init", "reset", "state", "step"]
    assert len({thread for what, thread in SHAPES.Bound.seen if what == "init"}) == 4
    assert threading.get_ident() not in {thread for _, thread in SHAPES.Bound.seen}


async def test_what_cannot_be_made_is_told() -> None:
    def broken() -> Any:
        raise OSError("no display")

    def empty() -> Any:
        return None

    for factory, words in ((broken, "no display"), (empty, "no environment")):
        async with staged(OpenEnvOffering(factory, Action, Observation)) as stage:
            session = await stage.open()
            for _ in range(2):
                failed = await session.reset()
                assert failed.kind == "setup_failed" and words in failed.detail


async def test_asynchronous_factories_and_plain_asynchronous_methods_work() -> None:
    class Plain:
        """No class of anybody's."""

        closed = 0

        async def reset(self, seed: int = 0) -> Observation:
            return Observation(metadata={"seed": seed})

        async def step(self, action: Action) -> Observation:
            return Observation(reward=1)

        @property
        def state(self) -> dict[str, int]:
            return {"anything": 1}

        async def close(self) -> None:
            Plain.closed += 1

    async def make() -> Plain:
        return Plain()

    async with staged(OpenEnvOffering(make, Action, Observation)) as stage:
        session = await stage.open()
        assert (await session.reset(seed=3))["observation"] == {"metadata": {"seed": 3}}
        assert (await session.step())["reward"] == 1
        assert await session.state() == {"anything": 1}
        await session.end()
    assert Plain.closed == 1


async def test_a_reward_that_is_no_finite_number_is_an_error() -> None:
    class Pays(Action):
        reward: str

    class Bank(Least):
        def step(self, action: Pays) -> Any:
            return Observation.model_construct(reward=eval(action.reward), done=False, metadata={})

    async with staged(OpenEnvOffering(Bank, Pays, Observation)) as stage:
        session = await stage.open()
        await session.reset()
        for reward in ("float('nan')", "float('-inf')", "'much'", "[1]"):
            wrong = await session.step(reward=reward)
            assert wrong.kind == "bad_output" and "reward" in wrong.detail
        assert (await session.step(reward="10**400"))["reward"] == 10**400


async def test_what_is_no_observation_is_an_error_and_the_session_lives_on() -> None:
    class Returns(Least):
        def step(self, action: Action) -> Any:
            return self.given.pop(0)

        given: list[Any] = [{"a": 1}, None, Observation(metadata={"o": object()}), Observation(reward=2)]

    async with staged(offering_of(Returns, observation_cls=Observation)) as stage:
        session = await stage.open()
        await session.reset()
        for words in ("returned dict", "returned NoneType", "unknown type"):
            wrong = await session.step()
            assert wrong.kind == "bad_output" and words in wrong.detail
        assert (await session.step())["reward"] == 2


async def test_arrays_are_lists() -> None:
    class Array:
        """As numpy's are."""

        def tolist(self) -> list[float]:
            return [1.0, 2.0]

    class Sees(Least):
        def step(self, action: Action) -> Any:
            return Observation(metadata={"array": Array()})

    async with staged(offering_of(Sees, observation_cls=Observation)) as stage:
        session = await stage.open()
        await session.reset()
        assert (await session.step())["observation"]["metadata"] == {"array": [1.0, 2.0]}


async def test_a_step_may_take_as_long_as_it_is_given() -> None:
    release = threading.Event()
    told: list[Any] = []

    class Slow(Least):
        def step(self, action: Action, timeout_s: float | None = None) -> Any:
            told.append(timeout_s)
            if len(told) == 1:
                release.wait(20)
            return Observation(reward=len(told))

    async with staged(offering_of(Slow, observation_cls=Observation)) as stage:
        session = await stage.open()
        await session.reset()
        late = session.ask("step", input={}, timeout_s=0.1)
        assert (await late).kind == "tool_timeout"
        release.set()
        assert (await session.step())["reward"] == 2
    assert told == [0.1, None]


async def test_what_else_a_step_is_told_it_gets_where_it_takes_it() -> None:
    class Told(Least):
        def step(self, action: Action, render: bool = False) -> Any:
            return Observation(metadata={"render": render})

    async with staged(offering_of(Told, observation_cls=Observation)) as stage:
        session = await stage.open()
        await session.reset()
        more = Start(options={"render": True, "request_id": "r", "action": "no"})
        seen = await session.ask("step", input={}, timeout_s=5, start=more)
        assert seen["observation"] == {"metadata": {"render": True}}


async def test_played_by_tools_the_first_observation_is_the_prompt_and_seeds_are_tasks() -> None:
    async with staged(offering("echo")) as stage:
        assert [split["name"] for split in await stage.query("splits")] == ["train", "test"]
        session = await stage.open(kind="tools", ref=TaskRef("test", 3))
        seed = (await stage.query("get", "test", 3))["seed"]
        prompt = await session.ask("prompt")
        assert f'"seed":{seed}' in prompt[0]["text"] and "metadata" not in prompt[0]["text"]
        called = await session.ask("call", call_id="c", name="step", input={"message": "half"})
        assert called.reward == 0.5
        wrong = await session.ask("call", call_id="d", name="step", input={"message": "nan"})
        assert wrong.kind == "bad_output" and "$.seen.value" in wrong.detail


async def test_what_is_made_after_its_session_has_ended_is_closed_all_the_same() -> None:
    inside, go_on = threading.Event(), threading.Event()
    closed: list[int] = []

    class Slow(Least):
        def __init__(self) -> None:
            inside.set()
            try:
                go_on.wait(20)
            except BaseException:  # it will not be cut
                pass

        def close(self) -> None:
            closed.append(threading.get_ident())

    async with staged(OpenEnvOffering(Slow, Action, Observation)) as stage:
        session = await stage.open()
        while not inside.is_set():
            await asyncio.sleep(0.005)
        ending = asyncio.ensure_future(session.end())
        await asyncio.sleep(0)
        go_on.set()
        await ending
        await until(lambda: closed)
    assert len(closed) == 1


async def test_an_environment_that_does_not_close_holds_nobody_up() -> None:
    class Stuck(Least):
        def close(self) -> None:
            raise RuntimeError("no")

    async with staged(OpenEnvOffering(Stuck, Action, Observation)) as stage:
        session = await stage.open()
        await session.reset()
        await session.end()
        assert (await session.reset()).kind == "session_ended"
