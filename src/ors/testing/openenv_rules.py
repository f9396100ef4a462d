"""Rules of episodes of OpenEnv's environments: reset, step, state, close."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

from ors.adapters.openenv_environment import offering_of
from ors.conformance.inputs import make_input
from ors.testing.chance import seed_generators
from ors.testing.class_state import ClassState
from ors.testing.judge import Judge, said
from ors.testing.resources import Held, left_over
from ors.testing.task_rules import Tasks, same

__all__ = ["check_openenv_episodes"]

_METHODS = ("list_splits", "list_tasks", "num_tasks", "get_task", "get_task_range")
_STEPS = 40
_END_S = 0.01


async def check_openenv_episodes(judge: Judge, tasks: Tasks) -> None:
    """What its server does with an instance: made, reset twice, stepped to the end if there is one, closed."""
    judge.looked_at("constructor", "close")
    env = await judge.attempt("constructor", "__init__", judge.make)
    if env is judge.FAILED:
        return
    await _close(judge, env)
    place = _check_task_methods(judge, tasks)
    if not await _episode(judge, place):
        return
    await _leaks(judge, place)
    await _beginnings(judge, place)
    await _two_at_once(judge, place)


def _check_task_methods(judge: Judge, tasks: Tasks) -> dict[str, Any]:
    """The guide's checklist, as far as it is about all of the methods; returns what `reset` is told of a task."""
    if not (there := [method for method in _METHODS if tasks.defines(method)]):
        return {}
    judge.looked_at("tasks-partly", "reset-task")
    if missing := [method for method in _METHODS if method not in there]:
        judge.complain("tasks-partly", f"it has no {', '.join(missing)}", there[0])
    name, takes = _reset_of(judge.cls)
    if takes is not None and not {"split", "index"} <= takes and not {"task_spec", "task"} & takes:
        shown = ", ".join(sorted(takes)) or "nothing"
        judge.complain("reset-task", f"it takes {shown}, so nobody can choose a task", name)
        return {}
    split, index, _ = tasks.examples[0] if tasks.examples else ("", 0, None)
    place = {"split": split, "index": index} if tasks.examples else {}
    return {key: value for key, value in place.items() if takes is None or key in takes}


def _reset_of(cls: type[Any]) -> tuple[str, set[str] | None]:
    """The method that resets, and the names that it takes; None for any."""
    name = "reset_async" if _is_overridden(cls, "reset_async") else "reset"
    try:
        parameters = list(inspect.signature(getattr(cls, name)).parameters.values())[1:]
    except (TypeError, ValueError):
        return name, None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return name, None
    return name, {parameter.name for parameter in parameters}


class _Episode:
    """An instance that is reset and acted on; `seen` is what came of each."""

    def __init__(self, judge: Judge, place: Mapping[str, Any], name: str = "one") -> None:
        self.judge = judge
        self._name, self._steps = name, 0
        self.place = place
        self.env: Any = None
        self.seen: list[Any] = []
        self.done = False

    def _seed(self) -> None:
        self._steps += 1
        seed_generators(f"{self._name} {self._steps}")

    async def open(self) -> bool:
        """The constructor."""
        self._seed()
        self.env = await self.judge.attempt("constructor", "__init__", self.judge.make)
        return self.env is not self.judge.FAILED

    async def reset(self, what: str = "it") -> Any:
        """`reset`, with a seed if it takes one. What it observes, or `Judge.FAILED`."""
        name, takes = _reset_of(self.judge.cls)
        given = {"seed": 7, **self.place}
        given = {key: value for key, value in given.items() if takes is None or key in takes}
        self._seed()
        observation = await self.judge.attempt("reset", name, lambda: getattr(self.env, name)(**given), what=what)
        if observation is not self.judge.FAILED:
            self._note(observation, name)
        return observation

    async def step(self, rule: str = "step", what: str = "") -> bool:
        """One step with an action made from its schema. Whether that went well."""
        judge = self.judge
        action_class = judge.action_cls or _action_class(judge.cls)
        made = make_input(action_class.model_json_schema()) if action_class is not None else None
        if action_class is None or made is None:
            judge.passed_over(
                "step", "the class does not say which actions it takes: Environment[Act, Obs, State], or action_cls="
            )
            return False
        judge.looked_at("step")
        name = "step_async" if _is_overridden(judge.cls, "step_async") else "step"
        self._seed()
        try:
            observation = await judge.stage.run(getattr(self.env, name), action_class(**made))
        except Exception as exc:
            judge.complain(rule, f"{what or f'for {made} it'} raises {said(exc)}", name, exc)
            return False
        self._note(observation, name)
        return True

    def _note(self, observation: Any, method: str) -> None:
        _check_observation(self.judge, observation, method)
        self.seen.append(observation)
        self.done = bool(getattr(observation, "done", False))


async def _episode(judge: Judge, place: Mapping[str, Any]) -> bool:
    episode = _Episode(judge, place)
    if not await episode.open():
        return False
    name, _ = _reset_of(judge.cls)
    begun = await episode.reset() is not judge.FAILED
    whole = begun and await episode.reset("the second time it") is not judge.FAILED
    if whole:
        judge.looked_at("reset-done")
        if episode.done:
            judge.complain("reset-done", "done is true before the first step", name)
        await _steps(judge, episode)
        try:
            await judge.stage.run(lambda: episode.env.state)
            judge.looked_at("state")
        except Exception as exc:
            judge.complain("state", f"it raises {said(exc)}", "state", exc)
    await _close(judge, episode.env)
    return whole


