"""An environment of steps that has tools of its own, played by calling these.

Its actions are those that `ors.core.tools_as_steps` takes: one lists the tools, one calls a tool; what is observed then
is the result, or an error. Where it takes other actions too, the tool `step` is among those of its specification.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from ors.core.failures import Failure, failure
from ors.core.observation import blocks_of
from ors.core.ports import Document, Offering, Plan, Script, Start, StepOutcome, ToolOutcome, Work
from ors.core.schema_check import SchemaCheck
from ors.core.steps_as_tools import STEP, StepsAsTools, StepToolEpisode, paid, then
from ors.core.turns import FINISHED, play
from ors.jsontext import JSONValueError, dump, load

__all__ = ["StepsWithTools"]

_KINDS = {"tool_not_found": "unknown_tool", "invalid_args": "invalid_input", "timeout": "tool_timeout"}


class StepsWithTools(StepsAsTools):
    """Such an environment as an offering of tools."""

    def __init__(self, offering: Offering) -> None:
        super().__init__(offering)
        self.spec = msgspec.structs.replace(offering.spec, kind="tools")
        listed = load(offering.spec.tools)
        self.checks = {tool["name"]: SchemaCheck(tool["input_schema"]) for tool in listed}
        self.step = [tool for tool in listed if tool["name"] == STEP]

    def episode(self, start: Start) -> StepToolEpisode:
        return _ToolsEpisode(self, self._offering.episode(start), start)


class _ToolsEpisode(StepToolEpisode):
    """An episode of it."""

    _offering: StepsWithTools

    def tools(self) -> Plan:
        return then(self._inner.step({"type": "list_tools"}, None), self._listed)

    def _listed(self, outcome: Any) -> Document | Failure:
        if not isinstance(outcome, StepOutcome):
            return outcome if isinstance(outcome, Failure) else failure("bad_output", "no tools were listed", ran="yes")
        told = outcome.metadata if isinstance(outcome.metadata, dict) else {}
        if "error" in told:
            return failure("tool_failed", f"its tools cannot be listed: {told['error']}", ran="yes")
        return Document(dump([*outcome.observation.get("tools", []), *self._offering.step]))

    def call(self, name: str, input: Any) -> Plan:
        if name == STEP and self._offering.step:
            return super().call(name, input)
        return FINISHED if self._over else self._call(name, input)

    def _call(self, name: str, input: Any) -> Script:
        check = self._offering.checks.get(name)  # a tool that came later is checked by the environment alone
        if check is not None:
            wrong = yield Work(lambda: check.describe(input), label=name)
            if wrong is not None:
                words = f"Tool input validation error: {wrong}"
                return wrong if isinstance(wrong, Failure) else failure("invalid_input", words)
        action = {"type": "call_tool", "tool_name": name, "arguments": {} if input is None else input}
        return (yield from play(then(self._inner.step(action, None), partial(_called, name))))


def _called(name: str, outcome: Any) -> ToolOutcome | Failure:
    """What is observed after a call, as the result of the tool."""
    if not isinstance(outcome, StepOutcome):
        return outcome if isinstance(outcome, Failure) else failure("bad_output", f"'{name}' has no result", ran="yes")
    reward = paid(name, outcome.reward)
    if isinstance(reward, Failure):
        return reward
    observation = outcome.observation
    result = observation.get("result", observation) if isinstance(observation, dict) else observation
    error = observation.get("error") if isinstance(observation, dict) else None
    if error is not None:
        words = error.get("message", "it failed") if isinstance(error, dict) else str(error)
        kind = _KINDS.get(str(error.get("error_type")), "tool_error") if isinstance(error, dict) else "tool_error"
        return failure(kind, f"Tool '{name}' failed: {words}" if kind == "tool_error" else words, ran="yes")
    try:
        blocks = _blocks(result)
        if isinstance(result, dict) and result.get("is_error") is True:
            said = " ".join(block["text"] for block in blocks if block["type"] == "text")
            return failure("tool_error", f"Tool '{name}' failed: {said}", ran="yes")
        output = {"blocks": blocks, "metadata": outcome.metadata or None, "reward": reward, "finished": outcome.done}
        return ToolOutcome(dump(output), reward, outcome.done)
    except JSONValueError as exc:
        return failure("bad_output", f"'{name}' returned what is no JSON: {exc}", ran="yes")


def _blocks(result: Any) -> list[dict[str, Any]]:
    """The blocks of a tool's result: of the content that MCP gives it, else of its JSON."""
    content = result.get("content") if isinstance(result, dict) else None
    if not isinstance(content, list):
        return blocks_of(result)
    blocks: list[dict[str, Any]] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str):
            blocks.append({"text": part["text"], "detail": None, "type": "text"})
        elif kind == "image" and isinstance(part.get("data"), str) and isinstance(part.get("mimeType"), str):
            blocks.append({"data": part["data"], "mimeType": part["mimeType"], "detail": None, "type": "image"})
        else:
            blocks += blocks_of(part)
    return blocks or [{"text": "", "detail": None, "type": "text"}]
