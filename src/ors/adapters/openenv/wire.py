"""The data of OpenEnv: actions from JSON, and observations, states and tasks to JSON.

An observation is written as OpenEnv's servers do it: as Python data first, which then becomes the JSON of each value.
NaN and infinity in it are null there, unless an error is wanted; a reward is never null in silence.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from ors.adapters.explain import ErrorDetail, explain
from ors.core.failures import Failure, failure
from ors.core.ports import StepOutcome

__all__ = [
    "jsonable",
    "listed",
    "mcp_action_types",
    "observed",
    "read_action",
    "said",
    "state_of",
    "task_of",
    "validation_failure",
]

NonFinite = Literal["null", "constants"]

_MCP = {"list_tools": "ListToolsAction", "call_tool": "CallToolAction"}


def mcp_action_types(model: Any) -> tuple[dict[str, Any], bool]:
    """The actions that list and call tools, and whether this model of actions leaves those to them.

    They are those of the package that the model comes from: `isinstance` in author code means these. A model of an
    environment's own decides what its actions are.
    """
    for base in getattr(model, "__mro__", ()):
        if base.__name__ in ("Action", *_MCP.values()):
            package = base.__module__.rpartition(".")[0]
            try:
                module = importlib.import_module(f"{package}.mcp_types")
            except ImportError:
                return {}, False
            types = {word: getattr(module, name, None) for word, name in _MCP.items()}
            return types, model in (getattr(module, "Action", None), *types.values())
    return {}, False


def read_action(data: Any, model: Any, mcp: tuple[dict[str, Any], bool], is_mcp: bool) -> Any:
    """The action that JSON data stands for. Raises pydantic's ValidationError.

    An environment with MCP tools takes the actions for them besides its own.
    """
    types, generic = mcp
    word = data.get("type") if isinstance(data, dict) else None
    tools = types.get(word) if isinstance(word, str) else None
    if tools is not None and generic:
        return tools.model_validate(data)
    if tools is None or not is_mcp:
        return model.model_validate(data)
    try:
        return model.model_validate(data)
    except ValidationError:
        return tools.model_validate(data)


def validation_failure(exc: ValidationError) -> Failure:
    """What is wrong with an action: as a sentence, and as the list that OpenEnv's clients get, without the input."""
    errors = json.loads(exc.json(include_input=False))
    clauses = []
    for error in errors[:20]:
        where = ".".join(str(part)[:100] for part in error["loc"])
        clauses.append(f"{where}: {error['msg']}" if where else error["msg"])
    words = f"Invalid action: {'; '.join(clauses)}"
    return Failure("invalid_input", words.encode("utf-8", "backslashreplace").decode(), errors=errors)


def observed(what: str, observation: Any, non_finite: NonFinite) -> StepOutcome | Failure:
    """What came of a reset or a step: the fields of the observation, with reward, `done` and metadata apart."""
    try:
        fields = observation.model_dump(exclude={"reward", "done"})
        reward, done, metadata = observation.reward, observation.done, observation.metadata
    except AttributeError as exc:
        if hasattr(observation, "model_dump"):
            raise
        words = f"{what} returned {type(observation).__name__}, which is no observation: {exc}"
        return failure("bad_output", words, ran="yes")
    if reward is not None and type(reward) not in (bool, int, float):
        try:
            reward = bool(reward) if type(reward).__name__.startswith("bool") else float(reward)
        except (TypeError, ValueError):
            words = f"{what} returned the reward {reward!r:.100}; a reward is a number or None"
            return failure("bad_output", words, ran="yes")
    if type(reward) is float and not math.isfinite(reward):
        words = f"{what} returned the reward {reward!r}; a reward is a finite number or None"
        return failure("bad_output", words, ran="yes")
    fields.pop("metadata", None)
    try:
        return StepOutcome(
            jsonable(fields, non_finite), reward, bool(done), jsonable(metadata, non_finite) if metadata else {}
        )
    except (ValueError, TypeError, RecursionError) as exc:
        return failure("bad_output", str(exc).splitlines()[0] if str(exc) else type(exc).__name__, ran="yes")


def state_of(state: Any) -> Any:
    """The JSON of a state, with whatever fields its class adds."""
    data = state.model_dump() if hasattr(state, "model_dump") else dict(state) if state else {}
    return jsonable(data, "null")


def task_of(task: Any) -> Any:
    """The JSON of a task, which may be of any type: models, dataclasses and plain objects become objects."""
    return jsonable(task, "constants", objects=True)


async def listed(env: Any) -> list[Any]:
    """The tools of an environment's FastMCP server as MCP lists them, with those that are for its mode only."""
    async with env.mcp_session() as client:
        tools = [jsonable(tool.model_dump(), "null") for tool in await client.list_tools()]
    of_modes = getattr(env, "_mode_tool_schemas", {})
    found = [tool for tool in tools if tool["name"] not in of_modes]
    for schemas in of_modes.values():
        schema = schemas.get(None) or schemas.get(getattr(env, "_mode", None))
        if schema is not None:
            found.append(jsonable(schema, "null"))
    return found


def jsonable(value: Any, non_finite: NonFinite, *, objects: bool = False) -> Any:
    """JSON data of Python data, as pydantic infers it; arrays become lists. Raises ValueError."""
    try:
        return to_jsonable_python(value, inf_nan_mode=non_finite, fallback=_object if objects else _array)
    except PydanticSerializationError as exc:
        raise ValueError(str(exc)) from None


def _array(value: Any) -> Any:
    """What pydantic does not know: scalars and arrays of numpy and its like."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise PydanticSerializationError(f"Unable to serialize unknown type: {type(value)}")


def _object(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if hasattr(value, "__dict__") and not callable(value):
        return vars(value)
    return str(value)


def said(exc: BaseException, errors: ErrorDetail, otherwise: str) -> str:
    """The words of an exception as OpenEnv's servers pass them on: without its type, where it has a message."""
    return explain(exc, errors, otherwise).removeprefix(f"{type(exc).__name__}: ")
