"""The three types of a client, and how what a server sends is read as them."""

from __future__ import annotations

import functools
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, ForwardRef, TypeVar

from pydantic import BaseModel, TypeAdapter

__all__ = ["arguments_of", "named", "observed", "read"]

_PLAIN = (Any, dict, object)


def arguments_of(cls: type, root: type) -> tuple[Any, ...] | None:
    """What a class says that the type parameters of a root class are, through any bases between; None if nothing."""
    for base in getattr(cls, "__orig_bases__", ()):
        origin = typing.get_origin(base)
        if not isinstance(origin, type) or not issubclass(origin, root):
            continue
        given = dict(zip(getattr(origin, "__parameters__", ()), typing.get_args(base), strict=False))
        before = getattr(origin, "_types", ())
        return tuple(_put(kind, given) for kind in before)
    return None


def _put(kind: Any, given: Mapping[Any, Any]) -> Any:
    if isinstance(kind, TypeVar):
        return given.get(kind, kind)
    parameters = getattr(kind, "__parameters__", ())
    if parameters and not isinstance(kind, type):
        return kind[tuple(given.get(each, each) for each in parameters)]
    return kind


def named(kind: Any, cls: type) -> Any:
    """A type that was written as a text, found where the class was defined."""
    if isinstance(kind, ForwardRef):
        kind = kind.__forward_arg__
    if not isinstance(kind, str):
        return kind
    for each in cls.__mro__:
        place = vars(sys.modules.get(each.__module__, types))
        try:
            return eval(kind, dict(place))  # noqa: S307  what the class itself says, as annotations are read
        except NameError:
            continue
    raise TypeError(f"{cls.__name__} names the type {kind!r}, which is not to be found in {cls.__module__}")


def read(kind: Any, value: Any) -> Any:
    """A value as a type: a model, a union of models, a dataclass; as it is where the type says nothing of it."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind.model_validate(value)
    if kind in _PLAIN or isinstance(kind, TypeVar) or typing.get_origin(kind) in _PLAIN:
        return value
    return _adapter(kind).validate_python(value)


def observed(kind: Any, observation: Any, reward: Any, done: bool) -> Any:
    """An observation as a type. Reward and whether it is over are in it too, where it has places for them."""
    if isinstance(observation, Mapping):
        about = {"reward": reward, "done": done}
        observation = {**observation, **{name: about[name] for name in about if name in _fields(kind)}}
    return read(kind, observation)


@functools.lru_cache(maxsize=256)
def _fields(kind: Any) -> frozenset[str]:
    members = typing.get_args(kind) or (kind,)
    models = [each for each in members if isinstance(each, type) and issubclass(each, BaseModel)]
    return frozenset(name for model in models for name in model.model_fields)


@functools.lru_cache(maxsize=256)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
