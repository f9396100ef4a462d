"""What importing costs: `python -X importtime`, with the files in memory (warm) and not (cold)."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from cores import on_core
from peers import clean_environ
from servers import OPENREWARD, ORS_SDK, OURS, Subject


@dataclass(frozen=True)
class Statement:
    """What is imported, and where."""

    name: str
    subject: Subject
    code: str
    quick: bool = True


BARE_IMPORT = Statement("import ors", OURS, "import ors")
AUTHOR = Statement(
    "from ors import Environment, tool, ToolOutput", OURS, "from ors import Environment, tool, ToolOutput"
)
PYDANTIC = Statement(
    "pydantic with one model", OURS, "from pydantic import BaseModel\nclass Model(BaseModel):\n    answer: str"
)
WITH_SERVER = Statement("the same with Server", OURS, "from ors import Environment, Server, tool, ToolOutput")
ORS_SDK_SERVER = Statement(
    "ors-sdk: the same with Server", ORS_SDK, "from ors import Environment, Server, tool, ToolOutput"
)
OPENREWARD_SERVER = Statement(
    "openreward: the same with Server",
    OPENREWARD,
    "from openreward.environments import Environment, Server, tool\n"
    "from openreward.environments.types import ToolOutput",
    quick=False,
)
STATEMENTS = (BARE_IMPORT, PYDANTIC, AUTHOR, ORS_SDK_SERVER, WITH_SERVER, OPENREWARD_SERVER)


@dataclass
class ImportCost:
    """Milliseconds of each round, and the modules that took most of the last warm one themselves."""

    warm_ms: list[float] = field(default_factory=list)
    cold_ms: list[float] = field(default_factory=list)
    modules: int = 0
    heaviest: list[tuple[str, float]] = field(default_factory=list)

    def median_ms(self, kind: str) -> float:
        return median(self.warm_ms if kind == "warm" else self.cold_ms)


def measure_imports(subjects: Iterable[Subject], rounds: int, quick: bool) -> dict[str, ImportCost]:
    """Every statement once in each round, in a process of its own."""
    allowed = set(subjects)
    wanted = [one for one in STATEMENTS if one.subject in allowed and (one.quick or not quick)]
    results = {one.name: ImportCost() for one in wanted}
    with tempfile.TemporaryDirectory(prefix="ors-bench-") as folder:
        read = {}
        for number, one in enumerate(wanted):
            Path(folder, f"statement_{number}.py").write_text(one.code + "\n")
            read[one.name] = _files_read(one.subject, folder, number)
        for turn in range(rounds):
            print(f"  imports, round {turn + 1} of {rounds}", flush=True)
            for number, one in enumerate(wanted):
                cost = results[one.name]
                _forget(read[one.name])
                cost.cold_ms.append(_import(one.subject, folder, number)[0])
                taken, modules = _import(one.subject, folder, number)
                cost.warm_ms.append(taken)
                cost.modules = len(modules)
                cost.heaviest = sorted(modules, key=lambda entry: -entry[1])[:8]
    return results


def _import(subject: Subject, folder: str, number: int) -> tuple[float, list[tuple[str, float]]]:
    """Import one statement, as a module; the time with all that it caused, and each new module's own, in ms."""
    name = f"statement_{number}"
    told = _python(subject, folder, f"import {name}", "-X", "importtime").stderr
    modules: list[tuple[str, float]] = []
    for line in told.splitlines():
        if not line.startswith("import time:") or "|" not in line:
            continue
        own, total, module = line.removeprefix("import time:").split("|")
        module = module.strip()
        if not own.strip().isdigit():
            continue
        if module == name:
            return int(total) / 1e3, modules
        modules.append((module, int(own) / 1e3))
        if module == "site":
            modules.clear()
    raise RuntimeError(f"no time of {name} in: {told[-1500:]}")


_TELL_FILES = """
import sys
for module in list(sys.modules.values()):
    for name in (getattr(module, "__file__", None), getattr(module, "__cached__", None)):
        if name:
            print(name)
"""


def _files_read(subject: Subject, folder: str, number: int) -> list[Path]:
    """The files that importing a statement reads. Once this has returned, they have their bytecode beside them."""
    told = _python(subject, folder, f"import statement_{number}\n{_TELL_FILES}").stdout
    return [path for line in told.splitlines() if (path := Path(line)).is_file()]


def _python(subject: Subject, folder: str, code: str, *options: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(subject.python), *options, "-c", f"import sys; sys.path.insert(0, {folder!r})\n{code}"],
        capture_output=True,
        text=True,
        cwd=folder,
        env=clean_environ(),
        preexec_fn=on_core(0),
    )
    if done.returncode:
        raise RuntimeError(f"importing failed: {done.stderr[-1500:]}")
    return done


def _forget(files: Iterable[Path]) -> None:
    """Ask the kernel to drop its copies of files. Needs no privilege; what a process has mapped just now stays."""
    for path in files:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)
