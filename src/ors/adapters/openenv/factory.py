"""What makes the environments of an offering, and what is known of them beforehand."""

from __future__ import annotations

import functools
import inspect
import logging
import threading
import typing
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec

from ors.errors import AuthoringError

__all__ = ["BASES", "Factory", "Shape", "annotation", "has_server", "is_base", "look"]

logger = logging.getLogger("ors.server")

BASES = frozenset(["ors.openenv.environment", "openenv.core.env_server.interfaces"])
"""Where the classes named Environment are that authors inherit from."""


class Shape(msgspec.Struct, frozen=True):
    """How the methods of a class of environments are called.

    reset, step: the names they take; None for any. reset_keywords: the names that `reset` takes for certain. is_mcp:
    it has tools of its own. steps_aside: what is not about these tools it does in `_step_impl`, which is synchronous.
    """

    reset_method: str
    reset: frozenset[str] | None
    reset_keywords: tuple[str, ...]
    step_method: str
    step: frozenset[str] | None
    is_mcp: bool
    steps_aside: bool

    @classmethod
    def of(cls, env: type) -> Shape:
        """The shape of a class."""
        reset_method = "reset_async" if _overrides(env, "reset_async") else "reset"
        step_method = "step_async" if _overrides(env, "step_async") else "step"
        reset, keywords = _accepted(getattr(env, reset_method))
        step, _ = _accepted(getattr(env, step_method))
        is_mcp = has_server(env)
        aside = is_mcp and _home(env, "step_async").__name__ == "MCPEnvironment"
        return cls(reset_method, reset, keywords, step_method, step, is_mcp, aside)


class Factory:
    """A class, a function or a partial that makes environments, each a new one.

    Of a function it is known what it makes if it says so in its annotation; else one is made and closed, on a thread
    of its own, to see what it is.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        if not callable(make):
            raise TypeError(
                f"env must be a callable (a class or a function) that makes an environment, not {type(make).__name__}"
                f" itself: pass the class {type(make).__name__}, or a function that returns a new one each time"
            )
        self.make = make
        inner: Any = make
        while isinstance(inner, functools.partial):
            inner = inner.func
        self.name: str = getattr(inner, "__name__", type(inner).__name__)
        self.cls = inner if isinstance(inner, type) else _returned(inner) or _made(make, self.name)
        if isinstance(inner, type) and (missing := sorted(getattr(inner, "__abstractmethods__", ()))):
            raise AuthoringError(f"{inner.__name__} does not define {', '.join(missing)}; every environment must")

    @property
    def single_thread(self) -> bool:
        """Whether all instances are made and called on one thread."""
        return bool(getattr(self.cls, "REQUIRES_SINGLE_THREAD_EXECUTOR", False))

    @property
    def concurrent(self) -> bool | None:
        """Whether sessions may be side by side: what the class says; None where it says nothing."""
        for base in getattr(self.cls, "__mro__", ()):
            if "SUPPORTS_CONCURRENT_SESSIONS" in vars(base):
                return None if is_base(base) else bool(base.SUPPORTS_CONCURRENT_SESSIONS)
        return None


def is_base(cls: type) -> bool:
    """Whether a class is the one that authors inherit from."""
    return cls.__name__ == "Environment" and cls.__module__ in BASES


def has_server(env: type | None) -> bool:
    """Whether a class of environments is one with the tools of a FastMCP server."""
    return hasattr(env, "mcp_session") and callable(getattr(env, "_step_impl", None))


def annotation(function: Any, name: str) -> Any:
    """What a function says the type of a parameter is, or of its result; None where it cannot be known."""
    hints = getattr(function, "__annotations__", {})
    if not isinstance(hints, dict) or name not in hints:
        return None
    one = SimpleNamespace(__annotations__={name: hints[name]})  # the others may be names that nobody knows
    try:
        return typing.get_type_hints(one, globalns=getattr(function, "__globals__", {}))[name]
    except Exception:
        return None


def _home(env: type, name: str) -> type:
    """The class that a class has an attribute from; `object` where it has none."""
    return next((base for base in env.__mro__ if name in vars(base)), object)


def _overrides(env: type, name: str) -> bool:
    """Whether a class has a method that is not the one of the base, which calls the synchronous method."""
    home = _home(env, name)
    return home is not object and not is_base(home)


def _accepted(method: Any) -> tuple[frozenset[str] | None, tuple[str, ...]]:
    """The keywords that a method takes, as a set (None for any) and in order."""
    try:
        parameters = list(inspect.signature(method).parameters.values())[1:]
    except (TypeError, ValueError):
        return None, ()
    names = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return None if takes_any else frozenset(names), names


def _returned(make: Any) -> type | None:
    """The class that a function says it returns."""
    hint = annotation(make, "return")
    plays = isinstance(hint, type) and hasattr(hint, "reset") and hasattr(hint, "step")
    return hint if plays and not is_base(hint) and hint.__name__ != "MCPEnvironment" else None


def _made(make: Callable[[], Any], name: str) -> type | None:
    """The class of what a function makes."""
    if inspect.iscoroutinefunction(make):
        return None
    found: type | None = look(make, name, type)
    return found if hasattr(found, "reset") and hasattr(found, "step") else None


def look(make: Callable[[], Any], name: str, ask: Callable[[Any], Any]) -> Any:
    """Make an environment on a thread of its own, ask something of it, and close it; None where that fails."""
    found: list[Any] = []

    def run() -> None:
        try:
            env = make()
            try:
                found.append(ask(env))
            finally:
                if callable(close := getattr(env, "close", None)) and not inspect.iscoroutinefunction(close):
                    close()
        except BaseException as exc:
            logger.warning("'%s' was called to see what it makes, and failed: %s: %s", name, type(exc).__name__, exc)

    thread = threading.Thread(target=run, name=f"ors-look-{name}", daemon=True)
    thread.start()
    thread.join()
    return found[0] if found else None
