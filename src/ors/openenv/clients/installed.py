"""Environments that are installed here: distributions named `openenv-…`, and the classes of their clients."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from ors.errors import AuthoringError

__all__ = ["InstalledEnvironment", "installed", "key_of", "named"]

logger = logging.getLogger("ors.openenv.client")

_PREFIX = "openenv-"
_NO_ENVIRONMENTS = ("openenv-core",)


@dataclass(frozen=True)
class InstalledEnvironment:
    """An environment whose package is installed. `key`: its short name, "echo" for `openenv-echo-env`."""

    key: str
    name: str
    package: str
    version: str
    description: str
    module: str
    spec_version: int | None = None
    action: str | None = None
    observation: str | None = None

    @property
    def default_image(self) -> str:
        """The container image that its package builds."""
        return f"{self.name.replace('_', '-')}:latest"

    @property
    def client_module(self) -> str:
        """The module of its client."""
        return f"{self.module}.client"

    def class_names(self) -> tuple[str, str, str]:
        """What its client, its action and its observation are called, by the manifest or by custom."""
        stem = "".join(word.capitalize() for word in self.key.split("_"))
        return f"{stem}Env", self.action or f"{stem}Action", self.observation or f"{stem}Observation"

    def client_class(self) -> Any:
        """The class of its client. Raises ImportError."""
        return self._class(self.class_names()[0], _is_client, "Env")

    def action_class(self) -> Any:
        """The class of its actions. Raises ImportError."""
        return self._class(self.class_names()[1], _is_action, "Action")

    def _class(self, name: str, fits: Any, what: str) -> Any:
        """A class by its name, else the only one of its kind: names are not always spelled as custom has it."""
        module = self._imported(self.client_module)
        found = getattr(module, name, None)
        if inspect.isclass(found):
            return found
        kinds = [value for _, value in sorted(vars(module).items()) if inspect.isclass(value) and fits(value, self)]
        alike = [kind for kind in kinds if kind.__name__.lower() == name.lower()]
        own = [kind for kind in kinds if kind.__module__ == module.__name__]
        for candidates in (alike, own, kinds):
            if len(candidates) == 1:
                return candidates[0]
        seen = ", ".join(kind.__name__ for kind in kinds) or "none"
        raise ImportError(f"there is no class {name} in {self.client_module} (classes of the kind {what}: {seen})")

    def _imported(self, module: str) -> ModuleType:
        try:
            return importlib.import_module(module)
        except ImportError as exc:
            raise ImportError(
                f"the client of {self.key!r} cannot be imported from {module}: {exc}; try pip install "
                f"--force-reinstall {self.package}"
            ) from exc


def installed() -> dict[str, InstalledEnvironment]:
    """The environments that are installed, by their keys. Nothing of theirs is imported."""
    importlib.invalidate_caches()
    found: dict[str, InstalledEnvironment] = {}
    for distribution in importlib.metadata.distributions():
        package = distribution.metadata["Name"] or ""
        canonical = re.sub(r"[-_.]+", "-", package).lower()
        if canonical.startswith(_PREFIX) and canonical not in _NO_ENVIRONMENTS:
            about = _about(package, canonical, distribution)
            # the first on the path is the one that would be imported
            found.setdefault(about.key, about)
    return dict(sorted(found.items()))


def named(name: str) -> InstalledEnvironment:
    """An environment by its name: "echo", "echo-env", "echo_env". Raises ValueError with the names that there are."""
    there = installed()
    key = key_of(name)
    if key in there:
        return there[key]
    if not there:
        raise ValueError(
            "no environments of OpenEnv are installed: pip install openenv-<name>, or name one of the hub, 'owner/name'"
        )
    alike = get_close_matches(key, there, n=3, cutoff=0.6)
    meant = f" Did you mean {', '.join(alike)}?" if alike else ""
    raise ValueError(f"Unknown environment '{name}'.{meant} Available environments: {', '.join(there)}")


def key_of(name: str) -> str:
    """The short name of an environment: "echo" for "echo-env"."""
    return name.strip().lower().replace("-", "_").removesuffix("_env")


def _about(package: str, canonical: str, distribution: importlib.metadata.Distribution) -> InstalledEnvironment:
    module = _module_of(canonical.removeprefix(_PREFIX).replace("-", "_"), distribution)
    manifest = _manifest(module)
    stem = key_of(manifest.get("name") or module)
    described = manifest.get("description")
    return InstalledEnvironment(
        key=stem,
        name=f"{stem}_env",
        package=package,
        version=distribution.version,
        description=described or f"{stem}_env environment",
        module=module,
        spec_version=manifest.get("spec_version"),
        action=manifest.get("action"),
        observation=manifest.get("observation"),
    )


def _module_of(customary: str, distribution: importlib.metadata.Distribution) -> str:
    """The module that a distribution brings: as custom has it, else the one in which a client is."""
    if importlib.util.find_spec(customary) is None:
        for file in distribution.files or ():
            if len(file.parts) == 2 and file.name == "client.py":
                return file.parts[0]
    return customary


def _manifest(module: str) -> dict[str, Any]:
    for folder in _folders(module):
        file = folder / "openenv.yaml"
        if file.is_file():
            from ors.openenv.metadata import read_manifest

            try:
                return read_manifest(file).model_dump()
            except (AuthoringError, ImportError) as exc:
                logger.warning("what %s says of itself is left out: %s", module, exc)
    return {}


def _folders(module: str) -> Iterator[Path]:
    spec = importlib.util.find_spec(module)
    yield from map(Path, (spec.submodule_search_locations or ()) if spec is not None else ())


def _is_client(kind: type, environment: InstalledEnvironment) -> bool:
    # the package's own: what it imports to inherit from is no client of this environment
    own = kind.__module__.partition(".")[0] == environment.module
    return own and callable(getattr(kind, "from_docker_image", None))


def _is_action(kind: type, environment: InstalledEnvironment) -> bool:
    own = kind.__module__.partition(".")[0] == environment.module
    return own and kind.__name__.endswith("Action")
