"""What `ors serve` is asked to serve: `module`, `module:Class`, `file.py`, `file.py:Class` or a folder → environments.

Those are classes, ours or OpenEnv's, and what `create_app` made of the latter.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ors.cli import openenv_targets
from ors.cli.errors import CommandError
from ors.cli.importing import import_file, import_module
from ors.environment import Environment, tool_table

__all__ = ["Target", "load_targets"]


@dataclass(frozen=True, slots=True)
class Target:
    """One argument of `ors serve`, taken apart."""

    text: str
    file: Path | None
    module: str
    attribute: str | None

    @classmethod
    def parse(cls, text: str) -> Target:
        """Take an argument apart without importing anything. Raises CommandError for what cannot be a target."""
        source, colon, attribute = text.rpartition(":")
        if not colon or os.sep in attribute or "/" in attribute:  # no class: there is no colon, or it is a drive's
            source, attribute = text, ""
        if colon and source != text and not all(part.isidentifier() for part in attribute.split(".")):
            raise CommandError(
                f"'{text}': after the colon stands the name of a class, as in 'my_file.py:MyEnvironment'"
            )
        is_path = source.endswith(".py") or os.sep in source or "/" in source or source.startswith(("~", "."))
        if is_path or openenv_targets.is_folder(Path(source)):
            file = Path(source).expanduser().resolve()
            _check_file(text, file)
            return cls(text, file, "", attribute or None)
        if not source or not all(part.isidentifier() for part in source.split(".")):
            raise CommandError(
                f"'{text}' is neither a file nor a module; a target is 'my_file.py', 'my_file.py:MyEnvironment', "
                f"'my_package.my_module' or 'my_package.my_module:MyEnvironment'"
            )
        return cls(text, None, source, attribute or None)

    def folder(self) -> Path:
        """Where the source of the target lies, as far as that is known before it is imported."""
        if self.file is not None:
            return self.file if self.file.is_dir() else self.file.parent
        top = self.module.partition(".")[0]
        spec = importlib.util.find_spec(top)
        if spec is not None and spec.submodule_search_locations:
            return Path(next(iter(spec.submodule_search_locations)))
        return Path(spec.origin).parent if spec is not None and spec.origin else Path.cwd()

    def load(self) -> list[Any]:
        """Import the target and return its environments. Raises CommandError."""
        if self.file is not None and self.file.is_dir():
            return [openenv_targets.app_in(self.text, self.file)]
        module = import_file(self.text, self.file) if self.file is not None else import_module(self.text, self.module)
        where = self.file.name if self.file is not None else f"module '{self.module}'"
        if self.attribute is None:
            return _all_in(module, where)
        return _named(module, where, self.attribute)


def load_targets(targets: Sequence[str]) -> list[Any]:
    """Return the environments of all targets, in order and each once. Raises CommandError.

    Modules are looked for in the current folder too; a file finds its neighbours as a program in its place would.
    """
    parsed = [Target.parse(text) for text in targets]
    found: dict[Any, None] = {}
    for target in parsed:
        found.update(dict.fromkeys(target.load()))
    return list(found)


def _check_file(text: str, file: Path) -> None:
    if openenv_targets.is_folder(file):
        return
    if file.is_dir():
        package = (file / "__init__.py").exists()
        mend = f"serve the package by its module name: {file.name}" if package else "name a file in it"
        raise CommandError(f"'{text}' is a folder; {mend}")
    if not file.exists():
        beside = [path.name for path in file.parent.glob("*.py")] if file.parent.is_dir() else []
        hint = _closest(file.name, beside) or (f"; there is {', '.join(sorted(beside)[:10])}" if beside else "")
        missing = "there is no such file" if file.parent.is_dir() else "there is no such folder"
        raise CommandError(f"'{text}': {missing}{hint}")
    if file.suffix != ".py":
        raise CommandError(f"'{text}' is no Python file; a target ends in .py or names a module")


def _all_in(module: ModuleType, where: str) -> list[Any]:
    """The environments that a module offers: those in `__all__`, else its own, else those that it imports."""
    public = getattr(module, "__all__", None)
    names = [name for name in (vars(module) if public is None else public) if not name.startswith("_")]
    classes = list(dict.fromkeys(value for name in names if isinstance(value := getattr(module, name, None), type)))
    candidates = [cls for cls in classes if _is_environment(cls) and not inspect.isabstract(cls)]
    if public is None:
        package = module.__name__
        own = [cls for cls in candidates if cls.__module__ == package or cls.__module__.startswith(f"{package}.")]
        candidates = own or candidates
    # a base that only holds what its subclasses share is no environment of its own
    candidates = [
        cls
        for cls in candidates
        if not any(other is not cls and issubclass(other, cls) for other in candidates) or _has_tools(cls)
    ]
    candidates += openenv_targets.all_in(module, names, classes)
    if not candidates:
        raise CommandError(f"{where} has no environment to serve. {_inventory(module, classes)}")
    return candidates


def _named(module: ModuleType, where: str, attribute: str) -> list[Any]:
    value: Any = module
    for part in attribute.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            environments = [name for name, cls in vars(module).items() if _is_environment(cls)]
            hint = _closest(part, environments) or f". {_inventory(module, _own_classes(module))}"
            raise CommandError(f"{where} has no '{attribute}'{hint}") from None
    several = list(value) if isinstance(value, (list, tuple)) else [value]
    if not several:
        raise CommandError(f"'{attribute}' of {where} is empty; name a class or a list of classes")
    for cls in several:
        _check_class(cls, f"'{attribute}' of {where}")
    return several


def _check_class(value: Any, what: str) -> None:
    if openenv_targets.is_app(value) or openenv_targets.is_class(value):
        return
    if not isinstance(value, type) and openenv_targets.is_foreign_app(value):
        raise CommandError(openenv_targets.FOREIGN.format(what=what))
    if isinstance(value, Environment):
        raise CommandError(f"{what} is an instance of {type(value).__name__}; name the class itself")
    if not isinstance(value, type):
        raise CommandError(f"{what} is of type {type(value).__name__}; name a class that is an ors.Environment")
    if not _is_environment(value):
        raise CommandError(f"{what} is a class, but no ors.Environment{_foreign(value)}")
    if inspect.isabstract(value):
        raise CommandError(f"{what} is not complete: it does not define {_missing(value)}")


def _is_environment(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Environment) and value is not Environment


def _has_tools(cls: type[Environment]) -> bool:
    return cls.list_tools.__func__ is not Environment.list_tools.__func__ or bool(tool_table(cls))  # type: ignore[attr-defined]


def _foreign(cls: type) -> str:
    """Where a class gets its own idea of an environment from, if it has one."""
    for base in cls.__mro__:
        if base.__name__ == "Environment":
            return f": it is one of {base.__module__.partition('.')[0]}'s; import Environment and tool from ors instead"
    return ""


def _own_classes(module: ModuleType) -> list[type]:
    return [value for value in vars(module).values() if isinstance(value, type)]


def _inventory(module: ModuleType, classes: Iterable[type]) -> str:
    """What a module has instead of what was looked for."""
    lines = []
    for cls in classes:
        if cls is Environment:
            continue
        if _is_environment(cls):
            lines.append(
                f"{cls.__name__} is not complete: it does not define {_missing(cls)}"
                if inspect.isabstract(cls)
                else cls.__name__
            )
        elif cls.__module__ == module.__name__:
            lines.append(f"{cls.__name__} is no ors.Environment{_foreign(cls)}")
    shown = "; ".join(lines[:10]) + ("; …" if len(lines) > 10 else "")
    return f"It has: {shown}" if lines else "It defines no class; an environment is a subclass of ors.Environment"


def _missing(cls: type) -> str:
    return ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))


def _closest(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"; do you mean '{close[0]}'?" if close else ""
