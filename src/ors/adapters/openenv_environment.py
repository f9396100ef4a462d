"""OpenEnv environments → offerings of steps: classes, functions and partials that make them, ours or others'."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any, Literal, get_args

from ors.adapters.explain import ErrorDetail
from ors.adapters.openenv.episode import OpenEnvEpisode
from ors.adapters.openenv.factory import Factory, Shape, annotation, has_server, is_base, look
from ors.adapters.openenv.tasks import METHODS, OpenEnvTasks
from ors.adapters.openenv.wire import mcp_action_types
from ors.core.failures import Failure, failure
from ors.core.ports import OfferingSpec, Start
from ors.errors import AuthoringError, ConcurrencyConfigurationError
from ors.jsontext import dump

__all__ = ["OpenEnvOffering", "is_openenv", "offering_of"]

logger = logging.getLogger("ors.server")

Affinity = Literal["any", "session", "class"]


class OpenEnvOffering:
    """An environment written for OpenEnv.

    env: what makes an environment, each time a new one. max_concurrent: the most sessions at once; see `max_sessions`.
    strict_reset: keys that `reset` does not take are refused; else they are left out, and the log and the `notes` of
    the outcome name them (`dropped`, and under `accepted` what would have been taken). mode: which tools there are of
    those that are registered for one mode only. list_tools: an environment that has tools is made once, to see which.
    """

    def __init__(
        self,
        env: type | Callable[[], Any],
        action_cls: Any,
        observation_cls: Any,
        *,
        name: str | None = None,
        max_concurrent: int | None = None,
        strict_reset: bool = False,
        state_cls: Any = None,
        reset_observation_cls: Any = None,
        mode: Literal["simulation", "production"] = "simulation",
        list_tools: bool = True,
        errors: ErrorDetail = "exception",
    ) -> None:
        self.factory = Factory(env)
        if not hasattr(action_cls, "model_validate"):
            raise AuthoringError(f"{action_cls!r:.100} is no model of actions; inherit from Action")
        self.action_model = action_cls
        self.observation_model = observation_cls
        self.reset_observation_model = reset_observation_cls or observation_cls
        self.state_model = state_cls or _hinted_state(self.factory.cls)
        self.strict_reset = strict_reset
        self.mode = mode
        self.errors = errors
        self.mcp = mcp_action_types(action_cls)
        self.name = name or self.factory.name
        self.max_sessions = self._capacity(max_concurrent)
        self.affinity: Affinity = self._affinity()
        self._shapes: dict[type, Shape] = {}
        self._told: set[str] = set()
        cls = self.factory.cls
        schema = _schema(action_cls)
        calls = action_cls in self.mcp[0].values()
        self.has_tools = calls or has_server(cls)
        self.spec = OfferingSpec(
            name=self.name,
            kind="steps",
            action=dump(schema),
            tools=dump(self._tools(schema, list_tools)),
            description=(inspect.getdoc(cls) or "") if cls is not None and cls.__doc__ else "",
            lists_tasks=callable(getattr(cls, "list_tasks", None)),
            schemas=dump(self.schemas()),
            tool_actions="mcp" if has_server(cls) else "plain" if calls else "none",
            max_sessions=self.max_sessions,
        )
        self.task_methods = frozenset(name for name in METHODS if callable(getattr(cls, name, None)))
        self.tasks = OpenEnvTasks(self) if self.task_methods else None

    def episode(self, start: Start) -> OpenEnvEpisode:
        return OpenEnvEpisode(self, start)

    def schemas(self) -> dict[str, Any]:
        """The JSON Schemas of actions, observations, states and the observations of `reset`."""
        return {
            "action": _schema(self.action_model),
            "observation": _schema(self.observation_model),
            "state": _schema(self.state_model),
            "reset_observation": _schema(self.reset_observation_model),
        }

    def metadata(self) -> dict[str, Any]:
        """What the environment says of itself.

        This may make an instance, so call it where author code runs and never on an event loop.
        """
        cls = self.factory.cls
        if cls is None or not _keeps_default_metadata(cls):
            env = self.factory.make()
            try:
                if callable(getattr(env, "get_metadata", None)):
                    said = env.get_metadata()
                    return dict(said.model_dump() if hasattr(said, "model_dump") else said)
                cls = type(env)
            finally:
                if callable(close := getattr(env, "close", None)):
                    close()
        return {
            "name": cls.__name__,
            "description": f"{cls.__name__} environment",
            "readme_content": None,
            "version": "1.0.0",
            "author": None,
            "documentation_url": None,
        }

    def shape(self, cls: type) -> Shape:
        """How the methods of a class of environments are called."""
        shape = self._shapes.get(cls)
        if shape is None:
            shape = self._shapes[cls] = Shape.of(cls)
        return shape

    def note_dropped(self, dropped: list[str], shape: Shape) -> dict[str, Any] | Failure:
        """What is said of keys that `reset` does not take."""
        accepted = sorted(shape.reset_keywords)
        takes = ", ".join(accepted) or "nothing"
        named = ", ".join(repr(key[:100]) for key in dropped[:20])
        if self.strict_reset:
            return failure("invalid_request", f"reset() does not take {named}; it takes {takes}")
        new = [key for key in dropped if key not in self._told]
        if new and len(self._told) < 1000:
            self._told.update(new)
            logger.warning("%s: reset() does not take %s (left out); it takes %s", self.name, named, takes)
        return {"dropped": dropped, "accepted": accepted}

    def _tools(self, schema: dict[str, Any], look_for_them: bool) -> list[dict[str, Any]]:
        """The tools of every session: the environment's own, and `step` where it takes other actions too."""
        if not self.has_tools:
            return []
        lister = self.mcp[0].get("list_tools")
        tools: Any = None
        if look_for_them and lister is not None:
            tools = look(self.factory.make, self.factory.name, lambda env: _listed(env, lister, self.mode))
        own = [] if self.mcp[1] else [{"name": "step", "description": _STEP, "input_schema": schema}]
        return [*(tools or []), *own]

    def _capacity(self, max_concurrent: int | None) -> int | None:
        """The most sessions at once: what is asked for, 1 where the class says so, else None: as the machine bears."""
        alone = self.factory.concurrent is False
        if max_concurrent is not None and max_concurrent < 1:
            raise ValueError(f"the most sessions at once is {max_concurrent}; it is at least 1")
        if alone and max_concurrent is not None and max_concurrent > 1:
            cls = self.factory.cls
            raise ConcurrencyConfigurationError(cls.__name__ if cls is not None else self.name, max_concurrent)
        return 1 if alone else max_concurrent

    def _affinity(self) -> Affinity:
        if self.factory.single_thread:
            return "class"
        affinity: Any = getattr(self.factory.cls, "thread_affinity", "session")
        if affinity not in ("any", "session", "class"):
            raise AuthoringError(f"{self.name}.thread_affinity is {affinity!r}; use 'any', 'session' or 'class'")
        chosen: Affinity = affinity
        return chosen


