"""Serving with uvicorn until a signal comes, then shutting down in order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import uvicorn

from ors._version import __version__
from ors.runtime import capture
from ors.server.application import Application
from ors.server.conflict import warn_if_shadowed
from ors.server.connection import Connection
from ors.server.logs import Logs

__all__ = ["is_loopback", "run"]

logger = logging.getLogger("ors.server")


class _Uvicorn(uvicorn.Server):
    """Signals are handled below: uvicorn would shut the door before running calls have ended."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def run(app: Any, application: Application, host: str, port: int, *, has_keys: bool) -> None:
    """Serve `app` until a signal comes. Raises SystemExit(1) when it cannot start."""
    settings = application.settings
    logs = Logs(settings.log_level, settings.log_format)
    if settings.capture_output:
        capture.install()
    try:
        warn_if_shadowed()
        if not has_keys and not is_loopback(host):
            logger.warning(
                "listening on %s without API keys: whoever reaches this port can list tasks with their answers and "
                "run tools; set ORS_API_KEYS, or bind 127.0.0.1",
                host,
            )
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            access_log=False,
            log_config=None,
            http=Connection,
            backlog=4096,
            timeout_keep_alive=75,
            server_header=False,
            date_header=False,
            lifespan="on",
            proxy_headers=False,
            ws="none",
        )
        server = _Uvicorn(config)
        with (
            contextlib.suppress(SystemExit),  # uvicorn's own, with another code, when the address is in use
            asyncio.Runner(loop_factory=config.get_loop_factory()) as runner,
        ):
            runner.run(_serve(server, application))
    finally:
        capture.uninstall()
        logs.close()
    if not server.started:
        raise SystemExit(1)


async def _serve(server: uvicorn.Server, application: Application) -> None:
    loop = asyncio.get_running_loop()
    stopping: list[asyncio.Task[None]] = []
    first = 0.0

    def stop(number: signal.Signals) -> None:
        nonlocal first
        if not stopping:
            first = loop.time()
            stopping.append(loop.create_task(_stop(server, application)))
        elif loop.time() - first < 1.0:
            return  # the same signal, sent to the process and to its group
        elif len(stopping) == 1:
            logger.warning("told again to stop: running calls have no more time")
            stopping.append(loop.create_task(application.host.drain(0)))
        elif number is signal.SIGINT:  # somebody at a terminal will not wait for teardowns
            os._exit(130)

    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stop, number)
        except (NotImplementedError, RuntimeError, ValueError):  # not the main thread: whoever runs us stops us
            break
    serving = loop.create_task(server.serve())
    announced = loop.create_task(_announce(server, application))
    try:
        await serving
    finally:
        announced.cancel()
        for task in stopping:
            task.cancel()


async def _announce(server: uvicorn.Server, application: Application) -> None:
    while not server.started:
        if server.should_exit:
            return
        await asyncio.sleep(0.005)
    _tune()
    for listening in server.servers:
        for socket in listening.sockets:
            address, port = socket.getsockname()[:2]
            shown = f"[{address}]" if ":" in address else address
            logger.info(
                "ORS Kit %s serves %s at http://%s:%d (docs at /docs)",
                __version__,
                ", ".join(application.host.offerings()),
                shown,
                port,
            )


async def _stop(server: uvicorn.Server, application: Application) -> None:
    """Refuse new episodes, let running calls end, end what is left with its reason, then shut the door."""
    grace = application.settings.shutdown_grace
    logger.info("shutting down: running calls have %g s to end", grace)
    if application.host is not None:
        await application.host.drain(grace)
        # the answers that the drain caused are on their way to the clients
        await asyncio.sleep(0.05)
    server.config.timeout_graceful_shutdown = 5
    server.should_exit = True


def _tune() -> None:
    """What is alive now stays alive: the collector need not look at it again. Young objects die young."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    sys.setswitchinterval(0.002)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
