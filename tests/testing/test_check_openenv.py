"""Environments of OpenEnv are checked too: their task methods on instances of their own, reset, step, state, close."""

from __future__ import annotations

from typing import Any

import pytest

from ors.openenv import Action, Environment, Observation, State
from ors.testing import check_environment
from ors.testing.check import report_on


class Say(Action):
    text: str


class Said(Observation):
    text: str = ""


class Healthy(Environment[Say, Said, State]):
    """Says it again."""

    def __init__(self) -> None:
        super().__init__()
        self._state = State(episode_id="one", step_count=0)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Said:
        self._state = State(episode_id=episode_id or "one", step_count=0)
        return Said()

    def step(self, action: Say, timeout_s: float | None = None, **kwargs: Any) -> Said:
        self._state.step_count += 1
        return Said(text=action.text, reward=1.0 if self._state.step_count == 1 else None, done=True)

    @property
    def state(self) -> State:
        return self._state

    def list_splits(self) -> list[Any]:
        return ["train"]

    def num_tasks(self, split: str) -> int:
        return 3

    def get_task(self, split: str, index: int) -> Any:
        if not 0 <= index < 3:
            raise IndexError(index)
        return {"number": index}

    def list_tasks(self, split: str) -> Any:
        return [{"number": index} for index in range(3)]

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> Any:
        raise NotImplementedError


class NeedsReset(Healthy):
    """Its task methods work after a reset only."""

    def reset(self, *args: Any, **kwargs: Any) -> Said:
        self.tasks = [{"number": n} for n in range(3)]
        return super().reset(*args, **kwargs)

    def get_task(self, split: str, index: int) -> Any:
        return self.tasks[index]


class ResetOnce(Healthy):
    done = False

    def reset(self, *args: Any, **kwargs: Any) -> Said:
        if self.done:
            raise RuntimeError("only once")
        self.done = True
        return Said()


class ResetsToADict(Healthy):
    def reset(self, *args: Any, **kwargs: Any) -> Any:
        return {"text": ""}


class StepRaises(Healthy):
    def step(self, action: Say, timeout_s: float | None = None, **kwargs: Any) -> Said:
        raise KeyError(action.text)


class StateRaises(Healthy):
    @property
    def state(self) -> State:
        raise AttributeError("no state yet")


class CloseRaises(Healthy):
    def close(self) -> None:
        raise OSError("not open")


class RewardInfinite(Healthy):
    def reset(self, *args: Any, **kwargs: Any) -> Said:
        return Said(reward=float("inf"))


@pytest.mark.parametrize(
    ("cls", "rule", "method"),
    [
        (NeedsReset, "index", "get_task"),
        (ResetOnce, "reset", "reset"),
        (ResetsToADict, "reset", "reset"),
        (StepRaises, "step", "step"),
        (StateRaises, "state", "state"),
        (CloseRaises, "close", "close"),
        (RewardInfinite, "reward", "reset"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_fault_is_found(cls: Any, rule: str, method: str) -> None:
    report = report_on(cls, new_process=False)
    assert (rule, f"{cls.__name__}.{method}") in [(c.rule.id, c.method) for c in report.of("error")], str(report)
    complaint = next(c for c in report.complaints if c.rule.id == rule)
    assert complaint.file == __file__


class Untyped(Environment[Any, Any, Any]):
    """Does not say what its actions are."""

    def reset(self, seed: int | None = None) -> Said:
        self.over = False
        return Said()

    def step(self, action: Any) -> Any:
        paid, self.over = None if self.over else 1.0, True
        return Said(text=action.text, reward=paid, done=True)

    @property
    def state(self) -> State:
        return State()


def test_the_actions_can_be_named() -> None:
    class Annotated(Untyped):
        def step(self, action: Say) -> Said:
            return super().step(action)

    assert "step" in report_on(Annotated, new_process=False).checked
    assert "action_cls" in report_on(Untyped, new_process=False).skipped["step"]
    report = report_on(Untyped, new_process=False, action_cls=Say)
    assert {"step", "step-after-done"} <= {*report.checked}
    assert report.complaints == []


def test_nothing_is_said_of_a_healthy_one() -> None:
    report = check_environment(Healthy)
    assert report.complaints == []
    assert report.skipped == {}
    assert {"reset", "step", "state", "close", "order-process", "index-end"} <= {*report.checked}