def is_openenv(value: Any) -> bool:
    """Whether this is a class of OpenEnv environments: one that is reset, takes steps and has a state."""
    if not isinstance(value, type):
        return False
    plays = all(hasattr(value, part) for part in ("reset", "step", "state"))
    return plays or any(is_base(base) for base in value.__mro__)


def offering_of(
    env: type | Callable[[], Any], action_cls: Any = None, observation_cls: Any = None, **options: Any
) -> OpenEnvOffering:
    """The offering of an environment, whose models come from its types where they are not given.

    They are those of `Environment[Action, Observation, State]`, or of the annotations of `step`.
    """
    cls = Factory(env).cls if action_cls is None or observation_cls is None else None
    return OpenEnvOffering(
        env,
        action_cls or _hinted(cls, 0, "action"),
        observation_cls or _hinted(cls, 1, "return"),
        **options,
    )


def _hinted(cls: type | None, place: int, name: str) -> Any:
    for base in getattr(cls, "__mro__", ()):
        for generic in vars(base).get("__orig_bases__", ()):
            arguments = get_args(generic)
            if len(arguments) == 3 and hasattr(arguments[place], "model_validate"):
                return arguments[place]
    for method in ("step", "step_async"):
        hint = annotation(getattr(cls, method, None), name)
        if hasattr(hint, "model_validate"):
            return hint
    what = "actions" if name == "action" else "observations"
    raise AuthoringError(
        f"the model of {what} of {getattr(cls, '__name__', 'this environment')} is not known: annotate its step(), "
        "or name its models with Environment[Action, Observation, State]"
    )


def _hinted_state(cls: type | None) -> Any:
    """The model of states, where the class says what it is."""
    state = inspect.getattr_static(cls, "state", None) if cls is not None else None
    hint = annotation(state.fget, "return") if isinstance(state, property) else None
    return hint if hasattr(hint, "model_json_schema") else None


_STEP = "Act in the environment. The input is the action; the result is what is observed after it."


def _listed(env: Any, lister: Any, mode: str) -> Any:
    """The tools that an environment lists, as data."""
    env._mode = mode
    seen = env.step(lister())
    tools = [tool.model_dump(include={"name", "description", "input_schema"}) for tool in seen.tools]
    dump(tools)  # what cannot be JSON is told now
    return tools


def _schema(model: Any) -> dict[str, Any]:
    if model is None:
        return {"type": "object"}
    try:
        schema: dict[str, Any] = model.model_json_schema()
    except Exception as exc:  # of a field whose type has no schema
        logger.warning("%s has no JSON Schema: %s", getattr(model, "__name__", model), exc)
        return {"type": "object", "title": getattr(model, "__name__", "object")}
    return schema


def _keeps_default_metadata(cls: type) -> bool:
    for base in cls.__mro__:
        if "get_metadata" in vars(base):
            return is_base(base)
    return True
