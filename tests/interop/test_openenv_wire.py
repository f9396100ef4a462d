"""The same environments on the `openenv` package's server and on ours, asked over the same routes: equal answers.

The one file serves them with either package; what differs on purpose is written down below.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from ors.openenv.providers.base import free_port, wait_until_healthy

from .peers import ROOT, clean_environ, peer_python

SERVER = Path(__file__).with_name("openenv_server.py")
LIMIT_S = 30.0
_BESIDE = ("input", "url", "ctx", "description")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@contextlib.contextmanager
def serving(whose: str, which: str, folder: Path) -> Iterator[str]:
    """The server of an environment, with the `openenv` package or with ours under its import paths."""
    python = str(peer_python("openenv")) if whose == "theirs" else sys.executable
    path = [] if whose == "theirs" else [str(ROOT / "src"), str(ROOT / "compat" / "openenv" / "src")]
    port = free_port()
    environ = clean_environ(PYTHONPATH=os.pathsep.join(path), FASTMCP_CHECK_FOR_UPDATES="off")
    with (folder / f"{whose}-{which}.log").open("wb") as log:
        process = subprocess.Popen([python, str(SERVER), str(port), which], stdout=log, stderr=log, env=environ)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_healthy(url, 90, alive=lambda: process.poll() is None)
            yield url
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="module", params=["counter", "tools"])
def pair(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, str]]:
    """Which environment it is, and it on both servers."""
    folder = tmp_path_factory.mktemp("wire")
    with serving("theirs", request.param, folder) as theirs, serving("ours", request.param, folder) as ours:
        yield request.param, theirs, ours


def alike(value: Any) -> Any:
    """Without what is chance, without words for people, and without what they tell beside the faults of an input."""
    value = json.loads(_UUID.sub("(an id)", json.dumps(value)))

    def plain(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: plain(item) for key, item in part.items() if key not in _BESIDE}
        return [plain(item) for item in part] if isinstance(part, list) else part

    return plain(value)


def talked(url: str, path: str, frames: list[Any]) -> list[Any]:
    """The answer to each frame, and how the socket ended where it did."""
    heard: list[Any] = []
    address = url.replace("http://", "ws://") + path
    with connect(address, compression=None, proxy=None, open_timeout=LIMIT_S) as socket:
        for frame in frames:
            socket.send(frame if isinstance(frame, str) else json.dumps(frame))
            try:
                heard.append(alike(json.loads(socket.recv(timeout=LIMIT_S))))
            except ConnectionClosed:
                heard.append({"closed": socket.close_code})
                break
    return heard


def asked(url: str, method: str, path: str, body: Any) -> tuple[int, Any]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
    answer = httpx.request(
        method, url + path, content=content, headers={"Content-Type": "application/json"}, timeout=LIMIT_S
    )
    return answer.status_code, alike(answer.json()) if "json" in answer.headers.get("content-type", "") else None


RESET, STATE = {"type": "reset"}, {"type": "state"}
SOCKETS: dict[str, list[Any]] = {
    "counter": [
        STATE,
        RESET,
        {"type": "reset", "data": {"seed": 1, "episode_id": "e", "start": 3}},
        {"type": "step", "data": {"number": 2}},
        {"type": "step", "data": {"number": 2, "reply": 3}},
        {"type": "step", "data": {"number": -1}},
        {"type": "step", "data": {"number": "x"}},
        {"type": "step", "data": {}},
        {"type": "step"},
        {"type": "step", "data": None},
        {"type": "reset", "data": None},
        {"type": "reset", "data": []},
        {"type": "state", "more": 1},
        {"type": "nothing"},
        {},
        "{",
        "",
        STATE,
        {"type": "mcp", "data": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}},
        {"type": "step", "data": {"number": 20}},
        {"type": "close"},
    ],
    "tools": [
        {"type": "step", "data": {"type": "list_tools"}},
        RESET,
        {"type": "step", "data": {"type": "call_tool", "tool_name": "double", "arguments": {"number": 4}}},
        {"type": "step", "data": {"tool_name": "double", "arguments": {"number": "many"}}},
        {"type": "step", "data": {"tool_name": "fail"}},
        {"type": "step", "data": {"tool_name": "nobody"}},
        {"type": "step", "data": {"tool_name": "double", "arguments": 3}},
        {"type": "step", "data": {}},
        STATE,
        {"type": "mcp", "data": {"jsonrpc": "2.0", "id": "a", "method": "tools/list"}},
        {"type": "mcp", "data": {"jsonrpc": "2.0", "id": 2, "method": "nothing"}},
        {"type": "mcp", "data": {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {}}},
        {"type": "mcp", "data": {"jsonrpc": "2.0", "id": 2, "method": "openenv/session/create"}},
        {"type": "close"},
    ],
}


def test_ws(pair: tuple[str, str, str]) -> None:
    which, theirs, ours = pair
    expected, found = talked(theirs, "/ws", SOCKETS[which]), talked(ours, "/ws", SOCKETS[which])
    for frame, their, our in zip(SOCKETS[which], expected, found, strict=True):
        if "data" in our and our["type"] == "error":
            # the words of errors are for people; what programs look at is the same
            assert set(their["data"]) <= set(our["data"]), frame
            their["data"].pop("message")
            our["data"].pop("message")
        assert our == their, frame


HTTP: list[tuple[str, str, Any]] = [
    ("GET", "/health", None),
    ("GET", "/metadata", None),
    ("GET", "/schema", None),
    ("POST", "/reset", None),
    ("POST", "/reset", {}),
    ("POST", "/reset", {"seed": 3, "start": 2, "unknown": 1}),
    ("POST", "/reset", {"seed": "4", "episode_id": "e"}),
    ("POST", "/reset", {"seed": -1}),
    ("POST", "/reset", {"seed": "x", "episode_id": 3}),
    ("POST", "/reset", {"episode_id": "e" * 256}),
    ("POST", "/reset", b"{"),
    ("POST", "/reset", [1]),
    ("POST", "/step", {"action": {"number": 3}}),
    ("POST", "/step", {"action": {"number": 3}, "timeout_s": 5, "request_id": "r", "more": 1}),
    ("POST", "/step", {"action": {"number": "x"}}),
    ("POST", "/step", {"action": {}}),
    ("POST", "/step", {"action": 3}),
    ("POST", "/step", {}),
    ("POST", "/step", {"action": {"number": 3}, "timeout_s": 0}),
    ("POST", "/step", {"action": {"type": "list_tools"}}),
    ("POST", "/step", {"action": {"tool_name": "double", "arguments": {"number": 3}}}),
    ("GET", "/state", None),
    ("GET", "/list_environments", None),
    ("GET", "/ENV/splits", None),
    ("POST", "/ENV/num_tasks", {"split": "train"}),
    ("POST", "/ENV/num_tasks", {}),
    ("POST", "/ENV/num_tasks", {"split": 3}),
    ("POST", "/ENV/num_tasks", {"split": "train", "more": 1}),
    ("POST", "/ENV/tasks", {"split": "train"}),
    ("POST", "/ENV/task", {"split": "train", "index": 1}),
    ("POST", "/ENV/task", {"split": "train", "index": "2"}),
    ("POST", "/ENV/task", {"split": "train", "index": 3}),
    ("POST", "/ENV/task", {"split": "train", "index": 1.5}),
    ("POST", "/ENV/task", {"split": "train"}),
    ("POST", "/ENV/task_range", {"split": "train", "start": 1}),
    ("POST", "/ENV/task_range", {"split": "train", "start": None, "stop": 2}),
    ("POST", "/ENV/tasks", {"split": "train"}),
    ("GET", "/nobody/splits", None),
    ("GET", "/nothing/at/all", None),
    ("GET", "/reset", None),
    ("POST", "/mcp", b"{"),
    ("POST", "/mcp", []),
    ("POST", "/mcp", {}),
    ("POST", "/mcp", {"jsonrpc": "1.0", "method": "tools/list", "id": 1}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "method": "initialized"}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 3, "method": "tools/list"}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"session_id": "nobody"}}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {}}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "nobody"}}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "fail"}}),
    (
        "POST",
        "/mcp",
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "double", "arguments": {"number": 3}}},
    ),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 3, "method": "openenv/session/close", "params": {}}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 3, "method": "openenv/session/close", "params": {"session_id": "no"}}),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 3, "method": "openenv/session/create"}),
]


@pytest.mark.parametrize(("method", "path", "body"), HTTP)
def test_http(pair: tuple[str, str, str], method: str, path: str, body: Any) -> None:
    which, theirs, ours = pair
    path = path.replace("ENV", which)
    expected, found = asked(theirs, method, path, body), asked(ours, method, path, body)
    assert found[0] == expected[0], (expected, found)
    their, our = expected[1], found[1]
    if isinstance(our, dict) and "kind" in our:
        # ours says in every error what it is, and 404 and 405 are said in other words
        assert set(our) == {"detail", "kind", "retryable"}
        if not isinstance(our["detail"], list):
            assert isinstance(their["detail"], str)
            return
        our = {"detail": our["detail"]}
    if isinstance(our, dict) and "result" in our and "content" in our["result"]:
        # a tool is called by a step, and what came of it is told; their calls go around the environment
        assert our["result"]["meta"].pop("done") is False
        assert our["result"]["meta"].pop("reward") is None
    if isinstance(our, dict) and "error" in our:
        their["error"].pop("message")
        our["error"].pop("message")
    assert our == their, which
