"""A small server of OpenEnv's frames that knows nothing of ORS Kit: what containers and projects of these tests run."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

if os.environ.get("ENDS_AT_ONCE"):
    sys.exit("it ends at once")
print("it begins", flush=True)


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
    elif scope["type"] == "http":
        well = scope["path"] == "/health" and not os.environ.get("NEVER_WELL")
        await send({"type": "http.response.start", "status": 200 if well else 404, "headers": []})
        await send({"type": "http.response.body", "body": b'{"status": "healthy"}'})
    else:
        await talk(receive, send)


async def talk(receive: Any, send: Any) -> None:
    steps = 0
    await receive()
    await send({"type": "websocket.accept"})
    while (event := await receive())["type"] == "websocket.receive":
        message = json.loads(event["text"])
        if message["type"] == "close":
            await send({"type": "websocket.close"})
            return
        steps = 0 if message["type"] == "reset" else steps + (message["type"] == "step")
        said = {"steps": steps, "word": os.environ.get("WORD", ""), "pid": os.getpid()}
        if message["type"] == "state":
            answer: Any = {"type": "state", "data": {"episode_id": None, "step_count": steps, **said}}
        else:
            answer = {"type": "observation", "data": {"observation": said, "reward": None, "done": False}}
        await send({"type": "websocket.send", "text": json.dumps(answer)})
