"""Every setting as an option of a command: read from `Settings`, so that none can be missing."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ors.settings import Settings

__all__ = ["option_of", "with_settings", "words_for"]

# Options that stand for one of several values are named in the singular and can be repeated.
_SINGULAR = {"api_keys": "--api-key", "allowed_origins": "--allowed-origin"}
_FIRST = ("api_keys", "api_key_file", "return_errors", "log_level", "log_format")
"""What a server is started with most often; the others are listed after everything else."""


def option_of(setting: str) -> str:
    """The option of a setting: `--max-sessions` of `max_sessions`."""
    return _SINGULAR.get(setting, f"--{setting.replace('_', '-')}")


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `settings` an option for each setting; it gets those that were given."""
    own = [
        parameter
        for parameter in inspect.signature(command, eval_str=True).parameters.values()
        if parameter.name != "settings"
    ]
    names = (*_FIRST, *(name for name in Settings.model_fields if name not in _FIRST))
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(name))
        for name in names
    ]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        given = {name: value for name in names if (value := values.pop(name)) not in (None, [])}
        command(**values, settings=given)

    kept = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    run.__signature__ = inspect.Signature([*kept, *parameters])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*kept, *parameters)}
    return run


def words_for(settings: dict[str, Any]) -> list[str]:
    """Settings as words of a command line that gives them again."""
    words = []
    for name, value in settings.items():
        option = option_of(name)
        if isinstance(value, bool):
            words.append(option if value else f"--no-{option.removeprefix('--')}")
        else:
            several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
            words += [f"{option}={one}" for one in several]
    return words


def _annotation(name: str) -> Any:
    field = Settings.model_fields[name]
    option = option_of(name)
    kind = _kind(field.annotation)
    declared = f"{option}/--no-{option.removeprefix('--')}" if kind is bool else option
    known = f"ORS_{name.upper()}"
    if field.default not in (None, ()):
        known += f"; default {_shown(field.default)}"
    value = list[kind] if name in _SINGULAR else kind  # type: ignore[valid-type]
    told = typer.Option(declared, help=f"{field.description} ({known})", show_default=False)
    return Annotated[value | None, told]


def _kind(annotation: Any) -> Any:
    """The one type that an option's value is turned into."""
    while typing.get_origin(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        (annotation,) = (_kind(option) for option in typing.get_args(annotation) if option is not type(None))
    origin = typing.get_origin(annotation)
    if origin is tuple:
        return typing.get_args(annotation)[0]
    if origin is Literal or annotation in (bool, int, float, str, Path):
        return annotation
    raise TypeError(f"no option is known for a setting of type {annotation}")


def _shown(default: Any) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    return f"{default:g}" if isinstance(default, float) and default < 1e6 else str(default)
