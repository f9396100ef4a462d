"""An environment of steps, played by calling tools.

Opening is opening and resetting, and the first observation is the prompt. There is one tool, `step`, whose input is the
action; an action that is no JSON object is the field `action` of the input. Its result is the observation, with its
reward, and `finished` is `done`. A task that has a `seed` resets with it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Generator
from typing import Any

import msgspec

from ors.core.failures import Failure, failure
from ors.core.observation import blocks_of
from ors.core.ports import (
    Document,
    Offering,
    OfferingSpec,
    Plan,
    Script,
    Start,
    StepEpisode,
    StepOutcome,
    ToolEpisode,
    ToolOutcome,
    Work,
)
from ors.core.schema_check import SchemaCheck
from ors.core.turns import FINISHED, play
from ors.jsontext import JSONValueError, dump, load

__all__ = ["STEP", "StepToolEpisode", "StepsAsTools", "paid", "then"]

STEP = "step"
"""The tool that acts in a step environment."""


class StepsAsTools:
    """A step environment as an offering of tools."""

    def __init__(self, offering: Offering) -> None:
        self._offering = offering
        self.affinity = offering.affinity
        self.tasks = offering.tasks
        schema = load(offering.spec.action)
        self.wrapped = schema is not None and schema.get("type", "object") != "object"
        self.check = SchemaCheck(_wrap(schema) if self.wrapped else schema)
        description = "Act in the environment. The input is the action; the result is what is observed after it."
        tool = {"name": STEP, "description": description, "input_schema": self.check.schema}
        self.spec: OfferingSpec = msgspec.structs.replace(offering.spec, kind="tools", tools=dump([tool]))

    def episode(self, start: Start) -> ToolEpisode:
        return StepToolEpisode(self, self._offering.episode(start), start)


def _wrap(schema: dict[str, Any]) -> dict[str, Any]:
    """An object with one field `action`, for actions that are numbers, texts or lists."""
    inner = dict(schema)
    outer: dict[str, Any] = {key: inner.pop(key) for key in ("$schema", "$defs", "definitions") if key in inner}
    return outer | {
        "type": "object",
        "properties": {"action": inner},
        "required": ["action"],
        "additionalProperties": False,
    }


class StepToolEpisode:
    """An episode of steps as one of tools."""

    def __init__(self, offering: StepsAsTools, inner: Any, start: Start) -> None:
        self._offering = offering
        self._inner: StepEpisode = inner
        seed = start.task.get("seed") if isinstance(start.task, dict) else None
        known = isinstance(seed, int) and not isinstance(seed, bool) and start.seed is None
        self._start = msgspec.structs.replace(start, seed=seed) if known else start
        self._prompt: Document | Failure = failure("internal", "the environment was not reset")
        self._over = False

    def open(self) -> Script:
        start, self._start = self._start, Start()  # the secrets are the environment's own affair from here on
        opened = yield from play(self._inner.open())
        if isinstance(opened, Failure):
            return opened
        return (yield from play(then(self._inner.reset(start), self._begin)))

    def _begin(self, outcome: Any) -> Document | Failure:
        """What the first observation becomes."""
        if not isinstance(outcome, StepOutcome):
            return _no_step("reset", outcome)
        try:
            self._prompt = Document(dump(blocks_of(outcome.observation)))
        except JSONValueError as exc:
            return failure("prompt_failed", f"the first observation is no JSON: {exc}", ran="yes")
        self._over = outcome.done
        return Document(b"{}")

    def prompt(self) -> Plan:
        return self._prompt

    def tools(self) -> Plan:
        return Document(self._offering.spec.tools)

    def call(self, name: str, input: Any) -> Plan:
        if name != STEP:
            return failure("unknown_tool", f"'{name[:200]}' is not a valid tool; the only one is '{STEP}'")
        if self._over:
            return FINISHED
        return self._step(input)

    def _step(self, input: Any) -> Script:
        offering = self._offering
        # where code runs, since a large input takes its time; and before the step is planned, which reads the action
        wrong = yield Work(lambda: offering.check.describe(input), label=STEP)
        if wrong is not None:
            words = f"Tool input validation error: {wrong}"
            return wrong if isinstance(wrong, Failure) else failure("invalid_input", words)
        action = input["action"] if offering.wrapped else input
        return (yield from play(then(self._inner.step(action, None), _observed)))

    def close(self, why: str) -> Plan | None:
        return self._inner.close(why)


def _observed(outcome: Any) -> ToolOutcome | Failure:
    """What a step becomes as the result of a tool."""
    if not isinstance(outcome, StepOutcome):
        return _no_step(STEP, outcome)
    reward = paid(STEP, outcome.reward)
    if isinstance(reward, Failure):
        return reward
    metadata = outcome.metadata
    if metadata is not None and not isinstance(metadata, dict):
        metadata = {"metadata": metadata}
    output = {"blocks": None, "metadata": metadata, "reward": reward, "finished": bool(outcome.done)}
    try:
        output["blocks"] = blocks_of(outcome.observation)
        return ToolOutcome(dump(output), reward, bool(outcome.done))
    except JSONValueError as exc:
        return failure("bad_output", f"'{STEP}' returned what is no JSON: {exc}", ran="yes")


def paid(what: str, reward: Any) -> float | Failure | None:
    """A reward as tools have it; a failure where it is no finite number."""
    try:
        if reward is not None and not math.isfinite(reward):
            raise OverflowError
        return None if reward is None else float(reward)
    except (OverflowError, TypeError):
        words = f"'{what}' returned the reward {reward!r:.100}; a reward is a finite number or None"
        return failure("bad_output", words, ran="yes")


def _no_step(what: str, outcome: Any) -> Failure:
    if isinstance(outcome, Failure):
        return outcome
    return failure("bad_output", f"'{what}' returned {type(outcome).__name__}; expected an observation", ran="yes")


def then(plan: Plan, finish: Callable[[Any], Any]) -> Plan:
    """A plan and a conversion of what comes of it, which runs where its code runs."""
    if isinstance(plan, Generator):
        return _script_then(plan, finish)
    if not isinstance(plan, Work):
        return finish(plan)  # type: ignore[no-any-return]
    fn = plan.fn

    async def later(outcome: Any) -> Any:
        return finish(await outcome)

    def run() -> Any:
        outcome = fn()
        return later(outcome) if inspect.isawaitable(outcome) else finish(outcome)

    return Work(run, label=plan.label, is_async=plan.is_async, timeout=plan.timeout)


def _script_then(script: Script, finish: Callable[[Any], Any]) -> Script:
    outcome = yield from script
    return (yield Work(lambda: finish(outcome), label="result"))  # type: ignore[no-any-return]
