"""Clients and actions of environments by name: `AutoEnv.from_env("echo")`, `AutoAction.from_env("echo")`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any

from ors.openenv.clients import hub
from ors.openenv.clients.addresses import http_base, is_local
from ors.openenv.clients.generic import GenericAction, GenericEnvClient
from ors.openenv.clients.installed import InstalledEnvironment, installed, named
from ors.openenv.clients.launching import Launch
from ors.openenv.providers.base import health

__all__ = ["AutoAction", "AutoEnv", "EnvironmentUnavailable"]

_HERE_S, _THERE_S = 2.0, 5.0


class EnvironmentUnavailable(ConnectionError, ValueError):
    """Nothing answers where an environment's server was said to be."""


class AutoEnv:
    """Makes the client that belongs to an environment, by the environment's name. It has no instances."""

    def __init__(self) -> None:
        raise TypeError("AutoEnv has no instances: use AutoEnv.from_env(name)")

    @classmethod
    def from_env(
        cls,
        name: str,
        base_url: str | None = None,
        docker_image: str | None = None,
        container_provider: Any = None,
        wait_timeout: float = 30.0,
        env_vars: Mapping[str, str] | None = None,
        trust_remote_code: bool = False,
        skip_install: bool = False,
        **kwargs: Any,
    ) -> Any:
        """A client of an environment. It blocks until there is a server.

        name: "echo", "echo-env", "echo_env" of an installed package `openenv-echo-env`; or `owner/name` of the hub,
        whose package is installed if its user agrees (`trust_remote_code`, OPENENV_TRUST_REMOTE_CODE, the terminal).
        base_url: where its server is; one of this machine that is not there is started from `docker_image`, as is one
        without an address. A hub's environment that runs there is used there. skip_install: no code of the
        environment's is installed or imported, and the client is a GenericEnvClient. kwargs: options of the client.

        Raises ValueError for a name that is not known and for what cannot be started, EnvironmentUnavailable (both a
        ConnectionError and a ValueError) where no server answers, ImportError.
        """
        if skip_install:
            client, image = GenericEnvClient, docker_image
            repo_id = hub.repository(name) if hub.is_of_hub(name) else None
        else:
            found, repo_id = _found(name, trust_remote_code)
            client, image = found.client_class(), docker_image or found.default_image
        if base_url is None and repo_id is not None and docker_image is None:
            if not health(hub.space_url(repo_id), _THERE_S, proxies=True):
                return client(base_url=hub.space_url(repo_id), **kwargs)
            # whatever is called as custom has it on this machine, or elsewhere, need not be it
            image = hub.image_of(repo_id)
        if base_url is not None:
            base = http_base(base_url).rstrip("/")
            here = is_local(base_url)
            why = health(base, _HERE_S if here else _THERE_S, proxies=not here)
            if not why:
                return client(base_url=base_url, **kwargs)
            if not here or image is None:
                raise EnvironmentUnavailable(f"no server of {name!r} answers at {base_url}: {why}; start it first")
        if image is None:
            raise ValueError(f"without its package, {name!r} needs a base_url, or a docker_image to be started from")
        started = {"provider": container_provider, "wait_timeout": wait_timeout, "env_vars": dict(env_vars or {})}
        try:
            return _client_of(client.from_docker_image(image, **started, **kwargs))
        except ConnectionError as exc:
            raise EnvironmentUnavailable(f"the image {image!r} of {name!r} cannot be started: {exc}") from exc
        except Exception as exc:
            raise ValueError(f"the image {image!r} of {name!r} cannot be started: {exc}") from exc

    @classmethod
    def from_hub(cls, name: str, *args: Any, **kwargs: Any) -> Any:
        """Another name of `from_env`."""
        return cls.from_env(name, *args, **kwargs)

    @classmethod
    def get_env_class(cls, name: str) -> Any:
        """The class of an installed environment's client. Raises ValueError, ImportError."""
        return named(name).client_class()

    @classmethod
    def get_env_info(cls, name: str) -> dict[str, Any]:
        """What is known of an installed environment; nothing of it is imported. Raises ValueError."""
        about = named(name)
        client, action, observation = about.class_names()
        return {
            "env_key": about.key,
            "name": about.name,
            "package": about.package,
            "version": about.version,
            "description": about.description,
            "env_class": client,
            "action_class": action,
            "observation_class": observation,
            "module": about.client_module,
            "default_image": about.default_image,
            "spec_version": about.spec_version,
        }

    @classmethod
    def list_environments(cls) -> None:
        """Print the environments that are installed."""
        _print(
            "Available OpenEnv Environments",
            {each.key: (f"{each.description} (v{each.version})", each.package) for each in installed().values()},
        )


class AutoAction:
    """Finds the class of an environment's actions, by the environment's name. It has no instances."""

    def __init__(self) -> None:
        raise TypeError("AutoAction has no instances: use AutoAction.from_env(name)")

    @classmethod
    def from_env(cls, name: str, skip_install: bool = False, trust_remote_code: bool = False) -> Any:
        """The class of an environment's actions; with `skip_install` GenericAction, which takes any fields.

        Raises ValueError, ImportError; see `AutoEnv.from_env`.
        """
        if skip_install:
            return GenericAction
        return _found(name, trust_remote_code)[0].action_class()

    @classmethod
    def from_hub(cls, env_name: str, skip_install: bool = False, trust_remote_code: bool = False) -> Any:
        """Another name of `from_env`."""
        return cls.from_env(env_name, skip_install, trust_remote_code)

    @classmethod
    def get_action_info(cls, name: str) -> dict[str, Any]:
        """What is known of an installed environment's actions; nothing of it is imported. Raises ValueError."""
        about = named(name)
        _, action, observation = about.class_names()
        return {
            "env_key": about.key,
            "env_name": about.name,
            "package": about.package,
            "action_class": action,
            "observation_class": observation,
            "module": about.client_module,
        }

    @classmethod
    def list_actions(cls) -> None:
        """Print the actions of the environments that are installed."""
        _print(
            "Available Action Classes",
            {each.key: (each.class_names()[1], each.package) for each in installed().values()},
        )


def _found(name: str, trust_remote_code: bool) -> tuple[InstalledEnvironment, str | None]:
    """The installed package of an environment, and its name at the hub if it was named so."""
    if not hub.is_of_hub(name):
        return named(name), None
    repo_id = hub.repository(name)
    return hub.package_of(repo_id, trust_remote_code), repo_id


def _client_of(launched: Any) -> Any:
    if isinstance(launched, Launch):
        return launched.client()
    if inspect.isawaitable(launched):  # a client made with the openenv package
        from ors.openenv.utils import run_async_safely

        return run_async_safely(_awaited(launched))
    return launched


async def _awaited(launched: Any) -> Any:
    return await launched


def _print(title: str, lines: Mapping[str, tuple[str, str]]) -> None:
    rule = "-" * 70
    rows = [f"  {key:<15}: {what}\n{'':<19}Package: {package}" for key, (what, package) in lines.items()]
    if not rows:
        rows = ["  None are installed: pip install openenv-<name>"]
    sys.stdout.write("\n".join([f"{title}:", rule, *rows, rule, f"Total: {len(lines)}", ""]))
