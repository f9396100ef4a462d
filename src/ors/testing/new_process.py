"""The same tasks, asked for in a new process: what `hash()`, sets and the clock decide comes out differently there."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from ors.tasks.keys import task_key

__all__ = ["keys_elsewhere"]

_LIMIT_S = 120
Places = Sequence[tuple[str, int]]


def keys_elsewhere(cls: type, places: Places) -> list[str] | str:
    """The keys of tasks as a new process has them, or why it cannot be asked."""
    if "<locals>" in cls.__qualname__ or cls.__module__ == "__main__":
        return "a new process cannot import a class that is defined in a function or a script"
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    asked = {
        "module": cls.__module__,
        "file": file,
        "class": cls.__qualname__,
        "path": sys.path,
        "places": list(places),
    }
    environ = {**os.environ, "PYTHONHASHSEED": "random"}
    try:
        done = subprocess.run(  # noqa: S603  this module itself
            [sys.executable, "-m", __name__],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            env={**environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)},
            timeout=_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return f"the new process did not end within {_LIMIT_S} s"
    if done.returncode:
        words = done.stderr.strip().splitlines()
        return f"the new process failed: {words[-1] if words else done.returncode}"
    found: list[str] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _load(asked: dict[str, Any]) -> Any:
    try:
        module = importlib.import_module(asked["module"])
    except ImportError:
        spec = importlib.util.spec_from_file_location(asked["module"], asked["file"])
        if spec is None or spec.loader is None:
            raise
        module = importlib.util.module_from_spec(spec)
        sys.modules[asked["module"]] = module
        spec.loader.exec_module(module)
    found: Any = module
    for name in asked["class"].split("."):
        found = getattr(found, name)
    return found


async def _keys(asked: dict[str, Any]) -> list[str]:
    from ors.testing.subjects import subject_of

    call, defines = subject_of(_load(asked))
    found, listed = [], {}
    for split, index in asked["places"]:
        if defines("get_task"):
            task = call("get_task", split, index)
            task = await task if inspect.isawaitable(task) else task
        else:
            if split not in listed:
                tasks = call("list_tasks", split)
                listed[split] = list(await tasks if inspect.isawaitable(tasks) else tasks)
            task = listed[split][index]
        found.append(task_key(task))
    return found


if __name__ == "__main__":
    request = json.loads(sys.stdin.read())
    print(json.dumps(asyncio.run(_keys(request))))  # noqa: T201  the answer
