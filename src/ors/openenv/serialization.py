"""Actions from JSON, and observations to what is sent of them: exactly as OpenEnv's servers do it."""

from __future__ import annotations

import json
from typing import Any

from ors.adapters.openenv.wire import mcp_action_types, read_action
from ors.openenv.models import Action, Observation

__all__ = ["deserialize_action", "deserialize_action_with_preprocessing", "serialize_observation"]


def deserialize_action(action_data: dict[str, Any], action_cls: type[Action]) -> Action:
    """The action that JSON data stands for. Raises pydantic's ValidationError.

    `{"type": "list_tools"}` and `{"type": "call_tool", …}` are the actions for tools where the class of actions is one
    of these, or `Action` itself; a class of an environment's own decides what its actions are.
    """
    action: Action = read_action(action_data, action_cls, mcp_action_types(action_cls), is_mcp=False)
    return action


def deserialize_action_with_preprocessing(action_data: dict[str, Any], action_cls: type[Action]) -> Action:
    """The same for what people type into forms.

    The arguments of a tool may be JSON text, an `action_id` may be text, and `tokens` (a list, or JSON text of one)
    become a tensor where torch is installed.
    """
    data = dict(action_data)
    arguments = data.get("arguments")
    if data.get("type") == "call_tool" and isinstance(arguments, str):
        parsed = _parsed(arguments, arguments)
        types, generic = mcp_action_types(action_cls)
        if generic and types.get("call_tool") is not None:
            action: Action = types["call_tool"].model_validate({**data, "arguments": parsed})
            return action
    if isinstance(data.get("tokens"), (list, str)):
        data["tokens"] = _tokens(data["tokens"])
    if isinstance(data.get("action_id"), str):
        try:
            data["action_id"] = int(data["action_id"])
        except ValueError:  # the model says what is wrong with it
            pass
    return deserialize_action(data, action_cls)


def serialize_observation(observation: Observation) -> dict[str, Any]:
    """What is sent of an observation: its fields (`metadata` among them) apart from its reward and `done`.

    The metadata stands beside these once more where there is any.
    """
    sent: dict[str, Any] = {
        "observation": observation.model_dump(exclude={"reward", "done"}),
        "reward": observation.reward,
        "done": observation.done,
    }
    if observation.metadata:
        sent["metadata"] = observation.metadata
    return sent


def _parsed(text: str, otherwise: Any) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return otherwise


def _tokens(tokens: Any) -> Any:
    if isinstance(tokens, str):
        tokens = _parsed(tokens, [])
    if not isinstance(tokens, list):
        return tokens
    try:
        import torch
    except ImportError:
        return tokens
    return torch.tensor(tokens, dtype=torch.long)
