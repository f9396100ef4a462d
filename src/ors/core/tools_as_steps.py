"""An environment of tools, played by steps.

Opening opens nothing. `reset` ends the old episode and opens the next; its observation holds the prompt. An action is
`{"type": "list_tools"}` or `{"type": "call_tool", "tool_name": …, "arguments": …}`. What an agent is told of a call
that failed is in the observation; a call that broke is a failure. Neither is ever a reward.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import uuid
from typing import Any

import msgspec

from ors.core.failures import Failure, failure
from ors.core.ports import (
    Document,
    Offering,
    OfferingSpec,
    Plan,
    RunWork,
    Script,
    Start,
    StepEpisode,
    StepOutcome,
    TaskQuery,
    TaskRef,
    Tasks,
    ToolOutcome,
    Work,
)
from ors.core.turns import FINISHED, play
from ors.jsontext import dump

__all__ = ["ToolsAsSteps", "choose"]

logger = logging.getLogger("ors.session")

# clients of OpenEnv know by the title that there are tools to list
_ACTION = {
    "title": "CallToolAction",
    "description": 'Calls a tool; `{"type": "list_tools"}` lists them, before any reset too.',
    "type": "object",
    "properties": {
        "type": {"enum": ["call_tool", "list_tools"], "default": "call_tool"},
        "tool_name": {"type": "string"},
        "arguments": {"type": "object", "default": {}},
    },
    "required": ["tool_name"],
}
_NULLABLE = [{"type": "object"}, {"type": "null"}]
_ABOUT = {"done": {"type": "boolean"}, "reward": {"type": ["number", "null"]}, "metadata": {"type": "object"}}
_SCHEMAS = {
    "action": _ACTION,
    "observation": {
        "title": "CallToolObservation",
        "type": "object",
        "properties": {
            "tool_name": {"type": "string"},
            "result": {"anyOf": _NULLABLE},
            "error": {"anyOf": _NULLABLE},
            **_ABOUT,
        },
        "required": ["tool_name"],
    },
    "state": {
        "title": "State",
        "type": "object",
        "properties": {
            "episode_id": {"type": ["string", "null"]},
            "step_count": {"type": "integer", "minimum": 0},
            "split": {"type": "string"},
            "index": {"type": "integer"},
            "seed": {"type": "integer"},
        },
        "required": ["step_count"],
    },
    "reset_observation": {
        "title": "Prompt",
        "type": "object",
        "properties": {"prompt": {"type": "array", "items": {"type": "object"}}, **_ABOUT},
        "required": ["prompt"],
    },
}
_ERROR_TYPES = {"unknown_tool": "tool_not_found", "invalid_input": "invalid_args"}


class ToolsAsSteps:
    """A tool environment as an offering of steps."""

    def __init__(self, offering: Offering) -> None:
        self._offering = offering
        self.affinity = offering.affinity
        self.tasks = offering.tasks
        self.spec: OfferingSpec = msgspec.structs.replace(
            offering.spec, kind="steps", action=dump(_ACTION), schemas=dump(_SCHEMAS), tool_actions="mcp"
        )

    def episode(self, start: Start) -> StepEpisode:
        return _ToolStepEpisode(self._offering)


class _ToolStepEpisode:
    """Episodes of tools, one after another, as one that is reset."""

    def __init__(self, offering: Offering) -> None:
        self._offering = offering
        self._inner: Any = None
        self._state: dict[str, Any] = {"episode_id": None, "step_count": 0}
        self._ready = False
        self._over = False

    def open(self) -> Plan:
        return Document(b"{}")

    def reset(self, start: Start) -> Script:
        self._ready = self._over = False
        if self._inner is not None:
            ended = yield from play(self._inner.close("reset"))
            if isinstance(ended, Failure):
                logger.warning("teardown at a reset failed: %s", ended.detail)
        self._state = {"episode_id": start.options.get("episode_id") or uuid.uuid4().hex, "step_count": 0}
        if start.ref is not None:
            self._state |= {"split": start.ref.split, "index": start.ref.index}
        if start.seed is not None:
            self._state["seed"] = start.seed
        episode: Any = self._offering.episode(start)
        self._inner = episode
        outcome = yield from play(episode.open())
        if not isinstance(outcome, Failure):
            outcome = yield from play(episode.prompt())
        if isinstance(outcome, Document):
            body, self._ready = outcome.body, True
            return (yield Work(lambda: StepOutcome({"prompt": json.loads(body)}), label="reset"))  # type: ignore[no-any-return]
        yield from play(episode.close("setup_failed"))
        self._inner = None
        return outcome

    def step(self, action: Any, timeout_s: float | None, options: Any = None) -> Plan:
        kind = action.get("type", "call_tool") if isinstance(action, dict) else None
        if kind == "list_tools":
            return self._list()
        name = action.get("tool_name") if kind == "call_tool" else None
        arguments = action.get("arguments") if kind == "call_tool" else None
        if not isinstance(name, str) or not isinstance(arguments if arguments is not None else {}, dict):
            words = 'an action is {"type": "list_tools"} or {"type": "call_tool", "tool_name": …, "arguments": {…}}'
            return failure("invalid_input", words)
        if not self._ready:
            return failure("not_reset", "reset the environment before its tools are called")
        return self._call(name, arguments or {}, timeout_s)

    def _list(self) -> Script:
        listed: Any = Document(self._offering.spec.tools)
        if self._ready:
            listed = yield from play(self._inner.tools())
        return (
            StepOutcome({"tools": json.loads(listed.body)}, done=self._over) if isinstance(listed, Document) else listed
        )

    def own_tools(self) -> Plan:
        plan: Plan = self._inner.tools() if self._ready else Document(self._offering.spec.tools)
        return plan

    def _call(self, name: str, arguments: dict[str, Any], timeout_s: float | None) -> Script:
        self._state["step_count"] += 1
        plan = FINISHED if self._over else self._inner.call(name, arguments)
        if timeout_s is not None and isinstance(plan, Work):
            plan.timeout = timeout_s if plan.timeout is None else min(timeout_s, plan.timeout)
        outcome = yield from play(plan)
        if isinstance(outcome, ToolOutcome):
            self._over = outcome.finished
            return (yield Work(lambda: _called(name, outcome), label="result"))  # type: ignore[no-any-return]
        if isinstance(outcome, Failure) and outcome.reason is not None:
            told = {"error_type": _ERROR_TYPES.get(outcome.kind, "execution_error"), "message": outcome.detail}
            return StepOutcome({"tool_name": name, "result": None, "error": told}, done=self._over)
        return outcome

    def state(self) -> Plan:
        return Document(dump(self._state))

    def close(self, why: str) -> Plan | None:
        inner, self._inner = self._inner, None
        plan: Plan | None = inner.close(why) if inner is not None else None
        return plan


def _called(name: str, outcome: ToolOutcome) -> StepOutcome:
    """What the result of a tool becomes as an observation: what MCP calls a tool result."""
    output = json.loads(outcome.body)
    kept = {"text": ("type", "text"), "image": ("type", "data", "mimeType")}
    content = [{key: block[key] for key in kept[block["type"]]} for block in output["blocks"]]
    texts = [block["text"] for block in content if block["type"] == "text"]
    result = {
        "content": content,
        "structured_content": None,
        "meta": {"reward": outcome.reward, "done": outcome.finished},
        "data": texts[0] if len(content) == len(texts) == 1 else None,
        "is_error": False,
    }
    observation = {"tool_name": name, "result": result, "error": None}
    return StepOutcome(observation, outcome.reward, outcome.finished, output["metadata"])


async def choose(tasks: Tasks, start: Start, run: RunWork) -> Start | Failure:
    """Choose the task of an episode of tools that was reset without one.

    The split is the one that the options name, else the first of the type train. The index is theirs too, else a keyed
    hash of the seed modulo the number of tasks, so that neighbouring seeds are not neighbouring tasks; without a seed
    it is random.
    """
    split, index = start.options.get("split"), start.options.get("index")
    if not isinstance(split, str):
        listed = await tasks.query(TaskQuery("splits"), run)
        if isinstance(listed, Failure):
            return listed
        splits = json.loads(listed.body)
        names = [entry["name"] for entry in splits if entry["type"] == "train"] + [entry["name"] for entry in splits]
        if not names:
            return failure("unknown_split", "the environment has no splits; give the task in full")
        split = names[0]
    if isinstance(index, int) and not isinstance(index, bool):
        return msgspec.structs.replace(start, ref=TaskRef(split, index))
    counted = await tasks.query(TaskQuery("count", split), run)
    if isinstance(counted, Failure):
        return counted
    count = json.loads(counted.body)
    if not count:
        return failure("invalid_index", f"split '{split}' has no tasks")
    if start.seed is None:
        index = secrets.randbelow(count)
    else:
        digest = hashlib.blake2b(str(start.seed).encode(), key=split.encode()[:64], digest_size=16).digest()
        index = int.from_bytes(digest) % count
    return msgspec.structs.replace(start, ref=TaskRef(split, index))
