"""Call a tool of one session again and again until told to stop; print when each call was sent and how long it took.

    scale_calls.py PORT SPLIT

A process of its own, so that reading a large answer is not taken for the server's slowness.
"""

import asyncio
import json
import select
import sys
import time

from wire import Connection, call_tool


async def main() -> None:
    taken = []
    async with Connection(int(sys.argv[1])) as connection:
        sid = "calls-meanwhile"
        answer = await connection.request("POST", "/create", {"split": sys.argv[2], "index": 0}, sid)
        if answer.status != 200:
            raise SystemExit(f"/create answered {answer.status}: {answer.body[:300]!r}")
        while not select.select([sys.stdin], [], [], 0.002)[0]:
            begun = time.monotonic()
            await call_tool(connection, sid, "submit", {"answer": "0"})
            taken.append((begun, time.monotonic() - begun))
            if len(taken) == 100:
                print("ready", flush=True)
    print(json.dumps(taken))


asyncio.run(main())
