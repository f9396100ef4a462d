"""`check_environment`: what authors call in their own tests."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from ors.environment import Environment
from ors.testing.complaints import EnvironmentCheckError, EnvironmentCheckWarning
from ors.testing.inspection import Inspection, Options
from ors.testing.places import Own
from ors.testing.report import CheckReport
from ors.testing.rules import chosen
from ors.testing.stage import Hung, Stage

__all__ = ["check_environment", "examine"]


def check_environment(
    cls: type,
    *,
    split: str | Iterable[str] | None = None,
    tasks: int = 4,
    skip: str | Iterable[str] = (),
    warn: bool = True,
    secrets: Mapping[str, str] | None = None,
    inputs: Mapping[str, Mapping[str, Any]] | None = None,
    action_cls: type | None = None,
    observation_cls: type | None = None,
    timeout_s: float = 60.0,
    budget_s: float = 60.0,
) -> CheckReport:
    """Check an environment class without a server: its tasks, its prompts, its tools, and what its episodes leave.

    Episodes are really played: `setup`, the prompt, each tool with an input made from its schema, `teardown`.

    split: the split or splits to look at; all of them otherwise. tasks: how many tasks of each are played. skip: ids of
    rules, or areas (`"prompt"`), that are not checked. warn: whether warnings are issued. secrets: what episodes need;
    they are looked for in all that the environment says. inputs: by the name of a tool, what to call it with instead
    of what is made (`"step"` is the action of an OpenEnv environment). action_cls, observation_cls: the models of such
    an environment, where its class does not name them. timeout_s: how long one method may take. budget_s: how long the
    check plays; what must be looked at is looked at in any case.

    Returns the report. Raises EnvironmentCheckError, which has it, if there are errors; issues an
    EnvironmentCheckWarning for each warning. Notes are in the report only. Raises ValueError for a rule that there is
    not, and TypeError for what is no environment class.
    """
    report = examine(
        cls,
        split=split,
        tasks=tasks,
        skip=skip,
        secrets=secrets,
        inputs=inputs,
        action_cls=action_cls,
        observation_cls=observation_cls,
        timeout_s=timeout_s,
        budget_s=budget_s,
    )
    if warn:
        for complaint in report.warnings:
            warnings.warn(EnvironmentCheckWarning(complaint), stacklevel=2)
    if report.errors:
        raise EnvironmentCheckError(report)
    return report


def examine(
    cls: type,
    *,
    split: str | Iterable[str] | None = None,
    tasks: int = 4,
    skip: str | Iterable[str] = (),
    secrets: Mapping[str, str] | None = None,
    inputs: Mapping[str, Mapping[str, Any]] | None = None,
    action_cls: type | None = None,
    observation_cls: type | None = None,
    timeout_s: float = 60.0,
    budget_s: float = 60.0,
) -> CheckReport:
    """The same, and the report is all that comes of it: nothing is raised for what is wrong with the environment."""
    if tasks < 1:
        raise ValueError(f"tasks={tasks}: at least one task of each split is played")
    options = Options(
        splits=(split,) if isinstance(split, str) else tuple(split) if split is not None else None,
        tasks=tasks,
        skip=chosen((skip,) if isinstance(skip, str) else skip),
        secrets=secrets or {},
        inputs=inputs or {},
        action_cls=action_cls,
        observation_cls=observation_cls,
        timeout_s=timeout_s,
        budget_s=budget_s,
    )
    is_tools = isinstance(cls, type) and issubclass(cls, Environment)
    if not is_tools:
        from ors.adapters.openenv_environment import is_openenv

        if not is_openenv(cls):
            kind = f"an instance of {type(cls).__name__}" if not isinstance(cls, type) else f"the class {cls.__name__}"
            raise TypeError(f"{kind} is no environment class; pass a subclass of ors.Environment")
    own = Own([cls, *getattr(cls, "toolsets", ())] if is_tools else [cls])
    generators = _generators()
    with Stage(own, timeout_s) as stage:
        look = Inspection(cls, "tools" if is_tools else "steps", own, stage, options)
        try:
            if is_tools:
                from ors.testing.tool_environments import check_tool_environment

                check_tool_environment(look)
            else:
                from ors.testing.step_environments import check_step_environment

                check_step_environment(look)
        except Hung:
            pass  # it is told, and nothing else can be
    _restore(generators)
    return look.report()


def _generators() -> tuple[Any, Any]:
    numpy = sys.modules.get("numpy")
    return random.getstate(), numpy.random.get_state() if numpy is not None else None


def _restore(states: tuple[Any, Any]) -> None:
    random.setstate(states[0])
    numpy = sys.modules.get("numpy")
    if numpy is not None and states[1] is not None:
        numpy.random.set_state(states[1])
