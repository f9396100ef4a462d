"""Environments of the hub: their names, where they run there, and the packages of their clients."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from urllib.parse import urlsplit

from ors.openenv.clients.installed import InstalledEnvironment, installed, key_of
from ors.openenv.utils import hf_space_subdomain

__all__ = ["image_of", "is_of_hub", "package_of", "repository", "source_of", "space_url"]

logger = logging.getLogger("ors.openenv.client")

TRUST = "OPENENV_TRUST_REMOTE_CODE"
_HUB = "huggingface.co"
_YES = ("1", "true", "yes")
_INSTALL_S = 1800


def is_of_hub(name: str) -> bool:
    """Whether a name is one of the hub: `owner/name`, or an address there."""
    return "/" in name


def repository(name: str) -> str:
    """`owner/name`, also of an address there. Raises ValueError."""
    path = name.strip().strip("/")
    if "://" in path:
        parts = urlsplit(path)
        if (parts.hostname or "").removeprefix("www.") != _HUB:
            raise ValueError(f"{name!r} is no address of the hub; give the address of a server as base_url")
        path = parts.path
    elif path.startswith(f"{_HUB}/"):
        path = path.removeprefix(f"{_HUB}/")
    path = path.strip("/").removeprefix("spaces/")
    owner, _, rest = path.partition("/")
    if not owner or not rest or "/" in rest:
        raise ValueError(f"{name!r} is no environment of the hub; write owner/name")
    return path


def source_of(repo_id: str) -> str:
    """Where the source of an environment of the hub is, as pip and uv take it."""
    return f"git+https://{_HUB}/spaces/{repo_id}"


def space_url(repo_id: str) -> str:
    """Where an environment of the hub runs there, if it does."""
    return f"https://{hf_space_subdomain(repo_id)}.hf.space"


def image_of(repo_id: str, tag: str = "latest") -> str:
    """The container image of an environment of the hub."""
    return f"registry.hf.space/{hf_space_subdomain(repo_id)}:{tag}"


def package_of(repo_id: str, trust_remote_code: bool = False) -> InstalledEnvironment:
    """The package of an environment of the hub; it is installed where it is not, after its user has agreed.

    Agreed is by `trust_remote_code`, by the variable OPENENV_TRUST_REMOTE_CODE, or at the terminal. Raises ValueError
    where nobody agrees, where it cannot be installed, or where there is no environment in it.
    """
    expected = key_of(repo_id.partition("/")[2])
    before = installed()
    if expected in before:
        logger.info("%s is taken from %s, which is installed already", repo_id, before[expected].package)
        return before[expected]
    if not (trust_remote_code or _agreed(repo_id)):
        raise ValueError(
            f"{repo_id} is not installed: nobody has agreed to running its code here; pass trust_remote_code=True or "
            f"set {TRUST}=1 if you trust it, or skip_install=True to use it without its code"
        )
    _install(repo_id)
    after = installed()
    new = [key for key in after if key not in before]
    for key in (expected, *new):
        if key in after:
            return after[key]
    raise ValueError(f"{repo_id} was installed, and no environment of OpenEnv is there that was not before")


def _agreed(repo_id: str) -> bool:
    if os.environ.get(TRUST, "").strip().lower() in _YES:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    sys.stdout.write(
        f"The package of {repo_id} would be installed from {source_of(repo_id)}, and its code run on this machine.\n"
    )
    try:
        return input("Do you trust it? [y/N]: ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _install(repo_id: str) -> None:
    uv = shutil.which("uv")
    # this interpreter's packages, whichever environment uv would take to be meant
    command = [uv, "pip", "install", "--python", sys.executable] if uv else [sys.executable, "-m", "pip", "install"]
    command.append(source_of(repo_id))
    logger.info("installing: %s", " ".join(command))
    environ = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(  # noqa: S603  its user has agreed
            command, capture_output=True, text=True, env=environ, stdin=subprocess.DEVNULL, timeout=_INSTALL_S
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"{repo_id} was not installed within {_INSTALL_S} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise ValueError(f"{repo_id} cannot be installed by {' '.join(command)}:\n{said}")
