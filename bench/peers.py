"""The peers, each in a virtual environment of its own under `.venvs`; the interop tests make and use the same ones."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_HOME = ROOT / "tests" / "interop" / "peers.py"

# by its path: its folder has modules of the same names as ours
_spec = importlib.util.spec_from_file_location("interop_peers", _HOME)
assert _spec is not None
assert _spec.loader is not None
_shared = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_shared)

PINS: dict[str, str] = _shared.PINS
peer_python = _shared.peer_python
clean_environ = _shared.clean_environ


def installed_version(python: Path, name: str) -> str | None:
    """The version of a distribution in another environment, or None."""
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, env=clean_environ())
    return done.stdout.strip() if done.returncode == 0 else None
