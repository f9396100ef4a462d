"""OpenEnv environments as targets of `ors serve`: classes, what `create_app` made, folders with an `openenv.yaml`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from ors.adapters.openenv_environment import is_openenv
from ors.cli.errors import CommandError
from ors.cli.importing import import_module, make_importable
from ors.environment import Environment
from ors.errors import AuthoringError
from ors.server.entries import Entry

__all__ = ["FOREIGN", "all_in", "app_in", "is_app", "is_class", "is_folder", "is_foreign_app"]

FOREIGN = (
    "{what} is an application that another package made; install ors-kit-openenv in place of openenv, which then makes "
    "it ours, or name the class of the environment"
)


def is_app(value: Any) -> bool:
    """Whether this is what `create_app` made."""
    return isinstance(getattr(value, "entry", None), Entry)


def is_foreign_app(value: Any) -> bool:
    """Whether this is an application that is not ours."""
    return not is_app(value) and callable(value) and hasattr(value, "router")


def is_class(value: Any) -> bool:
    """Whether this is a class of OpenEnv environments that is whole."""
    return (
        isinstance(value, type)
        and not issubclass(value, Environment)
        and is_openenv(value)
        and not inspect.isabstract(value)
        and not value.__module__.startswith(("ors.", "openenv."))
    )


def is_folder(path: Path) -> bool:
    """Whether this is the folder of an OpenEnv environment."""
    return path.is_dir() and (path / "openenv.yaml").is_file()


def all_in(module: ModuleType, names: Iterable[str], classes: Iterable[type]) -> list[Any]:
    """What a module has of OpenEnv's: applications, and those of its own classes that none of them serves."""
    values: list[Any] = [getattr(module, name, None) for name in names]
    apps = [value for value in values if is_app(value)]
    served = {app.entry.make for app in apps}
    own = [cls for cls in classes if is_class(cls) and cls.__module__ == module.__name__]
    bases = {base for cls in own for base in cls.__mro__[1:]}
    return [*dict.fromkeys(apps), *(cls for cls in own if cls not in served and cls not in bases and not apps)]


def app_in(text: str, folder: Path) -> Any:
    """The application of a folder, which its `openenv.yaml` names. Raises CommandError."""
    from ors.openenv.metadata import read_manifest

    try:
        manifest = read_manifest(folder)
    except (AuthoringError, ImportError) as exc:
        raise CommandError(" ".join(str(exc).split())) from None
    module_name, _, attribute = manifest.app.partition(":")
    # found as its own server is started, from within the folder; in a package also by the package's name
    make_importable(str(folder))
    if (folder / "__init__.py").exists() and folder.name.isidentifier():
        make_importable(str(folder.parent))
        module_name = f"{folder.name}.{module_name}"
    module = import_module(text, module_name)
    app: Any = module
    for part in (attribute or "app").split("."):
        app = getattr(app, part, None)
    if app is None:
        raise CommandError(f"'{text}': {module_name} has no '{attribute or 'app'}', which openenv.yaml names")
    if is_foreign_app(app):
        raise CommandError(FOREIGN.format(what=f"'{manifest.app}' of '{text}'"))
    if not is_app(app):
        raise CommandError(f"'{manifest.app}' of '{text}' is no application that create_app() made")
    return app