async def _steps(judge: Judge, episode: _Episode) -> None:
    """Steps to the end, if there is one, and one more."""
    for _ in range(_STEPS):
        if episode.done:
            break
        if not await episode.step():
            return
    if not episode.done:
        return
    judge.looked_at("step-after-done")
    if await episode.step("step-after-done", "after the end it"):
        reward = getattr(episode.seen[-1], "reward", None)
        if isinstance(reward, (int, float)) and reward > 0:
            name = "step_async" if _is_overridden(judge.cls, "step_async") else "step"
            judge.complain("step-after-done", f"after the end it pays {reward}", name)


async def _leaks(judge: Judge, place: Mapping[str, Any]) -> None:
    judge.looked_at("leak-threads", "leak-files", "leak-processes", "leak-tasks")
    found: list[dict[str, list[str]]] = []
    for _ in range(2):
        held, running = Held(), asyncio.all_tasks()
        await _episode(judge, place)
        await asyncio.sleep(_END_S)
        found.append(left_over(held))
        if begun := asyncio.all_tasks() - running:
            found[-1]["leak-tasks"] = sorted(one.get_name() for one in begun)
        if not found[-1]:
            return
    for rule in found[0].keys() & found[1].keys():
        written = callable(getattr(judge.cls, "close", None)) and _is_overridden(judge.cls, "close")
        names = ", ".join(found[1][rule][:5])
        judge.complain(rule, f"after close there are still {names}", "close" if written else "__init__")


async def _beginnings(judge: Judge, place: Mapping[str, Any]) -> None:
    """How episodes begin that are the same: on one instance before and after some steps, and on another one."""
    judge.looked_at("reset-again", "reset-seed")
    name, takes = _reset_of(judge.cls)
    if takes is None or "seed" in takes:
        place = {key: value for key, value in place.items() if key != "index"}  # the seed is to choose
    begun: list[Any] = []
    for name_of in ("one", "another"):
        episode = _Episode(judge, place, name_of)
        if not await episode.open():
            return
        for _ in range(2):
            begun.append(_shown(await episode.reset()))
            if not episode.done:
                await episode.step()
        await _close(judge, episode.env)
    if same(begun[0], begun[2]) and not same(begun[0], begun[1]):
        words = f"after some steps it begins with {begun[1]!r:.100}, and with {begun[0]!r:.100} before"
        judge.complain("reset-again", words, name)
    elif not all(same(begun[0], other) for other in begun):
        how = "it takes no seed, and" if takes is not None and "seed" not in takes else "with the same seed"
        judge.complain("reset-seed", f"{how} it begins with {begun[0]!r:.80}, then with {begun[2]!r:.80}", name)


async def _two_at_once(judge: Judge, place: Mapping[str, Any]) -> None:
    """Two instances at once, unless the class says that it is written for one."""
    alone = next(
        (
            not vars(base)["SUPPORTS_CONCURRENT_SESSIONS"]
            for base in judge.cls.__mro__
            if "SUPPORTS_CONCURRENT_SESSIONS" in vars(base) and base.__name__ != "Environment"
        ),
        False,
    )
    if alone:
        judge.passed_over("shared-state", "the class is written for one session at a time")
        return
    transcripts, state = [], ClassState(judge.cls)
    for beside in (False, False, True):
        one, other = _Episode(judge, place), _Episode(judge, place, "other")
        if not await one.open() or (beside and not await other.open()):
            return
        await one.reset()
        if beside:
            await other.reset()
        for _ in range(3):
            for episode in (other, one) if beside else (one,):
                if not episode.done:
                    await episode.step()
        for episode in (one, other) if beside else (one,):
            await _close(judge, episode.env)
        transcripts.append([_shown(seen) for seen in one.seen])
    if not same(transcripts[0], transcripts[1]):
        judge.passed_over("shared-state", "an episode is not played twice in the same way, so nothing can be told")
        return
    judge.looked_at("shared-state")
    if not same(transcripts[0], transcripts[2]):
        changed = state.changed()
        where = f"the class's {changed[0]!r} " if changed else "something that they share "
        words = f"with another session beside it an episode is played in another way: {where}is changed by both"
        judge.complain("shared-state", words, changed[0] if changed else "")


def _shown(observation: Any) -> Any:
    return observation.model_dump(exclude={"metadata"}) if hasattr(observation, "model_dump") else repr(observation)


def _action_class(cls: type[Any]) -> Any:
    """The model of its actions, by the types of the class or the annotation of `step`; None where that is not said."""
    try:
        return offering_of(cls, list_tools=False).action_model
    except Exception:
        return None


def _check_observation(judge: Judge, observation: Any, method: str) -> None:
    rule = method.removesuffix("_async")
    missing = [name for name in ("reward", "done") if not hasattr(observation, name)]
    if missing or not hasattr(observation, "model_dump"):
        judge.complain(rule, f"it returns {type(observation).__name__}, which is no Observation", method)
        return
    reward = observation.reward
    judge.looked_at("reward")
    if isinstance(reward, float) and (reward != reward or abs(reward) == float("inf")):
        judge.complain("reward", f"the reward is {reward}", method)
    try:
        observation.model_dump_json()
    except ValueError as exc:
        judge.complain(rule, f"the observation is no JSON: {said(exc)}", method)


def _is_overridden(cls: type[Any], name: str) -> bool:
    base = next((base for base in reversed(cls.__mro__) if name in vars(base)), None)
    return base is not None and inspect.getattr_static(cls, name) is not vars(base)[name]


async def _close(judge: Judge, env: Any) -> None:
    close = getattr(env, "close", None)
    if callable(close):
        await judge.attempt("close", "close", close)
