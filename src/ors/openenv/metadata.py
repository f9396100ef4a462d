"""What is said of an environment outside its code: its README, and the `openenv.yaml` of its folder."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ors.errors import AuthoringError, describe_errors
from ors.openenv.environment import Environment
from ors.openenv.models import EnvironmentMetadata

__all__ = ["EnvironmentManifest", "load_environment_metadata", "read_manifest"]

_IN_IMAGES = ("/app/env/README.md", "/app/README.md")


def load_environment_metadata(env: Any, env_name: str | None = None) -> EnvironmentMetadata:
    """What an instance says of itself; of what makes instances its name, and the README where one is found.

    A README is looked for where `ENV_README_PATH` says, in `envs/<env_name>`, and where images of environments have it.
    """
    if isinstance(env, Environment) or (not isinstance(env, type) and callable(getattr(env, "get_metadata", None))):
        return cast(EnvironmentMetadata, env.get_metadata())
    while isinstance(env, functools.partial):
        env = env.func
    name = env.__name__ if isinstance(env, type) or not env_name else env_name
    return EnvironmentMetadata(
        name=env_name or name,
        description=f"{name} environment",
        version="1.0.0",
        readme_content=_readme(env_name),
    )


def _readme(env_name: str | None) -> str | None:
    said = os.environ.get("ENV_README_PATH")
    places = [said, f"envs/{env_name}/README.md" if env_name else None, *_IN_IMAGES]
    for place in places:
        try:
            if place and (text := Path(place).read_text(encoding="utf-8")):
                return text
        except (OSError, ValueError):  # not there, or not a text
            continue
    return None


class EnvironmentManifest(BaseModel):
    """The `openenv.yaml` of an environment. Fields that are not known here are kept as they are."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(min_length=1, description="The name of the environment")
    spec_version: int | None = Field(default=None, description="The version of the form")
    version: str | None = Field(default=None, description="The version of the environment")
    description: str | None = Field(default=None, description="What the environment does")
    type: str | None = Field(default=None, description="Where it is published")
    runtime: str | None = Field(default=None, description="What its server is made of")
    app: str = Field(default="server.app:app", description="Where its application is: `module:name`")
    port: int = Field(default=8000, ge=1, le=65535, description="The port of its server")
    variables: dict[str, Any] = Field(default_factory=dict, description="Variables for its server")
    validation: dict[str, Any] = Field(default_factory=dict, description="What validators are to know of it")


def read_manifest(path: str | os.PathLike[str]) -> EnvironmentManifest:
    """Read the `openenv.yaml` at a path, or in the folder at a path. Raises AuthoringError when it is not fit."""
    file = Path(path)
    if file.is_dir():
        file = file / "openenv.yaml"
    try:
        import yaml
    except ImportError:
        raise ImportError(f"reading {file.name} needs PyYAML: pip install 'ors-kit[openenv]'") from None
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise AuthoringError(f"there is no {file}") from None
    except (OSError, ValueError, yaml.YAMLError) as exc:
        raise AuthoringError(f"{file} cannot be read: {exc}") from None
    if not isinstance(data, dict):
        raise AuthoringError(f"{file} holds no mapping; it needs at least a name")
    if isinstance(data.get("version"), (int, float)):  # 1.0 without quotes is a number in YAML
        data["version"] = str(data["version"])
    try:
        return EnvironmentManifest.model_validate(data)
    except ValidationError as exc:
        raise AuthoringError(f"{file}: {describe_errors(exc)}") from None
