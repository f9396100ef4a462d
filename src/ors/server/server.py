"""`Server`: environments served over HTTP."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ors.core.ports import Offering
from ors.errors import SettingsError
from ors.server.application import Application
from ors.server.entries import Entry, offering
from ors.settings import Settings

if TYPE_CHECKING:
    from ors.server.background import Background

__all__ = ["Server"]


class Server:
    """Serves environments. The first one also answers at the root.

    environments: classes of environments, also those that are written for OpenEnv, and what `create_app` made of such.
    settings: see `ors.settings.Settings`; single settings may be given by name.
    Raises AuthoringError when a class cannot be served as it is written, SettingsError for a bad setting.
    """

    def __init__(
        self,
        environments: Sequence[Any],
        return_errors: str | None = None,
        *,
        settings: Settings | None = None,
        **overrides: Any,
    ) -> None:
        if return_errors is not None:
            overrides["return_errors"] = return_errors
        if settings is not None:
            overrides = settings.model_dump(exclude_unset=True) | overrides
        self.settings = Settings.load(**overrides)
        self.environments = list(environments)
        if not self.environments:
            raise SettingsError("Server() needs at least one environment class")
        keys = self.settings.keys()
        entries = tuple(Entry.of(environment) for environment in self.environments)
        make = functools.partial(_offerings, entries, self.settings)
        apps = [environment for environment in self.environments if hasattr(environment, "added")]
        health = "healthy" if len(apps) == len(self.environments) == 1 else "ok"
        self.application = Application(make, self.settings, keys, health=health)
        self._apps = [app for app in apps if any(app.added())]
        self._has_keys = bool(keys)
        self._shell: Any = None

    @property
    def app(self) -> Any:
        """The application, for any ASGI server: a FastAPI application to which routes and middleware may be added."""
        if self._shell is None:
            from ors.server.shell import Shell

            self._shell = Shell(self.application)
            for app in self._apps:
                routes, middleware = app.added()
                self._shell.router.routes += routes
                self._shell.user_middleware += middleware
        return self._shell

    def _served(self) -> Any:
        return self.app if self._shell is not None or self._apps else self.application

    def run(self, host: str = "0.0.0.0", port: int = 8080) -> None:
        """Serve until SIGTERM or SIGINT, then let running calls end, tear everything down and return."""
        from ors.server.run import run

        run(self._served(), self.application, host, port, has_keys=self._has_keys)

    def background(self) -> Background:
        """Serve in a thread, on a free port of 127.0.0.1: `with Server([MyEnvironment]).background() as url:`."""
        from ors.server.background import Background

        return Background(self._served(), self.application)


def _offerings(entries: tuple[Entry, ...], settings: Settings) -> list[Offering]:
    return [offering(entry, settings) for entry in entries]
