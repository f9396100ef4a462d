"""Plays scenarios on the `openenv` package's own server, or on our adapter with that package's classes.

`python openenv_transcripts.py theirs|ours FOLDER` reads the scenarios from its input and prints what was answered.
FOLDER holds the modules of the environments. With `ours` it runs where both can be imported.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import sys
from types import SimpleNamespace
from typing import Any

PARTS = ("env_server", "env_server.types", "env_server.base_transforms", "env_server.mcp_environment", "rubrics")


def package() -> SimpleNamespace:
    """The names of the package that environments use."""
    names: dict[str, Any] = {}
    for part in PARTS:
        names |= vars(importlib.import_module(f"openenv.core.{part}"))
    return SimpleNamespace(**names)


def played_by_theirs(kind: tuple[Any, Any, Any], frames: list[Any], more: dict[str, Any]) -> list[Any]:
    from openenv.core.env_server import create_app
    from starlette.testclient import TestClient

    answers = []
    with TestClient(create_app(*kind, env_name="env", **more)) as client, client.websocket_connect("/ws") as socket:
        for frame in frames:
            socket.send_text(json.dumps(frame))
            answers.append(json.loads(socket.receive_text()))
    return answers


def played_by_ours(kind: tuple[Any, Any, Any], frames: list[Any], more: dict[str, Any]) -> list[Any]:
    from openenv_authoring.frames import answered
    from openenv_authoring.play import staged
    from ors.adapters.openenv_environment import OpenEnvOffering

    async def play() -> list[Any]:
        async with staged(OpenEnvOffering(*kind)) as stage:
            session = await stage.open()
            return [await answered(session, frame) for frame in frames]

    return asyncio.run(play())


def main() -> None:
    logging.disable()
    whose, folder = sys.argv[1:]
    sys.path.insert(0, folder)
    play = {"theirs": played_by_theirs, "ours": played_by_ours}[whose]
    loaded: dict[str, Any] = {}
    transcripts = []
    for scenario in json.load(sys.stdin):
        module = scenario["module"]
        if module not in loaded:
            loaded[module] = importlib.import_module(module).load(package())
        transcripts.append(play(loaded[module].kinds[scenario["kind"]], scenario["frames"], {}))
    print(json.dumps(transcripts))


if __name__ == "__main__":
    main()
