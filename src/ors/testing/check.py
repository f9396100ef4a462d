"""`check_environment`: plays an environment as a server and many clients would, and says what went wrong where."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ors.tasks.keys import task_key
from ors.testing.complaints import RULES, CheckReport, EnvironmentCheckError, EnvironmentCheckWarning
from ors.testing.episodes import check_episodes
from ors.testing.judge import Judge
from ors.testing.new_process import keys_elsewhere
from ors.testing.openenv_rules import check_openenv_episodes
from ors.testing.stage import Stage
from ors.testing.subjects import is_openenv, subject_of
from ors.testing.task_rules import Tasks, check_tasks
from ors.testing.tool_rules import check_tools

__all__ = ["check_environment", "report_on"]


def check_environment(
    cls: type[Any],
    *,
    splits: Collection[str] = (),
    samples: int = 8,
    secrets: Mapping[str, str] | None = None,
    skip: Collection[str] = (),
    new_process: bool = True,
) -> CheckReport:
    """Check an environment class, without a network. To be called in its author's own tests.

    splits: only these; all otherwise. samples: how many tasks of a split are looked at. secrets: what its sessions are
    given. skip: ids of rules (`ors.testing.RULES`). new_process: whether tasks are asked for in a new process too.
    Returns the report. Raises EnvironmentCheckError, with everything that was found, where a rule of the level `error`
    is broken; warns with EnvironmentCheckWarning for each warning. Raises TypeError for what is no environment.
    """
    report = report_on(cls, splits=splits, samples=samples, secrets=secrets, skip=skip, new_process=new_process)
    if not report.ok:
        raise EnvironmentCheckError(report)
    for complaint in report.of("warning"):
        warnings.warn(str(complaint), EnvironmentCheckWarning, stacklevel=2)
    return report


def report_on(
    cls: type[Any],
    *,
    splits: Collection[str] = (),
    samples: int = 8,
    secrets: Mapping[str, str] | None = None,
    skip: Collection[str] = (),
    new_process: bool = True,
) -> CheckReport:
    """The same, and nothing is raised for what the environment does."""
    from ors.environment import Environment

    if not isinstance(cls, type) or not (issubclass(cls, Environment) or is_openenv(cls)):
        raise TypeError(f"{cls!r} is no environment: give the class, an ors.Environment or one of OpenEnv")
    if unknown := sorted(set(skip) - RULES.keys()):
        raise ValueError(f"there is no rule {unknown[0]!r}; the rules are {', '.join(RULES)}")
    if samples < 2:
        raise ValueError("samples must be 2 or more: the first task and the last")
    begun = time.monotonic()
    report = CheckReport(cls.__name__)
    stage = Stage(sys.modules.get(cls.__module__))
    judge = Judge(
        cls,
        stage,
        report,
        splits=tuple(splits),
        samples=samples,
        secrets=dict(secrets or {}),
        skip=frozenset(skip),
    )

    async def work() -> Tasks:
        tasks = Tasks(judge, *subject_of(cls))
        if is_openenv(cls):
            if tasks.defines("list_splits"):
                await check_tasks(tasks)
            await check_openenv_episodes(judge)
        else:
            table = check_tools(judge)
            await check_tasks(tasks)
            if table:
                await check_episodes(judge, tasks, table)
        return tasks

    tasks = stage.play(work)
    if new_process:
        _check_elsewhere(judge, tasks)
    _tell_blocking(judge)
    report.seconds = time.monotonic() - begun
    return report


def _check_elsewhere(judge: Judge, tasks: Tasks) -> None:
    if not tasks.examples or "order-process" in judge.skip:
        return
    if any(complaint.rule.id in ("tasks-repeat", "task-json") for complaint in judge.report.complaints):
        judge.passed_over("order-process", "the tasks are not the same here either")
        return
    elsewhere = keys_elsewhere(judge.cls, [(split, index) for split, index, _ in tasks.examples])
    if isinstance(elsewhere, str):
        judge.passed_over("order-process", elsewhere)
        return
    judge.looked_at("order-process")
    for (split, index, task), other in zip(tasks.examples, elsewhere, strict=True):
        if task_key(task) != other:
            method = "get_task" if tasks.defines("get_task") else "list_tasks"
            judge.complain("order-process", f"task {index} of {split!r} is another in a new process", method)
            return


def _tell_blocking(judge: Judge) -> None:
    judge.looked_at("blocking")
    for blocked in judge.stage.blocking.found.values():
        words = f"{blocked.what} blocks every session of the environment"
        where = f"{Path(blocked.file).name}, in {blocked.function}"
        judge.complain_at("blocking", words, where, blocked.file, blocked.line)
