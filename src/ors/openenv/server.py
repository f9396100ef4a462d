"""`create_app`, `create_fastapi_app` and `HTTPEnvServer`: one OpenEnv environment as an application.

What is made is served by any ASGI server, by `ors serve`, and beside others by `ors.Server`. It answers over both
protocols. An environment that has no tasks says so (501); over `ors.Server` it has seeds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ors.openenv.models import ConcurrencyConfig, ServerCapacityStatus, ServerMode, SessionInfo, State
from ors.server.application import Application
from ors.server.entries import Entry, offering
from ors.server.mounting import live_with, routes_of
from ors.server.shell import Shell
from ors.settings import Settings

__all__ = ["HTTPEnvServer", "OpenEnvApp", "create_app", "create_fastapi_app"]

_WEB = "the web interface (ENABLE_WEB_INTERFACE, gradio_builder) is not there yet; the environment is served without it"


class OpenEnvApp(Shell):
    """The application of one environment: a FastAPI application to which routes and middleware may be added."""

    def __init__(self, application: Application, entry: Entry) -> None:
        super().__init__(application)
        self.title = "OpenEnv Environment HTTP API"
        self.entry = entry
        self.application = application
        self._own = routes_of(application)
        self.router.routes += self._own

    def added(self) -> tuple[list[Any], list[Any]]:
        """The routes and the middleware that were added to it."""
        return [route for route in self.router.routes if route not in self._own], list(self.user_middleware)


class HTTPEnvServer:
    """One environment, its routes, and how many sessions it has.

    env: what makes an environment, a new one each time. action_cls, observation_cls, state_cls, reset_observation_cls:
    its models. max_concurrent_envs: how many sessions there may be at once; without it as many as the machine bears,
    unless the class says that it is for one.
    """

    def __init__(
        self,
        env: Callable[[], Any],
        action_cls: Any,
        observation_cls: Any,
        max_concurrent_envs: int | None = None,
        concurrency_config: ConcurrencyConfig | None = None,
        env_name: str | None = None,
        state_cls: Any = State,
        *,
        reset_observation_cls: Any = None,
        mode: ServerMode | str | None = None,
    ) -> None:
        if max_concurrent_envs is not None and concurrency_config is not None:
            raise ValueError("give max_concurrent_envs or concurrency_config, not both")
        most = concurrency_config.max_concurrent_envs if concurrency_config is not None else max_concurrent_envs
        self.env = env
        self.action_cls = action_cls
        self.observation_cls = observation_cls
        self.state_cls = state_cls
        self.reset_observation_cls = reset_observation_cls or observation_cls
        options = {
            "name": env_name,
            "max_concurrent": most,
            "state_cls": state_cls if state_cls is not State else None,
            "reset_observation_cls": reset_observation_cls,
        }
        self.entry = Entry(env, True, action_cls, observation_cls, options)
        self._timeout = concurrency_config.session_timeout if concurrency_config is not None else None
        self._application: Application | None = None
        self._asked = concurrency_config
        self._offering: Any = offering(self.entry, self._settings(mode))
        self.env_name: str = self._offering.spec.name

    # The application

    def application(self, mode: ServerMode | str | None = None) -> Application:
        """The application, made once."""
        if self._application is None:
            settings = self._settings(mode)
            made = [self._offering] if settings.openenv_mode == self._offering.mode else []

            def make() -> list[Any]:
                return [made.pop() if made else offering(self.entry, settings)]

            self._application = Application(make, settings, settings.keys(), health="healthy", seeds=False)
        return self._application

    def register_routes(self, app: Any, mode: ServerMode | str = ServerMode.SIMULATION) -> None:
        """Add the routes to a FastAPI or Starlette application. Raises ValueError for a mode that there is not."""
        application = self.application(mode)
        for route in routes_of(application):
            app.router.routes.append(route)
        live_with(app, application)

    def _settings(self, mode: ServerMode | str | None) -> Settings:
        chosen = mode if mode is not None else os.environ.get("OPENENV_MODE", "simulation")
        word = chosen.value if isinstance(chosen, ServerMode) else str(chosen).lower()
        if word not in ("simulation", "production"):
            raise ValueError(f"Invalid mode: {chosen!r}. Must be one of: ['simulation', 'production']")
        given: dict[str, Any] = {"openenv_mode": word}
        if self._timeout is not None:
            given["session_idle"] = self._timeout
        return Settings.load(**given)

    # Capacity

    @property
    def active_sessions(self) -> int:
        """How many sessions there are."""
        host = self._application.host if self._application is not None else None
        return int(host.count(self.env_name)) if host is not None else 0

    @property
    def max_concurrent_envs(self) -> int:
        """How many there may be."""
        from ors.hosts.capacity import machine_bears

        most: int | None = self._offering.max_sessions
        return most if most is not None else machine_bears()

    @property
    def is_concurrency_safe(self) -> bool:
        """Whether the class may have several sessions at once."""
        return self._offering.factory.concurrent is not False

    @property
    def concurrency_config(self) -> ConcurrencyConfig:
        """How many sessions there may be, and how long an idle one is kept."""
        return self._asked or ConcurrencyConfig(
            max_concurrent_envs=self.max_concurrent_envs, session_timeout=self._timeout
        )

    def get_capacity_status(self) -> ServerCapacityStatus:
        """How full it is."""
        most = self.max_concurrent_envs
        return ServerCapacityStatus(active_sessions=min(self.active_sessions, most), max_sessions=most)

    def get_session_info(self, session_id: str) -> SessionInfo | None:
        """What is known of a session; None where there is none of this id."""
        host = self._application.host if self._application is not None else None
        about = host.about(session_id) if host is not None else None
        return SessionInfo(session_id=session_id, environment_type=self.env_name, **about) if about else None


def create_app(
    env: Callable[[], Any],
    action_cls: Any,
    observation_cls: Any,
    env_name: str | None = None,
    max_concurrent_envs: int | None = None,
    concurrency_config: ConcurrencyConfig | None = None,
    gradio_builder: Callable[..., Any] | None = None,
    custom_tab_name: str = "Custom",
    custom_tab_primary: bool = False,
    show_default_tab: bool = True,
    title_override: str | None = None,
    state_cls: Any = State,
    *,
    mode: ServerMode | str | None = None,
    reset_observation_cls: Any = None,
) -> OpenEnvApp:
    """An application that serves an environment. mode: without it the one that `OPENENV_MODE` says, else simulation.

    What is about a web interface is accepted, and a warning says that there is none. Raises TypeError for an instance
    in place of what makes one, ConcurrencyConfigurationError for more sessions than the class is written for.
    """
    if gradio_builder is not None or os.environ.get("ENABLE_WEB_INTERFACE", "").lower() in ("true", "1", "yes"):
        import logging

        logging.getLogger("ors.server").warning(_WEB)
    return create_fastapi_app(
        env,
        action_cls,
        observation_cls,
        max_concurrent_envs,
        concurrency_config,
        env_name,
        state_cls,
        mode=mode,
        reset_observation_cls=reset_observation_cls,
    )


def create_fastapi_app(
    env: Callable[[], Any],
    action_cls: Any,
    observation_cls: Any,
    max_concurrent_envs: int | None = None,
    concurrency_config: ConcurrencyConfig | None = None,
    env_name: str | None = None,
    state_cls: Any = State,
    *,
    mode: ServerMode | str | None = None,
    reset_observation_cls: Any = None,
) -> OpenEnvApp:
    """The same, without a word of a web interface."""
    server = HTTPEnvServer(
        env,
        action_cls,
        observation_cls,
        max_concurrent_envs,
        concurrency_config,
        env_name,
        state_cls,
        reset_observation_cls=reset_observation_cls,
        mode=mode,
    )
    app = OpenEnvApp(server.application(mode), server.entry)
    app.state.openenv_server = server
    return app
