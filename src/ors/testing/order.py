"""The order of tasks in a new process: one is started, with another seed of hashes, and asked for the same tasks.

Run as a program, this module is that process. It reads what to ask from standard input, and writes what it got to a
file, since an author's code may print.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ors.testing.inspection import Inspection
from ors.testing.round_trip import canonical
from ors.testing.sampling import spread_of
from ors.testing.tasks import Found

__all__ = ["check_order"]

_MOST = 32


def check_order(look: Inspection, found: list[Found], defined: frozenset[str]) -> None:
    """Compare the tasks that were found with those of a new process."""
    wanted = {one.split: spread_of(list(one.tasks), _MOST) for one in found if one.tasks}
    if not wanted:
        return
    cls = look.cls
    if look.broken("task-same"):
        look.unseen("asked twice, it gives other tasks here already", "task-order")
        return
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file is None or "<locals>" in cls.__qualname__:
        look.unseen("the class is defined in a function, where no other process finds it", "task-order")
        return
    by_index = "get_task" in defined
    order = {
        "path": [entry or os.getcwd() for entry in sys.path],
        "module": cls.__module__,
        "file": file,
        "class": cls.__qualname__,
        "instance": look.kind == "steps",
        "by_index": by_index,
        "wanted": wanted,
    }
    answer = _asked(order, look.options.timeout_s)
    if isinstance(answer, str):
        look.unseen(f"a new process cannot be asked: {answer}", "task-order")
        return
    look.seen("task-order")
    method = "get_task" if by_index else "list_tasks"
    for one in found:
        for index, text in zip(wanted.get(one.split, []), answer.get(one.split, []), strict=False):
            here = canonical(one.tasks[index])
            if text is not None and canonical(json.loads(text)) != here:
                words = f"task {index} of '{one.split}' is {text:.80} in a new process, and {here:.80} here"
                look.complain("task-order", words, method)
                return


def _asked(order: dict[str, Any], timeout_s: float) -> dict[str, list[str | None]] | str:
    """What the new process says, or why it says nothing."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    with tempfile.TemporaryDirectory(prefix="ors-check-") as folder:
        into = Path(folder) / "tasks.json"
        try:
            done = subprocess.run(  # noqa: S603 - this interpreter, and a module of this package
                [sys.executable, "-c", "from ors.testing.order import main; main()", str(into)],
                input=json.dumps(order),
                capture_output=True,
                text=True,
                timeout=timeout_s,
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(order["path"])},
            )
        except (OSError, subprocess.TimeoutExpired) as exc:
            return str(exc).partition("\n")[0]
        if done.returncode != 0 or not into.exists():
            return (done.stderr.strip().splitlines() or ["it ended without an answer"])[-1][:300]
        answer: dict[str, list[str | None]] = json.loads(into.read_text("utf-8"))
        return answer


def main() -> None:
    """The new process."""
    from ors.adapters.class_tasks import ClassTasks
    from ors.core.failures import Failure
    from ors.core.ports import TaskQuery
    from ors.testing.tasks import ask

    order = json.load(sys.stdin)
    cls = functools.reduce(getattr, order["class"].split("."), _module(order["module"], order["file"]))
    tasks: Any = ClassTasks(cls, "exception") if not order["instance"] else _tasks_of_instances(cls)
    answer: dict[str, list[str | None]] = {}

    async def get(split: str, index: int) -> Any:
        value = ask(tasks, TaskQuery("get", split, index))
        return await value if inspect.isawaitable(value) else value

    for split, indices in order["wanted"].items():
        answer[split] = []
        for index in indices:
            task = asyncio.run(get(split, index))
            answer[split].append(None if isinstance(task, Failure) else json.dumps(task))
    Path(sys.argv[1]).write_text(json.dumps(answer), "utf-8")


def _tasks_of_instances(cls: Any) -> Any:
    from ors.adapters.openenv_environment import OpenEnvOffering
    from ors.openenv import Action, Observation

    # whatever its models are: no task needs them
    return OpenEnvOffering(cls, Action, Observation, list_tools=False).tasks


def _module(name: str, file: str) -> Any:
    """A module by its name, and if that is another file or none, by its file."""
    if name != "__main__":
        try:
            module = importlib.import_module(name)
            if os.path.realpath(getattr(module, "__file__", "") or "") == os.path.realpath(file):
                return module
        except ImportError:
            pass
        name = f"{name.replace('.', '_')}_as_file"
    else:
        name = Path(file).stem
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
