"""What tests of the ORS face send and read: a session, its events, its notes; and every answer held to the description.

A client from `client_of` compares each answer with the server's own OpenAPI document: a status, a kind of failure or a
body that is not described fails the test that caused it.
"""

from __future__ import annotations

import http.client
import itertools
import json
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jsonschema

from served import Served, wait_until

__all__ = [
    "Episode",
    "Event",
    "Notes",
    "Page",
    "client_of",
    "error_of",
    "events_of",
    "exchange",
    "failure_of",
    "judged",
    "result_of",
]

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Event:
    """A server-sent event: its name and its data, lines joined by line feeds. A comment has the name ""."""

    name: str
    data: str


def events_of(body: str | bytes, comments: bool = False) -> list[Event]:
    """Read a stream strictly: CRLF, `event:` before `data:`, a blank line after each."""
    text = body.decode() if isinstance(body, bytes) else body
    assert text.endswith("\r\n\r\n"), text[-100:]
    found = []
    for block in text.removesuffix("\r\n\r\n").split("\r\n\r\n"):
        lines = block.split("\r\n")
        while lines and lines[0].startswith(":"):
            comment = lines.pop(0)
            if comments:
                found.append(Event("", comment[1:].strip()))
        if not lines:
            continue
        assert lines[0].startswith("event: "), lines[0][:100]
        assert all(line.startswith("data: ") for line in lines[1:]), block[:200]
        data = "\n".join(line.removeprefix("data: ") for line in lines[1:])
        found.append(Event(lines[0].removeprefix("event: "), data))
    return found


def exchange(url: str, request: bytes, *, end: bool = False) -> httpx.Response:
    """Send bytes as they are on a connection of their own, and read one answer. `end`: send no more after them."""
    address = httpx.URL(url)
    with socket.create_connection((address.host, address.port or 80), timeout=10) as connection:
        connection.sendall(request)
        if end:
            connection.shutdown(socket.SHUT_WR)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return httpx.Response(answer.status, headers=answer.getheaders(), content=answer.read())


def result_of(answer: httpx.Response) -> Any:
    """The result in the answer to a call: the pieces joined, from a stream in the right order."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    events = events_of(answer.content)
    names = [event.name for event in events]
    assert names[0] == "task_id"
    assert names[-1] == "end", events[-1]
    assert set(names[1:-1]) <= {"chunk"}
    return json.loads("".join(event.data for event in events[1:]))


def error_of(answer: httpx.Response) -> tuple[str, dict[str, Any]]:
    """The words of an `error` event, and what the comment before it says to programs."""
    assert answer.status_code == 200, answer.text
    events = events_of(answer.content, comments=True)
    assert [event.name for event in events if event.name][-1] == "error", events[-1]
    about = next(event.data for event in events if event.data.startswith("failure "))
    return events[-1].data, json.loads(about.removeprefix("failure "))


def failure_of(answer: httpx.Response) -> tuple[int, str]:
    """Status and kind of an answer that is a failure; its shape is always the same."""
    body = answer.json()
    assert set(body) == {"detail", "kind", "retryable"}, body
    assert isinstance(body["detail"], str) and body["detail"]
    return answer.status_code, body["kind"]


class Page:
    """The OpenAPI document of a server, as a judge of its answers."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._paths = [(re.compile(re.sub(r"\{\w+\}", "[^/]*", path)), path) for path in document["paths"]]
        self._checks: dict[tuple[str, str, str], jsonschema.Draft202012Validator] = {}

    def operation(self, method: str, path: str) -> tuple[str, dict[str, Any]] | None:
        """The path as it is written in the document, and what it says of a method."""
        method, path = method.lower().replace("head", "get"), path.rstrip("/").lower() or "/"
        fitting = [name for pattern, name in self._paths if pattern.fullmatch(path)]
        for name in sorted(fitting, key=lambda name: name.count("{")):
            if method in self.document["paths"][name]:
                return name, self.document["paths"][name][method]
        return None

    def judge(self, answer: httpx.Response) -> None:
        """Fail where an answer is not described."""
        request, status = answer.request, str(answer.status_code)
        found = self.operation(request.method, request.url.path)
        if found is None:
            assert answer.status_code in (401, 403, 404, 405), f"{request.method} {request.url.path}: {status}"
            return
        path, operation = found
        described = operation["responses"].get(status)
        assert described is not None, f"{request.method} {path} answers {status}: {answer.text[:300]}"
        if status == "304":
            assert not answer.content and "content-length" not in answer.headers
            return
        kind = answer.headers["content-type"].partition(";")[0]
        assert kind in described["content"], f"{request.method} {path} answers {status} with {kind}"
        if kind == "application/json" and request.method != "HEAD":
            self._check(request.method, path, status, described["content"][kind]["schema"]).validate(answer.json())

    def _check(self, method: str, path: str, status: str, schema: Any) -> jsonschema.Draft202012Validator:
        key = method, path, status
        if key not in self._checks:
            whole = {"components": self.document["components"], **schema}
            self._checks[key] = jsonschema.Draft202012Validator(whole)
        return self._checks[key]


