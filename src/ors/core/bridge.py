"""Two bridges, so that every kind of environment is played over every face. The owner runs them, in its sessions."""

from __future__ import annotations

from typing import Literal

import msgspec

from ors.core.ports import Offering, OfferingSpec, Tasks
from ors.core.seed_tasks import SeedTasks
from ors.core.steps_as_tools import StepsAsTools
from ors.core.steps_with_tools import StepsWithTools
from ors.core.tools_as_steps import ToolsAsSteps, choose

__all__ = ["bridge", "choose", "described", "picks_tasks", "tasks_of"]


def bridge(offering: Offering, kind: Literal["tools", "steps"]) -> Offering:
    """The offering as one of this kind: itself where it is one."""
    if offering.spec.kind == kind:
        return offering
    if kind == "steps":
        return ToolsAsSteps(offering)
    return StepsWithTools(offering) if getattr(offering, "has_tools", False) else StepsAsTools(offering)


def described(offering: Offering) -> OfferingSpec:
    """An offering's specification, with what it has where it is played by tools, and what where by steps."""
    steps = bridge(offering, "steps").spec
    return msgspec.structs.replace(
        offering.spec,
        tools=bridge(offering, "tools").spec.tools,
        action=steps.action,
        schemas=steps.schemas,
        tool_actions=steps.tool_actions,
        own_tasks=offering.tasks is not None,
    )


def tasks_of(offering: Offering) -> Tasks:
    """The tasks of an offering; seeds where it has none of its own."""
    return offering.tasks if offering.tasks is not None else SeedTasks()


def picks_tasks(offering: Offering) -> bool:
    """Whether an episode that is reset without a task needs one chosen for it; see `choose`."""
    return isinstance(offering, ToolsAsSteps)
