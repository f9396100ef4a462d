"""What is known of an OpenEnv environment before it is played: its name, its models, its threads, its limits."""

from __future__ import annotations

import functools
import threading
from typing import Any

import pytest

from openenv_authoring.play import SHAPES, Least, offering, staged
from ors import AuthoringError
from ors.adapters.openenv_environment import OpenEnvOffering, is_openenv, offering_of
from ors.openenv import Action, ConcurrencyConfigurationError, Environment, Observation

pytestmark = pytest.mark.anyio


async def test_all_sessions_of_a_class_that_asks_for_it_share_a_thread_also_when_a_function_makes_them() -> None:
    threads: list[int] = []

    class Single(Least):
        REQUIRES_SINGLE_THREAD_EXECUTOR = True

        def __init__(self) -> None:
            threads.append(threading.get_ident())

        def step(self, action: Action) -> Observation:
            threads.append(threading.get_ident())
            return Observation()

        def list_splits(self) -> Any:
            threads.append(threading.get_ident())
            return ["train"]

        def close(self) -> None:
            threads.append(threading.get_ident())

    def make() -> Any:
        return Single()

    for factory in (Single, make, functools.partial(make)):
        made = OpenEnvOffering(factory, Action, Observation)
        assert made.affinity == "class"
        threads.clear()
        async with staged(made) as stage:
            for session in [await stage.open() for _ in range(3)]:
                await session.reset()
                await session.step()
                await session.end()
            assert await stage.query("splits") == [{"name": "train", "type": "train"}]
        assert len(threads) == 3 * 3 + 3 and len(set(threads)) == 1


async def test_a_class_can_free_itself_of_its_thread() -> None:
    class Free(Least):
        thread_affinity = "any"

    assert OpenEnvOffering(Free, Action, Observation).affinity == "any"

    class Wrong(Least):
        thread_affinity = "process"

    with pytest.raises(AuthoringError, match="thread_affinity"):
        OpenEnvOffering(Wrong, Action, Observation)


def test_names_come_from_what_makes_the_environment() -> None:
    assert offering("columns").spec.name == "Columns"
    assert offering("ladder").spec.name == "make_ladder"
    assert OpenEnvOffering(functools.partial(Least), Action, Observation).spec.name == "Least"
    assert offering("ladder", name="ladder_env").spec.name == "ladder_env"


def test_an_instance_is_no_factory() -> None:
    with pytest.raises(TypeError, match="pass the class Least"):
        OpenEnvOffering(Least(), Action, Observation)  # type: ignore[arg-type]


def test_how_many_sessions_there_may_be() -> None:
    class Alone(Least):
        SUPPORTS_CONCURRENT_SESSIONS = False

    class AlsoAlone(Alone):
        pass

    assert OpenEnvOffering(Least, Action, Observation).max_sessions is None
    assert OpenEnvOffering(Least, Action, Observation, max_concurrent=7).max_sessions == 7
    assert offering("columns", max_concurrent=64).max_sessions == 64
    for cls in (Alone, AlsoAlone):
        assert OpenEnvOffering(cls, Action, Observation).max_sessions == 1
        assert OpenEnvOffering(cls, Action, Observation, max_concurrent=1).max_sessions == 1
        with pytest.raises(ConcurrencyConfigurationError, match=cls.__name__):
            OpenEnvOffering(lambda cls=cls: cls(), Action, Observation, max_concurrent=2)
    with pytest.raises(ValueError, match="at least 1"):
        OpenEnvOffering(Least, Action, Observation, max_concurrent=0)


def test_models_come_from_types_or_annotations() -> None:
    class Typed(Environment[SHAPES.Drop, SHAPES.Board, SHAPES.GameState]):
        def reset(self, **_: Any) -> Any: ...
        def step(self, action: Any, **_: Any) -> Any: ...

        @property
        def state(self) -> Any: ...

    class Annotated(Least):
        def step(self, action: SHAPES.Say) -> SHAPES.Echoed: ...

    typed, annotated = offering_of(Typed), offering_of(Annotated)
    assert (typed.action_model, typed.observation_model) == (SHAPES.Drop, SHAPES.Board)
    assert (annotated.action_model, annotated.observation_model) == (SHAPES.Say, SHAPES.Echoed)
    with pytest.raises(AuthoringError, match="observations of Least"):
        offering_of(Least, Action)
    with pytest.raises(AuthoringError, match="no model"):
        OpenEnvOffering(Least, dict, Observation)


def test_what_is_said_of_an_environment_beforehand() -> None:
    columns, echo = offering("columns"), offering("echo")
    assert columns.metadata() == {
        "name": "Columns",
        "description": "Columns environment",
        "readme_content": None,
        "version": "1.0.0",
        "author": None,
        "documentation_url": None,
    }
    assert echo.metadata()["name"] == "Echo!"
    schemas = columns.schemas()
    assert schemas["action"]["required"] == ["column"]
    assert schemas["observation"] == schemas["reset_observation"]
    assert set(schemas["observation"]["properties"]) == {"done", "reward", "metadata", "board", "legal_actions"}
    assert is_openenv(SHAPES.Columns) and is_openenv(Least) and not is_openenv(Least()) and not is_openenv(int)
