"""Rules of episodes of OpenEnv's environments: reset, step, state, close."""

from __future__ import annotations

import inspect
import typing
from typing import Any

from ors.conformance.inputs import make_input
from ors.testing.judge import Judge, said
from ors.testing.resources import Held, left_over

__all__ = ["check_openenv_episodes"]


async def check_openenv_episodes(judge: Judge) -> None:
    """What its server does with an instance: made, reset twice, stepped where an action can be made, closed."""
    judge.looked_at("constructor", "close")
    env = await judge.attempt("constructor", "__init__", judge.cls)
    if env is judge.FAILED:
        return
    await _close(judge, env)
    held = Held()
    if not await _episode(judge):
        return
    if left_over(held):
        held = Held()
        await _episode(judge)
        for rule, names in left_over(held).items():
            judge.complain(rule, f"after close there are still {', '.join(names[:5])}", "close")
    judge.looked_at("leak-threads", "leak-files", "leak-processes")


async def _episode(judge: Judge) -> bool:
    env = await judge.attempt("constructor", "__init__", judge.cls)
    if env is judge.FAILED:
        return False
    reset = _overridden(env, "reset_async") or env.reset
    whole = True
    for what in ("it", "the second time it"):
        observation = await judge.attempt("reset", "reset", reset, what=what)
        if observation is judge.FAILED:
            whole = False
            break
        _check_observation(judge, observation, "reset")
    if whole:
        await _step(judge, env)
        try:
            await judge.stage.run(lambda: env.state)
            judge.looked_at("state")
        except Exception as exc:
            judge.complain("state", f"it raises {said(exc)}", "state", exc)
    await _close(judge, env)
    return whole


async def _step(judge: Judge, env: Any) -> None:
    """One step with an action made from its schema, where the class says which actions it takes."""
    action_class = _action_class(judge.cls)
    made = make_input(action_class.model_json_schema()) if action_class is not None else None
    if action_class is None or made is None:
        judge.passed_over("step", "the class does not say which actions it takes: Environment[Act, Obs, State]")
        return
    judge.looked_at("step")
    step = _overridden(env, "step_async") or env.step
    try:
        observation = await judge.stage.run(step, action_class(**made))
    except Exception as exc:
        judge.complain("step", f"for {made} it raises {said(exc)}", "step", exc)
        return
    _check_observation(judge, observation, "step")


def _action_class(cls: type[Any]) -> Any:
    for base in (base for one in cls.__mro__ for base in getattr(one, "__orig_bases__", ())):
        for argument in typing.get_args(base)[:1]:
            if isinstance(argument, type) and callable(getattr(argument, "model_json_schema", None)):
                return argument
    return None


def _check_observation(judge: Judge, observation: Any, method: str) -> None:
    missing = [name for name in ("reward", "done") if not hasattr(observation, name)]
    if missing or not hasattr(observation, "model_dump"):
        judge.complain(method, f"it returns {type(observation).__name__}, which is no Observation", method)
        return
    reward = observation.reward
    judge.looked_at("reward")
    if isinstance(reward, float) and (reward != reward or abs(reward) == float("inf")):
        judge.complain("reward", f"the reward is {reward}", method)
    try:
        observation.model_dump_json()
    except ValueError as exc:
        judge.complain(method, f"the observation is no JSON: {said(exc)}", method)


def _overridden(env: Any, name: str) -> Any:
    method = getattr(env, name, None)
    base = next((base for base in reversed(type(env).__mro__) if name in vars(base)), None)
    written = (
        method is not None and base is not None and inspect.getattr_static(type(env), name) is not vars(base)[name]
    )
    return method if written else None


async def _close(judge: Judge, env: Any) -> None:
    close = getattr(env, "close", None)
    if callable(close):
        await judge.attempt("close", "close", close)
