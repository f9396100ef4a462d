"""What a provider has to offer, and how it waits for a server."""

from __future__ import annotations

import abc
import socket
import time
import urllib.error
import urllib.request
from typing import Any

__all__ = ["ContainerProvider", "RuntimeProvider", "free_port", "wait_until_healthy"]

_POLL_S = 0.1


class ContainerProvider(abc.ABC):
    """Starts a server from a container image."""

    @abc.abstractmethod
    def start_container(
        self, image: str, port: int | None = None, env_vars: dict[str, str] | None = None, **kwargs: Any
    ) -> str:
        """Start a container and return the address of its server. `port`: on this machine; None: any free one."""

    @abc.abstractmethod
    def stop_container(self) -> None:
        """Stop and remove the container; a second call does nothing."""

    def wait_for_ready(self, base_url: str, timeout_s: float = 30.0) -> None:
        """Wait until the server says that it is alive. Raises TimeoutError, with the server's last words."""
        wait_until_healthy(base_url, timeout_s, self.last_words)

    def last_words(self) -> str:
        """What the server wrote last, for errors."""
        return ""


class RuntimeProvider(abc.ABC):
    """Starts a server from its source."""

    @abc.abstractmethod
    def start(self, port: int | None = None, env_vars: dict[str, str] | None = None, **kwargs: Any) -> str:
        """Start the server and return its address. `port` None: any free one."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop it; a second call does nothing."""

    def wait_for_ready(self, base_url: str | None = None, timeout_s: float = 60.0) -> None:
        """Wait until the server says that it is alive. Raises TimeoutError, with the server's last words."""
        raise NotImplementedError


def wait_until_healthy(base_url: str, timeout_s: float, last_words: Any = None, alive: Any = None) -> None:
    """Ask `/health` until it answers 200. Raises TimeoutError; RuntimeError as soon as `alive()` is false."""
    deadline = time.monotonic() + timeout_s
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    why = ""
    while True:
        try:
            with opener.open(f"{base_url.rstrip('/')}/health", timeout=min(5.0, timeout_s)) as answer:
                if answer.status == 200:
                    return
                why = f"it answers {answer.status}"
        except urllib.error.HTTPError as exc:
            why = f"it answers {exc.code}"
        except OSError as exc:
            why = str(exc)
        said = last_words() if last_words is not None else ""
        about = f"; it said last:\n{said}" if said else ""
        if alive is not None and not alive():
            raise RuntimeError(f"the server at {base_url} ended before it was ready{about}")
        if time.monotonic() >= deadline:
            raise TimeoutError(f"the server at {base_url} was not ready within {timeout_s:g} s ({why}){about}")
        time.sleep(_POLL_S)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
