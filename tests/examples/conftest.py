"""Examples are served as a reader serves them, by running their files, and played over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import aiohttp
import pytest
from example_files import EXAMPLES, load

T = TypeVar("T")


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


@pytest.fixture(scope="module")
def serve() -> Generator[Callable[..., Served]]:
    """Serve an example by its name, by running its file or as another launcher does.

    A server runs until the tests of the module end, and has to end well.
    """
    base = load("serving").ServerProcess
    running: dict[tuple[str, str], Served] = {}

    def start(name: str, launcher: str = "run_example.py") -> Served:
        if (name, launcher) not in running:
            launched = type("Launched", (base,), {"launcher": str(Path(__file__).with_name(launcher))})
            running[name, launcher] = Served(load(name), launched(EXAMPLES / f"{name}.py"))
        running[name, launcher].process.wait_until_ready()
        return running[name, launcher]

    yield start
    codes = {key: served.process.stop() for key, served in running.items()}
    for served in running.values():
        served.process.__exit__(None, None, None)
    assert codes == dict.fromkeys(codes, 0)
