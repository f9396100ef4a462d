"""Examples are served as a reader serves them, by running their files, and played over HTTP."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import aiohttp
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

T = TypeVar("T")


def load(name: str) -> ModuleType:
    """Import a file of the examples without putting their folder, in which `reasoning_gym.py` lies, on the path."""
    if name == "reasoning_gym" and importlib.util.find_spec("reasoning_gym") is None:
        pytest.skip("reasoning-gym is not installed: it needs a C compiler")
    if (known := sys.modules.get(f"example_{name}")) is not None:
        return known
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Served:
    """An example's module, its server, and a way to do things there."""

    def __init__(self, module: ModuleType, process: Any) -> None:
        self.module = module
        self.process = process

    def run(self, use: Callable[[Any], Awaitable[T]]) -> T:
        """Do something with a driver for this server and return what came of it."""

        async def drive() -> T:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as http:
                return await use(load("driver").Driver(self.process.url, http))

        return asyncio.run(drive())

    def play(self, env: str, task: dict[str, Any], act: Any, **options: Any) -> Any:
        """Play one episode."""
        return self.run(lambda driver: driver.play(env, task, act, **options))


@pytest.fixture(scope="session")
def serve() -> Generator[Callable[[str], Served]]:
    """Serve an example by its name; a server runs until the tests end."""

    class Launched(load("serving").ServerProcess):
        launcher = str(Path(__file__).with_name("run_example.py"))

    running: dict[str, Served] = {}

    def start(name: str) -> Served:
        if name not in running:
            module = load(name)
            running[name] = Served(module, Launched(EXAMPLES / f"{name}.py"))
            running[name].process.wait_until_ready()
        return running[name]

    yield start
    codes = {name: served.process.stop() for name, served in running.items()}
    for served in running.values():
        served.process.__exit__(None, None, None)
    assert codes == dict.fromkeys(codes, 0)
