"""Every setting, in one place: from arguments, from environment variables (`ORS_…`), or from the command line.

An argument wins over an environment variable, which wins over the default.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from ors.errors import SettingsError

__all__ = ["Settings"]

Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class Settings(BaseSettings):
    """The settings of a server. Times are in seconds, sizes in bytes."""

    model_config = SettingsConfigDict(env_prefix="ORS_", extra="forbid", frozen=True, hide_input_in_errors=True)

    # who may ask
    api_keys: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        repr=False,
        description="Keys that clients must send; separated by commas in the environment variable.",
    )
    api_key_file: Path | None = Field(default=None, description="A file with one API key per line; # starts a comment.")
    allowed_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="Browser origins besides the server's own that may send requests."
    )

    # what is told
    return_errors: Literal["none", "exception", "stacktrace"] = Field(
        default="exception", description="How much of an exception in an environment clients are told."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="What is logged.")
    log_format: Literal["console", "json"] = Field(default="console", description="How logs are written.")
    capture_output: bool = Field(
        default=True, description="Keep what tools print with their calls (64 KiB each) instead of printing it."
    )

    # OpenEnv
    openenv_mode: Literal["simulation", "production"] = Field(
        default="simulation", description="In production OpenEnv's routes for trainers are not there."
    )
    strict_reset: bool = Field(
        default=False,
        description="Refuse keys that an environment's reset() does not take, instead of leaving them out.",
    )
    session_cookie: bool = Field(
        default=False, description="Let POST /reset set a cookie that names the session of its episode."
    )

    # limits
    max_message: Count = Field(default=100 << 20, description="The largest message over a WebSocket.")
    max_body: Count = Field(default=32 << 20, description="The largest request body.")
    max_sessions: Count = Field(default=100_000, description="Sessions open at once.")
    max_calls: Count = Field(default=100_000, description="Calls running or queued at once.")
    max_streams: Count = Field(default=20_000, description="Calls whose clients wait for them at once.")
    max_threads: Count = Field(default=4096, description="Threads for synchronous environment code.")
    max_zombies: Count = Field(default=64, description="Threads that ignore their time limit before /ready says no.")
    result_memory: Count = Field(default=512 << 20, description="Memory for results kept for reconnection.")
    result_disk: Count = Field(default=8 << 30, description="Disk space for large results kept for reconnection.")

    # times
    session_idle: Seconds = Field(default=900.0, description="Seconds without a request or ping that end a session.")
    result_keep: Annotated[float, Field(ge=60)] = Field(default=60.0, description="Seconds that a result is kept.")
    call_timeout: Seconds | None = Field(
        default=None, description="Seconds that a call may take, unless its tool says."
    )
    setup_timeout: Seconds | None = Field(default=None, description="Seconds that the setup of a session may take.")
    teardown_timeout: Seconds = Field(default=30.0, description="Seconds that a teardown may take.")
    call_ceiling: Seconds = Field(
        default=86_400.0, description="Seconds after which a running call keeps no session alive."
    )
    cut_grace: Seconds = Field(default=5.0, description="Seconds that code has to end once its time is over.")
    blocked_warning: Seconds = Field(
        default=1.0, description="Seconds after which code that blocks its event loop is named."
    )
    blocked_limit: Seconds = Field(default=60.0, description="Seconds after which a blocked event loop is given up.")
    shutdown_grace: Annotated[float, Field(ge=0)] = Field(
        default=30.0, description="Seconds that running calls have to end when the server stops."
    )
    retry_after: Seconds = Field(default=2.0, description="Seconds that refused clients are told to wait.")

    socket_ping: Seconds = Field(default=20.0, description="Seconds between pings to the clients of WebSockets.")
    socket_keep: Seconds = Field(
        default=60.0,
        description="Seconds that a session waits for a client whose WebSocket broke, if it asked for that.",
    )
    http_keep: Seconds = Field(
        default=300.0, description="Seconds that a session made by POST /reset waits for a first step."
    )

    # where sessions live
    host_process: Literal["local", "spawned"] = Field(
        default="local", description="Whether environments run in the server's process or in one that it spawns."
    )
    id_key: str | None = Field(
        default=None, repr=False, description="A secret shared by servers that must recognise each other's ids."
    )

    @field_validator("api_keys", "allowed_origins", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("log_level", "log_format", "return_errors", "openenv_mode", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value  # ORS_LOG_LEVEL=INFO is what existing code sets

    @field_validator("api_keys")
    @classmethod
    def _check_keys(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for key in value:
            if not key or not key.isascii() or not key.isprintable() or key != key.strip():
                raise ValueError("an API key is printable ASCII text without blanks around it")
        return value

    @classmethod
    def load(cls, **arguments: Any) -> Settings:
        """Read the settings. Raises SettingsError that names the setting and what it accepts."""
        try:
            return cls(**arguments)
        except ValidationError as exc:
            faults = []
            for error in exc.errors(include_url=False, include_input=False, include_context=False):
                name = ".".join(str(part) for part in error["loc"]) or "settings"
                faults.append(f"{name} (ORS_{name.upper()}): {error['msg'].removeprefix('Value error, ')}")
            raise SettingsError("; ".join(faults)) from None

    def keys(self) -> tuple[str, ...]:
        """All API keys: the setting's and the file's. Raises SettingsError when the file cannot be used."""
        if self.api_key_file is None:
            return self.api_keys
        try:
            lines = self.api_key_file.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as exc:
            raise SettingsError(f"api_key_file: {self.api_key_file} cannot be read: {exc}") from exc
        found = tuple(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))
        if not found:
            raise SettingsError(f"api_key_file: {self.api_key_file} holds no key; write one per line")
        try:
            return (*self.api_keys, *self._check_keys(found))
        except ValueError as exc:
            raise SettingsError(f"api_key_file: {self.api_key_file}: {exc}") from None
