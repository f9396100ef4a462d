"""Load for WebSocket sessions: steps_load.py PORT SESSIONS {SECONDS|idle|batch}. Prints what it counted as JSON.

Each session is reset and then steps as fast as it is answered. The frames are made once, and of an answer only its
length and its end are looked at, so that the measuring side costs little. idle: sockets are opened and held until the
standard input ends. batch: each session is reset and makes one step of a second, all of them at once.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import resource
import sys
import time

RIGHT = b'"reward":1.0,"done":false}}'


def frame(message: object) -> bytes:
    payload = json.dumps(message).encode()
    assert len(payload) < 126
    return bytes((0x81, 0x80 | len(payload))) + b"\0\0\0\0" + payload


RESET = frame({"type": "reset", "data": {"index": 1}})
STEP = frame({"type": "step", "data": {"answer": "2"}})
LONG_STEP = frame({"type": "step", "data": {"answer": "2", "wait_s": 1.0}})
BATCH_LIMIT_S = 60


class Player(asyncio.Protocol):
    """One session. `played` is told of each answer: when it was asked for, and whether it is right."""

    def __init__(self, run):
        self.run = run
        self.state = "handshake"
        self.buffer = b""
        self.asked = 0.0

    def connection_made(self, transport):
        self.transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        transport.write(
            f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )

    def connection_lost(self, exc):
        if not self.run.over:
            self.run.lost += 1

    def data_received(self, data):
        if self.buffer or self.state == "handshake":
            data = self.buffer + data
            self.buffer = b""
        if self.state == "handshake":
            head, end, data = data.partition(b"\r\n\r\n")
            if not end:
                self.buffer = head
                return
            assert head.startswith(b"HTTP/1.1 101"), head
            self.state = "reset"
            self.run.connected(self)
            if isinstance(self, OneStep):
                self.transport.write(RESET)
        while len(data) >= 4:
            size, at = data[1], 2
            if size == 126:
                size, at = int.from_bytes(data[2:4], "big"), 4
            if len(data) < at + size:
                break
            payload = data[at : at + size]
            if data[0] & 0x0F == 1:
                self.answered(payload)
            data = data[at + size :]
        self.buffer = data

    def answered(self, payload):
        run = self.run
        if self.state == "reset":
            assert b'"observation"' in payload, payload
            self.state = "play"
            run.reset_done()
            return
        now = time.perf_counter()
        if payload.endswith(RIGHT):
            run.right += 1
        else:
            run.wrong += 1
        if run.measuring:
            run.times.append(now - self.asked)
        if not run.over:
            self.asked = now
            self.transport.write(STEP)

    def play(self):
        self.asked = time.perf_counter()
        self.transport.write(STEP)


class OneStep(Player):
    """A session that makes one step and leaves."""

    def connection_lost(self, exc):
        self.end(False)

    def answered(self, payload):
        if self.state == "reset":
            if b'"observation"' not in payload:
                self.transport.close()
                return
            self.state = "play"
            self.transport.write(LONG_STEP)
        else:
            self.end(payload.endswith(RIGHT))
            self.transport.close()

    def end(self, right):
        if self.state != "over":
            self.state = "over"
            self.run.right += right
            self.run.done += 1
            if self.run.done == self.run.sessions:
                self.run.ended.set()


class Run:
    """All sessions together."""

    def __init__(self, port, sessions):
        self.port, self.sessions = port, sessions
        self.players = []
        self.left = sessions
        self.ready = asyncio.Event()
        self.all_there = asyncio.Event()
        self.over = self.measuring = False
        self.right = self.wrong = self.lost = 0
        self.times = []

    def connected(self, player):
        self.players.append(player)
        if len(self.players) == self.sessions:
            self.all_there.set()

    def reset_done(self):
        self.left -= 1
        if self.left == 0:
            self.ready.set()

    async def connect(self, player=None):
        loop = asyncio.get_running_loop()
        limit = asyncio.Semaphore(64)

        async def one():
            async with limit:
                await loop.create_connection(lambda: (player or Player)(self), "127.0.0.1", self.port)

        await asyncio.gather(*(one() for _ in range(self.sessions)), return_exceptions=player is not None)

    async def idle(self):
        await self.connect()
        await asyncio.wait_for(self.all_there.wait(), 60)
        print("connected", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        self.over = True
        return {"lost": self.lost}

    async def batch(self):
        """Every session at once; how many were served in time."""
        self.ended = asyncio.Event()
        self.done = 0
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(BATCH_LIMIT_S):
                await self.connect(OneStep)
                await self.ended.wait()
        except TimeoutError:
            pass
        return {"ok": self.right, "seconds": time.perf_counter() - begun}

    async def go(self, seconds):
        await self.connect()
        await asyncio.wait_for(self.all_there.wait(), 60)
        for player in self.players:
            player.transport.write(RESET)
        await asyncio.wait_for(self.ready.wait(), 60)
        for player in self.players:
            player.play()
        await asyncio.sleep(max(1.0, seconds / 4))
        self.right = self.wrong = 0
        self.measuring = True
        print("measuring", flush=True)
        begun = time.perf_counter()
        await asyncio.sleep(seconds)
        took = time.perf_counter() - begun
        right, wrong = self.right, self.wrong
        self.over = True
        times = sorted(self.times)
        return {
            "steps": right,
            "wrong": wrong,
            "lost": self.lost,
            "seconds": took,
            "rps": right / took,
            "p50_ms": times[len(times) // 2] * 1e3,
            "p99_ms": times[int(len(times) * 0.99)] * 1e3,
        }


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        import uvloop

        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    except ImportError:
        runner = asyncio.Runner()
    with runner:
        run = Run(int(sys.argv[1]), int(sys.argv[2]))

        async def main():
            if sys.argv[3] in ("idle", "batch"):
                return await getattr(run, sys.argv[3])()
            return await run.go(float(sys.argv[3]))

        print(json.dumps(runner.run(main())), flush=True)
