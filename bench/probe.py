"""Ask for /health again and again until told to stop; print when each request was sent and how long it took.

    probe.py PORT

A process of its own, so that what the load does to its own event loop is not taken for the server's slowness.
"""

import http.client
import json
import select
import sys
import time

connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=120)
taken = []
while not select.select([sys.stdin], [], [], 0.005)[0]:
    begun = time.monotonic()
    connection.request("GET", "/health")
    response = connection.getresponse()
    body = response.read()
    taken.append((begun, time.monotonic() - begun))
    if response.status != 200:
        raise SystemExit(f"/health answered {response.status}: {body!r}")
    if len(taken) == 1:
        print("ready", flush=True)
print(json.dumps(taken))
