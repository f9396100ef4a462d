"""A client of sockets that knows nothing of ours: the `websockets` package, one frame at a time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

LIMIT_S = 30.0


class Socket:
    """A socket, and what is said over it as JSON."""

    def __init__(self, url: str, path: str = "/ws", **options: Any) -> None:
        address = url.replace("http://", "ws://") + path
        options = {"max_size": 1 << 30, "compression": None, "proxy": None, "open_timeout": LIMIT_S, **options}
        self.line: ClientConnection = connect(address, legacy=True, **options)
        assert self.line.response is not None
        self.sid = self.line.response.headers.get("X-Session-ID", "")

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, *exc: object) -> None:
        self.line.close()

    def say(self, message: Any) -> None:
        self.line.send(message if isinstance(message, str | bytes) else json.dumps(message))

    def hear(self) -> Any:
        text = self.line.recv(timeout=LIMIT_S)
        assert isinstance(text, str)
        return json.loads(text)

    def ask(self, message: Any) -> Any:
        """The whole answer to a message."""
        self.say(message)
        return self.hear()

    def reset(self, **data: Any) -> Any:
        answer = self.ask({"type": "reset", "data": data})
        assert answer["type"] == "observation", answer
        return answer["data"]

    def step(self, do: str = "add", number: int = 0, value: Any = None) -> Any:
        """The data of what is observed."""
        answer = self.ask({"type": "step", "data": {"do": do, "number": number, "value": value}})
        assert answer["type"] == "observation", answer
        return answer["data"]

    def state(self) -> Any:
        answer = self.ask({"type": "state"})
        assert answer["type"] == "state", answer
        return answer["data"]

    def error(self, message: Any = None) -> Any:
        """The data of the error that a message, or nothing at all, is answered with."""
        answer = self.ask(message) if message is not None else self.hear()
        assert answer["type"] == "error", answer
        return answer["data"]

    def call(self, method: str, id: Any = 1, **params: Any) -> Any:
        """The answer to a JSON-RPC request."""
        return self.ask({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

    def closed(self) -> int:
        """The code with which the server closes."""
        with pytest.raises(ConnectionClosed):
            self.line.recv(timeout=LIMIT_S)
        assert self.line.close_code is not None
        return self.line.close_code

    def cut(self) -> None:
        """Break the connection without a word."""
        self.line.socket.close()


def rpc(client: Any, method: str, *, id: Any = 1, path: str = "/mcp", **params: Any) -> Any:
    """The answer to a JSON-RPC request over HTTP."""
    answer = client.post(path, json={"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    assert answer.status_code == 200, answer.text
    return answer.json()
