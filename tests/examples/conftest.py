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
def serve() -> Generator[Callable[[str], Served]]:
    """Serve an example by its name; a server runs until the tests of the module end."""

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