def judged(served: Served) -> Callable[[httpx.Response], None]:
    """A hook for clients of a server."""
    page = Page(json.loads(served.application.document()))

    def hook(answer: httpx.Response) -> None:
        if not answer.headers.get("content-type", "").startswith("text/event-stream"):
            answer.read()
        page.judge(answer)

    return hook


def client_of(served: Served) -> httpx.Client:
    """The server's client; from now on every answer to it is compared with the description."""
    if not served.client.event_hooks["response"]:
        served.client.event_hooks["response"] = [judged(served)]
    return served.client


class Notes:
    """The folder that a test shares with the environments of its sessions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def spec(self, **more: Any) -> dict[str, Any]:
        """A task that uses this folder."""
        return {"folder": str(self.folder), **more}

    @property
    def words(self) -> list[str]:
        """What was noted, in order."""
        file = self.folder / "notes"
        return file.read_text().splitlines() if file.exists() else []

    def count(self, word: str) -> int:
        return self.words.count(word)

    def wait_for(self, word: str, times: int = 1) -> None:
        wait_until(lambda: self.count(word) >= times, what=f"{word!r} {times} times")

    def open(self, gate: str) -> None:
        """Let pass what waits at a gate."""
        (self.folder / f"open-{gate}").touch()


class Episode:
    """A session on a server, over the routes of ORS."""

    def __init__(
        self, client: httpx.Client, task: Any = None, *, env: str | None = None, sid: str = "", **body: Any
    ) -> None:
        self.client = client
        self.env = env
        self.prefix = f"/{env}" if env is not None else ""
        self.sid = sid or f"session-{next(_numbers)}"
        self.headers = {"X-Session-ID": self.sid}
        if task is not None:
            body["task_spec"] = task
        elif "split" not in body and "index" not in body:
            body |= {"split": "train", "index": 0}
        if env is not None:
            body["env_name"] = env
        self.body = body

    def create(self, **headers: str) -> httpx.Response:
        return self.client.post("/create", json=self.body, headers={**self.headers, **headers})

    def opened(self, **headers: str) -> Episode:
        """Create it, and be sure of that."""
        answer = self.create(**headers)
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"sid": self.sid}
        return self

    def prompt(self, **headers: str) -> httpx.Response:
        return self.client.get(f"{self.prefix}/prompt", headers={**self.headers, **headers})

    def task_tools(self) -> httpx.Response:
        return self.client.get(f"{self.prefix}/task_tools", headers=self.headers)

    def call(self, name: str, input: Any = None, task_id: str | None = None, **more: Any) -> httpx.Response:
        body = {"name": name, "input": input or {}, **({"task_id": task_id} if task_id is not None else {})}
        return self.client.post(f"{self.prefix}/call", json=body, headers=self.headers, **more)

    def begin(self, name: str, input: Any = None, task_id: str | None = None) -> Any:
        """A call whose answer is read as it comes: `with episode.begin(…) as stream`."""
        body = {"name": name, "input": input or {}, **({"task_id": task_id} if task_id is not None else {})}
        return self.client.stream("POST", f"{self.prefix}/call", json=body, headers=self.headers)

    def text(self, name: str, /, **input: Any) -> str:
        """Call a tool that succeeds; returns the text of its result."""
        result = result_of(self.call(name, input))
        assert result["ok"] is True, result
        return str(result["output"]["blocks"][0]["text"])

    def refused(self, name: str, /, **input: Any) -> tuple[str, str]:
        """Call a tool that is refused; returns the words and the reason."""
        result = result_of(self.call(name, input))
        assert set(result) == {"ok", "error", "reason"}, result
        assert result["ok"] is False
        return result["error"], result["reason"]

    def cancel(self, call_id: str) -> httpx.Response:
        return self.client.post("/cancel", headers={**self.headers, "X-Call-ID": call_id})

    def ping(self) -> httpx.Response:
        return self.client.post("/ping", headers=self.headers)

    def delete(self) -> httpx.Response:
        return self.client.post("/delete", headers=self.headers)
