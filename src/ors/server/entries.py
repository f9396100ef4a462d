"""What a server was given → offerings. An entry is data, so that another process can make the same offerings of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ors.adapters.openenv_environment import OpenEnvOffering, is_openenv, offering_of
from ors.adapters.ors_environment import ORSOffering
from ors.core.ports import Offering
from ors.environment import Environment
from ors.errors import AuthoringError
from ors.settings import Settings

__all__ = ["Entry", "offering"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One environment. For those of OpenEnv: models as they were given, and what else was said of it."""

    make: Callable[[], Any]
    openenv: bool = False
    action_cls: Any = None
    observation_cls: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, environment: Any) -> Entry:
        """The entry of a class, or of what `create_app` made. Raises AuthoringError."""
        if isinstance(environment, Entry):
            return environment
        if isinstance(entry := getattr(environment, "entry", None), Entry):
            return entry
        if isinstance(environment, type) and not issubclass(environment, Environment) and is_openenv(environment):
            return cls(environment, True)
        if inspect.isfunction(environment):
            raise AuthoringError(
                f"{environment.__name__} is a function; name a class, or give what create_app() made of the function"
            )
        return cls(environment)


def offering(entry: Entry, settings: Settings) -> Offering:
    """The offering of an entry. Raises AuthoringError."""
    if not entry.openenv:
        return ORSOffering(entry.make, errors=settings.return_errors)  # type: ignore[arg-type]
    options: dict[str, Any] = {
        "strict_reset": settings.strict_reset,
        "mode": settings.openenv_mode,
        "errors": settings.return_errors,
        **entry.options,
    }
    if entry.action_cls is not None and entry.observation_cls is not None:
        return OpenEnvOffering(entry.make, entry.action_cls, entry.observation_cls, **options)
    return offering_of(entry.make, entry.action_cls, entry.observation_cls, **options)
