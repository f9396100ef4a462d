"""The peers: each from the package registry, unchanged, in a virtual environment of its own under `.venvs`.

They cannot live in ours: one has our import name, and both pin versions of what we use.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENVS = ROOT / ".venvs"
PINS = {"ors-sdk": "0.1.0", "openreward": "0.1.167", "openenv": "0.10.0"}
HARNESSES = {"firehorse-cli": "0.1.4", "inspect-openreward": "0.3.0"}
"""What plays with openreward's client inside, and asks a model through OpenAI's."""
BESIDE = dict.fromkeys(HARNESSES, ("openai>=2.8", f"openreward=={PINS['openreward']}"))
"""What a harness leaves to its user to install."""
INSTALL_LIMIT_S = 600


class PeerUnavailable(Exception):
    """A peer could not be installed; the message says why and what is needed."""


def peer_python(name: str, *, home: Path | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The interpreter of a peer's virtual environment, which is made when it is not there or holds another version.

    Only one process at a time makes it; others wait for it. Raises PeerUnavailable.
    """
    home = home or VENVS / name
    python = home / "bin" / "python"
    home.parent.mkdir(exist_ok=True)
    with home.with_name(f"{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # pip installs what a distribution needs before the distribution itself, so this version also says "complete"
        version = {**PINS, **HARNESSES}[name]
        if _installed(python, name) != (version, sys.version_info[:2]):
            _make(home, python, [*BESIDE.get(name, ()), f"{name}=={version}"], environ or clean_environ())
    return python


def clean_environ(**extra: str) -> dict[str, str]:
    """The variables for a peer or a server: none that changes how Python, a client or a server behaves."""
    dropped = ("PYTHON", "ORS_", "OPENREWARD_", "LOG_LEVEL", "VIRTUAL_ENV", "COVERAGE")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    # the look-up of a newer version has no place in a test, and proxies are not for this machine's own ports
    return {**kept, "OPENREWARD_DISABLE_UPDATE_CHECK": "1", "no_proxy": "127.0.0.1", **extra}


def _installed(python: Path, name: str) -> tuple[str, tuple[int, int]] | None:
    if not python.exists():
        return None
    code = f"import importlib.metadata as m, sys; print(m.version({name!r}), *sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, env=clean_environ())
    if done.returncode:
        return None
    version, major, minor = done.stdout.split()
    return version, (int(major), int(minor))


def _make(home: Path, python: Path, requirements: list[str], environ: Mapping[str, str]) -> None:
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home)
    # our own pip does it: giving the peer one takes longer than all the rest
    command = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    problem = ""
    try:
        # the distribution itself comes last, since its version says that all is there
        for requirement in requirements:
            done = subprocess.run(
                [*command, "install", "--quiet", requirement],
                capture_output=True,
                text=True,
                env=environ,
                timeout=INSTALL_LIMIT_S,
            )
            problem = problem or (done.stderr.strip() if done.returncode else "")
    except subprocess.TimeoutExpired:
        problem = f"pip did not end within {INSTALL_LIMIT_S} s"
    if problem:
        shutil.rmtree(home, ignore_errors=True)
        raise PeerUnavailable(
            f"{requirements[-1]} cannot be installed. These tests play with the real client, so they need the package "
            f"registry (once: it is kept in {home.parent.name}/{home.name}). pip said:\n{problem[-2000:]}"
        )
