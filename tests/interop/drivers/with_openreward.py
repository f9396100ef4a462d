"""Drives the client of openreward; run by the interpreter of its virtual environment."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from openreward import AsyncOpenReward, OpenReward
from openreward.api.environments.types import Message, Task, TextBlock
from scenarios import COMMON, Awaited, Scenario, attempt, in_threads, serve

OWN: dict[str, Scenario] = {}


class Openreward:
    """Both of its clients behind one face."""

    def __init__(self, inner: AsyncOpenReward | Any) -> None:
        self._inner = inner

    def environment(self, name: str, variant: str | None = None) -> Any:
        return self._inner.get(name, variant)

    def task(self, env_name: str, spec: dict[str, Any]) -> Task:
        return Task(server_name=env_name, environment_name=env_name, task_spec=spec, namespace=None)

    def secrets(self, given: dict[str, str]) -> dict[str, tuple[str, list[str]]]:
        # only well-known names may come without the domains they are for
        return {name: (value, ["example.com"]) for name, value in given.items()}


class _Threaded:
    """Its synchronous environments, in threads: it runs its own loop, so that many may call at once."""

    def __init__(self, client: OpenReward, threads: Awaited) -> None:
        self._client, self._threads = client, threads

    def get(self, name: str, variant: str | None) -> Awaited:
        return Awaited(self._client.environments.get(name, variant), self._threads._pool)


@asynccontextmanager
async def opened(url: str, sync: bool, key: str | None) -> AsyncIterator[Openreward]:
    """A client for one server, closed at the end."""
    # the documented way to a server on one's own machine; a base URL alone gets subdomains put in front of it
    os.environ.update(OPENREWARD_API_URL=url, OPENREWARD_SESSION_URL=url)
    if sync:
        client = OpenReward(api_key=key)
        async with in_threads(client, 32) as threads:
            yield Openreward(_Threaded(client, threads))
        client.close()
        return
    asynchronous = AsyncOpenReward(api_key=key)
    yield Openreward(asynchronous.environments)
    await asynchronous.environments.aclose()


def own(function: Scenario) -> Scenario:
    """Register what only this client can do."""
    OWN[function.__name__] = function
    return function


@own
async def extras(client: Openreward) -> Any:
    """What it asks of a server and of a session beyond ORS."""
    env, owned = client.environment("probe"), client.environment("someone/probe")
    report = {
        "list_required_secrets": await attempt(env.list_required_secrets()),
        "owned list_required_secrets": await attempt(owned.list_required_secrets()),
        "get_task_difficulty": await attempt(owned.get_task_difficulty(split="test")),
        "supports_score_group": await attempt(env.supports_score_group()),
        "prompt without a session": await attempt(env.get_prompt(client.task("probe", {}))),
    }
    async with env.session(split="test", index=7, env_overrides={"OPENAI_BASE_URL": "http://127.0.0.1:1"}) as session:
        report["version"] = await attempt(session.version())
        for form in (None, "openai", "openrouter", "anthropic", "google"):
            report[f"get_messages {form}"] = await attempt(session.get_messages(form))
        report["session supports_score_group"] = await attempt(session.supports_score_group())
        message = Message(role="assistant", blocks=[TextBlock(text="14")])
        report["score_group"] = await attempt(session.score_group([[message]]))
    return report


@own
async def terminal(client: Openreward, name: str, variant: str | None, message: str) -> Any:
    """Everything about terminal tools."""
    env = client.environment(name, variant)
    report = {
        "env terminal_tool": await attempt(env.terminal_tool()),
        "env is_final": await attempt(env.is_assistant_message_final()),
    }
    async with env.session(split="test", index=0) as session:
        report["listed"] = await attempt(session.list_tools())
        report["terminal_tool"] = await attempt(session.terminal_tool())
        report["is_final"] = await attempt(session.is_assistant_message_final())
        report["call"] = await attempt(session.call_terminal_tool(message))
        report["again"] = await attempt(session.call_terminal_tool(message))
    return report


@own
async def toolset(client: Openreward, name: str) -> Any:
    """A session that asks for one of the hosted platform's toolsets."""

    async def play() -> Any:
        async with client.environment("probe").session(split="test", index=0, toolset=name) as session:
            return await session.list_tools()

    return await attempt(play())


if __name__ == "__main__":
    serve(opened, {**COMMON, **OWN})
