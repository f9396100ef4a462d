"""The check of an environment of steps, as OpenEnv's are: its class, its tasks, then episodes by reset and step."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from ors.adapters.openenv.factory import Shape
from ors.adapters.openenv.wire import observed, read_action, state_of
from ors.adapters.openenv_environment import OpenEnvOffering, offering_of
from ors.conformance.inputs import make_input
from ors.core.failures import Failure
from ors.core.ports import StepOutcome
from ors.errors import AuthoringError
from ors.jsontext import dump
from ors.testing.apart import check_apart
from ors.testing.episodes import seed_generators
from ors.testing.inspection import Inspection, words_of
from ors.testing.order import check_order
from ors.testing.round_trip import canonical
from ors.testing.sampling import spread
from ors.testing.stage import Outcome
from ors.testing.tasks import METHODS, Found, check_tasks
from ors.testing.tool_environments import check_name

__all__ = ["check_step_environment"]

_STEPS = 40
_PLACE_OF_TASK = ("split", "index")


def check_step_environment(look: Inspection) -> None:
    """Check all that there is to check of a class of steps."""
    look.seen("class-served")
    outcome = look.run("", lambda: offering_of(look.cls, list_tools=False, **look.options.models))
    if outcome.error is not None:
        said = str(outcome.error) if isinstance(outcome.error, AuthoringError) else words_of(outcome.error)
        message, _, mend = said.partition(": ")
        look.otherwise = "the class cannot be served"
        look.complain("class-served", message, "step" if "models" in said or "model of" in said else "", mend=mend)
        return
    offering: OpenEnvOffering = outcome.value
    check_name(look, offering.name, "")
    found = _check_tasks(look, offering) if offering.task_methods else []
    if not offering.task_methods:
        look.unseen("it has no task methods", *_OF_TASKS)
    _Play(look, offering, found).all()


_OF_TASKS = (
    *(
        "split-list",
        "split-overlap",
        "task-fresh",
        "task-methods",
        "task-fails",
        "task-same",
        "task-count",
        "task-index",
    ),
    *("task-agree", "task-end", "task-range", "task-json", "task-round-trip", "task-order", "reset-selects"),
)


def _check_tasks(look: Inspection, offering: OpenEnvOffering) -> list[Found]:
    defined = offering.task_methods
    look.seen("task-methods")
    if missing := [name for name in METHODS if name not in defined]:
        words = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not there"
        look.complain("task-methods", words, sorted(defined)[0], mend=f"define {', '.join(missing)}, or raise in it")
    shape = offering.shape(look.cls)
    look.seen("reset-selects")
    taken = {"task_spec", "task", *_PLACE_OF_TASK} & set(shape.reset_keywords)
    if shape.reset is not None and not (set(_PLACE_OF_TASK) <= taken or taken & {"task_spec", "task"}):
        words = f"reset takes {', '.join(shape.reset_keywords) or 'nothing'}: nobody can choose a task"
        look.complain("reset-selects", words, shape.reset_method)
    if "list_splits" not in defined:
        look.unseen("there is no list_splits", *_OF_TASKS)
        return []

    def call(method: str, *args: Any) -> Outcome:
        def fresh() -> Any:
            env = offering.factory.make()
            return _then_close(env, getattr(env, method)(*args))

        return look.run(method, fresh, watch=True)

    found = check_tasks(look, call, offering.tasks, defined)
    if look.wanted("task-order"):
        check_order(look, found, defined)
    return found


def _then_close(env: Any, value: Any) -> Any:
    """What a task method gave; the instance is closed, as a server does."""
    if inspect.isawaitable(value):

        async def later() -> Any:
            answer = await value
            closing = _close(env)
            if inspect.isawaitable(closing):
                await closing
            return answer

        return later()
    closing = _close(env)
    if inspect.isawaitable(closing):

        async def closed() -> Any:
            await closing
            return value

        return closed()
    return value


def _close(env: Any) -> Any:
    close = getattr(env, "close", None)
    return close() if callable(close) else None


class _Episode:
    """An instance that is reset and acted on; what comes of each is in `transcript`."""

    def __init__(self, look: Inspection, offering: OpenEnvOffering, label: str, place: Mapping[str, Any]) -> None:
        self.look, self.offering, self.label = look, offering, label
        self.place = dict(place)
        self.transcript: list[tuple[str, str]] = []
        self.done = False
        self.watch = False
        self.quiet = label != "first"
        self._env: Any = None
        self._shape: Shape | None = None
        self._count = 0

    def _run(self, method: str, function: Callable[[], Any]) -> Outcome:
        self._count += 1
        seed = f"{self.label} {self._count}"

        def seeded() -> Any:
            seed_generators(seed)
            return function()

        return self.look.run(method, seeded, watch=self.watch)

    def complain(self, id: str, message: str, method: str, **options: Any) -> None:
        """Complain, unless this episode is only played to compare it."""
        if not self.quiet:
            self.look.complain(id, message, method, **options)

    def _raised(self, id: str, method: str, words: str, error: BaseException) -> None:
        spot = self.look.own.raised_at(error)
        self.transcript.append((method, words_of(error)))
        self.look.check_shown(words_of(error), "the message of an error", method, spot=spot)
        self.complain(id, f"{words} {words_of(error)}", method, spot=spot)

    def open(self) -> bool:
        """Make the instance."""
        outcome = self._run("__init__", self.offering.factory.make)
        self.look.seen("episode-opens")
        if outcome.error is not None:
            self._raised("episode-opens", "__init__", "it cannot be made: the constructor raised", outcome.error)
            return False
        self._env = outcome.value
        self._shape = self.offering.shape(type(self._env))
        return True

    def reset(self, id: str = "episode-opens", words: str = "it raised") -> StepOutcome | None:
        """Begin an episode; None where that fails."""
        assert self._shape is not None
        method, takes = self._shape.reset_method, self._shape.reset
        given = {"seed": 7, **self.place}
        keywords = {key: value for key, value in given.items() if takes is None or key in takes}
        outcome = self._run(method, lambda: getattr(self._env, method)(**keywords))
        self.done = False
        if outcome.error is not None:
            self._raised(id, method, words, outcome.error)
            return None
        return self._observed(method, outcome.value)

    def step(self, id: str = "step-raises", words: str = "") -> StepOutcome | None:
        """Act with an action that the model accepts; None where that fails or no action can be made."""
        assert self._shape is not None
        method, offering = self._shape.step_method, self.offering
        given = self.look.options.inputs.get("step")
        data = dict(given) if given is not None else make_input(offering.schemas()["action"])
        if data is None:
            return None
        action = self.look.run(method, lambda: read_action(data, offering.action_model, offering.mcp, is_mcp=False))
        if action.error is not None:
            return None
        outcome = self._run(method, lambda: getattr(self._env, method)(action.value))
        self.look.seen("step-raises")
        if outcome.error is not None:
            said = words or f"for {json.dumps(data, default=str):.120} it raised"
            self._raised(id, method, said, outcome.error)
            return None
        return self._observed(method, outcome.value)

    def _observed(self, method: str, value: Any) -> StepOutcome | None:
        look = self.look
        look.seen("step-output", "step-reward")
        written = look.run(method, lambda: _written(method, value)).value
        if isinstance(written, Failure):
            id = "step-reward" if "the reward" in written.detail else "step-output"
            self.complain(id, written.detail.removeprefix(f"{method} returned ").strip(), method)
            self.transcript.append((method, written.detail))
            return None
        said = canonical([written.observation, written.reward, written.done])
        look.check_shown(said, "an observation", method)
        self.transcript.append((method, said))
        self.done = written.done
        return written  # type: ignore[no-any-return]

    def state(self) -> None:
        """Read the state."""
        outcome = self._run("state", lambda: dump(state_of(self._env.state)))
        self.look.seen("state-fails")
        if outcome.error is not None:
            spot = self.look.own.raised_at(outcome.error)
            self.complain("state-fails", f"it cannot be read: {words_of(outcome.error)}", "state", spot=spot)
            return
        self.look.check_shown(outcome.value.decode(), "the state", "state")

    def steps(self) -> list[Callable[[], object]]:
        """Open, reset and a few steps, as what is played beside another."""
        act = lambda: None if self.done else self.step()  # noqa: E731
        return [self.open, lambda: self.reset() is not None, *([act] * 5)]

    def close(self) -> None:
        """Close the instance."""
        if self._env is None:
            return
        env, self._env = self._env, None
        outcome = self._run("close", lambda: _close(env))
        self.look.seen("episode-teardown")
        if outcome.error is not None:
            self._raised("episode-teardown", "close", "it raised", outcome.error)


def _written(method: str, value: Any) -> StepOutcome | Failure:
    outcome = observed(method, value, "null")
    if isinstance(outcome, StepOutcome):
        dump(outcome.observation)
    return outcome


class _Play:
    """The episodes of a check."""

    def __init__(self, look: Inspection, offering: OpenEnvOffering, found: list[Found]) -> None:
        self.look, self.offering = look, offering
        self.places: list[dict[str, Any]] = []
        for one in found:
            for at in spread(len(one.tasks), look.options.tasks):
                self.places.append({"split": one.split, "index": list(one.tasks)[at]})
        self.places = self.places or [{}]

    def all(self) -> None:
        """Play each task, then the comparisons."""
        look = self.look
        for number, place in enumerate(self.places):
            if number and (not look.in_time or look.broken("episode-opens")):
                break
            self._whole(place, watch=number == 0)
        if look.broken("episode-opens"):
            look.unseen("no episode could be begun", "class-apart", "episode-leaks", "reset-same", "reset-twice")
            return
        self._again(self.places[0])
        if look.in_time and look.wanted("class-apart", "episode-leaks"):
            check_apart(look, self._make)

    def _make(self, label: str, task: int) -> _Episode:
        return _Episode(self.look, self.offering, label, self.places[min(task, len(self.places) - 1)])

    def _whole(self, place: Mapping[str, Any], *, watch: bool) -> None:
        """Reset, step to the end if there is one, and once more."""
        look = self.look
        episode = _Episode(look, self.offering, "first", place)
        episode.watch = watch
        try:
            if not episode.open():
                return
            first = episode.reset()
            if first is None:
                return
            look.seen("reset-done")
            shape = self.offering.shape(look.cls)
            if first.done:
                look.complain("reset-done", "done is true before the first step", shape.reset_method)
            episode.state()
            if self.offering.has_tools:
                look.unseen("its actions are calls of tools", "step-raises", "step-after-done")
            elif self._act(episode) and episode.done:
                self._after_done(episode, shape.step_method)
            look.seen("reset-twice")
            episode.reset("reset-twice", "reset a second time it raised")
        finally:
            episode.close()

    def _act(self, episode: _Episode) -> bool:
        """Step until the end, or often enough."""
        for number in range(_STEPS):
            if episode.done or (number and not self.look.in_time):
                break
            if episode.step() is None:
                return False
            if number == 0:
                episode.state()
        return True

    def _after_done(self, episode: _Episode, method: str) -> None:
        look = self.look
        look.seen("step-after-done")
        after = episode.step("step-after-done", "after the end of the episode it raised")
        if after is None:
            return
        if after.reward is not None and after.reward > 0:
            look.complain("step-after-done", f"after the end of the episode it pays {after.reward}", method)

    def _again(self, place: Mapping[str, Any]) -> None:
        """The same episode twice on one instance and once on another: its beginning is the same."""
        look = self.look
        shape = self.offering.shape(look.cls)
        look.seen("reset-same", "reset-twice")
        begun = []
        for label in ("again", "once more"):
            episode = _Episode(look, self.offering, label, place)
            try:
                if not episode.open():
                    return
                for _ in range(2):
                    if (outcome := episode.reset()) is None:
                        return
                    begun.append(canonical(outcome.observation))
                    if not self.offering.has_tools and not episode.done:
                        episode.step()
            finally:
                episode.close()
        if begun[0] == begun[2] and begun[0] != begun[1]:
            words = f"reset again, with the same seed, it observes {begun[1]:.100}, after {begun[0]:.100}"
            look.complain("reset-twice", words, shape.reset_method)
        elif len(set(begun)) > 1:
            if "seed" not in shape.reset_keywords and shape.reset is not None:
                words = f"reset takes no seed, and its episodes differ: {begun[0]:.80}, then {begun[2]:.80}"
                mend = "take seed: int | None = None, and draw from random.Random(seed)"
                look.complain("reset-same", words, shape.reset_method, mend=mend)
            else:
                words = f"reset with the same seed it observes {begun[2]:.100}, after {begun[0]:.100}"
                look.complain("reset-same", words, shape.reset_method)
