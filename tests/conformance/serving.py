"""Our server with the probe, in a thread, with a layer in front that can make one small fault for one visitor."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

import uvicorn

from ors import Server
from ors.conformance import Report, check_server, rows_of
from ors.conformance.table import Row

from .mutating import Mutator

LIMIT_S = 30.0
ROWS = rows_of("ors")


def probe_module() -> ModuleType:
    """The probe as a module."""
    name = "conformance_probe_environment"
    if name not in sys.modules:
        from importlib import resources

        path = resources.files("ors.conformance").joinpath("probe", "environment.py")
        spec = importlib.util.spec_from_file_location(name, str(path))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


class ServedProbe:
    """The probe and its second environment, served with a Mutator in front; a context manager."""

    def __enter__(self) -> ServedProbe:
        probe = probe_module()
        self.server = Server([probe.ConformanceProbe, probe.ConformanceCounted], shutdown_grace=0)
        self.mutator = Mutator(self.server.application)
        config = uvicorn.Config(
            self.mutator,
            host="127.0.0.1",
            port=0,
            log_config=None,
            access_log=False,
            lifespan="on",
            ws="none",
            timeout_graceful_shutdown=2,
        )
        self._uvicorn = uvicorn.Server(config)
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(config, ready), daemon=True)
        self._thread.start()
        assert ready.wait(LIMIT_S), "the server does not start"
        self.url = f"http://127.0.0.1:{self._uvicorn.servers[0].sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *exc: object) -> None:
        self._uvicorn.should_exit = True
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive(), "the server does not stop"

    def _run(self, config: uvicorn.Config, ready: threading.Event) -> None:
        async def main() -> None:
            serving = asyncio.ensure_future(self._uvicorn.serve())
            while not self._uvicorn.started and not serving.done():
                await asyncio.sleep(0.01)
            self.loop = asyncio.get_running_loop()
            ready.set()
            await serving

        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(main())

    def status(self) -> dict[str, Any]:
        """What the host says of itself."""
        host = self.server.application.host
        asked = asyncio.run_coroutine_threadsafe(host.status(), self.loop)
        status: dict[str, Any] = asked.result(LIMIT_S)
        return status


def visit(url: str, *only: str, fault: str | None = None, rows: tuple[Row, ...] = ROWS, **options: Any) -> Report:
    """Check a server; with a fault, as the visitor for whom that fault is made."""
    return asyncio.run(visiting(url, *only, fault=fault, rows=rows, **options))


async def visiting(
    url: str, *only: str, fault: str | None = None, rows: tuple[Row, ...] = ROWS, **options: Any
) -> Report:
    """The same where an event loop runs already."""
    headers = {"X-Fault": f"{fault}#{id(options)}"} if fault else {}
    return await check_server(url, rows, only=only, headers=headers, **options)
