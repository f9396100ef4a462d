"""What the figures were measured on, and with which versions."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from cores import cores
from load import require_wrk
from peers import PINS, ROOT, installed_version
from servers import Subject

OURS_USES = ("fastapi", "starlette", "uvicorn", "uvloop", "httptools", "pydantic", "msgspec", "jiter")
PEERS_USE = ("fastapi", "starlette", "uvicorn", "uvloop", "httptools", "pydantic", "sse-starlette")


def describe(subjects: Iterable[Subject]) -> dict[str, str]:
    """One line for each thing that the figures depend on."""
    lines = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "pinned": "server to one core, load to another" if cores() else "nothing: only one core",
        "load average at start": f"{os.getloadavg()[0]:.2f}",
        "Python": platform.python_version(),
        "wrk": _first_line([require_wrk(), "--version"]),
        "ors-kit": f"{version('ors-kit')}, {_commit()}; {_versions(OURS_USES, Path(sys.executable))}",
    }
    for subject in subjects:
        name = subject.implementation
        if name in PINS and name not in lines:
            lines[name] = f"{installed_version(subject.python, name)}; {_versions(PEERS_USE, subject.python)}"
    return lines


def _versions(names: Iterable[str], python: Path) -> str:
    found = {name: installed_version(python, name) for name in names}
    return ", ".join(f"{name} {number or 'not installed'}" for name, number in found.items())


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip().splitlines()[0].partition("Copyright")[0].strip()


def _commit() -> str:
    try:
        commit = subprocess.run(
            ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
        )
        changed = subprocess.run(
            ["git", "-C", str(ROOT), "status", "--porcelain", "src"], capture_output=True, text=True
        )
    except FileNotFoundError:
        return "commit unknown"
    if commit.returncode:
        return "commit unknown"
    return f"commit {commit.stdout.strip()}" + (" with changes" if changed.stdout.strip() else "")
