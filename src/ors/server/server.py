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
        self.application = Application(make, self.settings, keys)
        self._has_keys = bool(keys)
        self._shell: Any = None

    @property
    def app(self) -> Any:
        """The application, for any ASGI server: a FastAPI application to which routes and middleware may be added."""
        if self._shell is None:
            from ors.server.shell import Shell

            self._shell = Shell(self.application)
        return self._shell

    def run(self, host: str = "0.0.0.0", port: int = 8080) -> None:
        """Serve until SIGTERM or SIGINT, then let running calls end, tear everything down and return."""
        from ors.server.run import run

        run(self._shell or self.application, self.application, host, port, has_keys=self._has_keys)

    def background(self) -> Background:
        """Serve in a thread, on a free port of 127.0.0.1: `with Server([MyEnvironment]).background() as url:`."""
        from ors.server.background import Background

        return Background(self._shell or self.application, self.application)


def _offerings(entries: tuple[Entry, ...], settings: Settings) -> list[Offering]:
    return [offering(entry, settings) for entry in entries]
