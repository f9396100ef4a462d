"""Requests that make no sense get a 4xx that says what is wrong and where; nothing gets a 500, nothing crashes."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from served import Served

from .conftest import Serve
from .probes import Probe
from .wire import Episode, client_of, exchange, failure_of

MAX_BODY = 1 << 20


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve(Probe, max_body=MAX_BODY, allowed_origins=["https://trainer.example/"])


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    client = client_of(served)
    yield client
    assert client.get("/health").status_code == 200


HEADERS = {"X-Session-ID": "hostile", "Content-Type": "application/json"}
BODY_ROUTES = ["/tasks", "/num_tasks", "/task", "/task_range", "/get_task", "/get_task_range", "/create", "/call"]

HOSTILE = {
    "nothing": (b"", "empty"),
    "blanks": (b" \n ", "empty"),
    "NaN": (b'{"split": NaN}', "line 1 column 11"),
    "infinity": (b'{"split": -Infinity}', "line 1 column"),
    "a float too large": (b'{"split": {"a": [0, 1e999]}}', "$.split.a[1]"),
    "a key twice": (b'{"split": "train",\n "split": "train"}', "line 2"),
    "a key twice below": (b'{"task_spec": {"a": {"b": 1, "b": 2}}}', "line 1"),
    "10,000 levels": (b'{"input": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "nested deeper than 200 levels"),
    "10,000 objects": (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested deeper than 200 levels"),
    "10,000 levels that do not end": (b"[" * 10_000, "nested deeper than 200 levels"),
    "an integer too long": (b'{"index": ' + b"9" * 4301 + b"}", "more than 4,300 digits"),
    "a lone surrogate": (b'{"split": "\\ud800"}', "lone surrogate"),
    "surrogates in disorder": (b'{"split": "\\udc00\\ud800"}', "lone surrogate"),
    "an encoded surrogate": (b'{"split": "\xed\xa0\x80"}', "lone surrogate at byte 11"),
    "no UTF-8": (b'{"split": "\xff"}', "not UTF-8"),
    "UTF-16": ('{"split": "train"}'.encode("utf-16"), "not UTF-8"),
    "a byte order mark": (b'\xef\xbb\xbf{"split": "train"}', "byte order mark"),
    "an end too early": (b'{"split": "tra', "line 1 column 14"),
    "more than one value": (b'{"split": "train"} {"split": "train"}', "line 1 column 20"),
    "single quotes": (b"{'split': 'train'}", "line 1 column 2"),
    "a comment": (b'{"split": "train" /* all */}', "line 1 column 19"),
    "a comma too many": (b'{"split": "train",}', "line 1 column 19"),
    "a control character": (b'{"split": "tra\nin"}', "line 2 column 0"),
    "a leading zero": (b'{"index": 007}', "line 1 column 12"),
    "a form": (b"split=train&index=0", "line 1 column 1"),
}


@pytest.mark.parametrize("path", BODY_ROUTES)
@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_json(client: httpx.Client, name: str, path: str) -> None:
    body, where = HOSTILE[name]
    answer = client.post(path, content=body, headers=HEADERS)
    assert failure_of(answer) == (400, "invalid_json")
    assert answer.json()["detail"].startswith("the body is not valid JSON: ")
    assert where in answer.json()["detail"]
    assert len(answer.text) < 1000


@pytest.mark.parametrize("value", ["null", "7", '"text"', "[]", "true"])
@pytest.mark.parametrize("path", BODY_ROUTES)
def test_json_that_is_no_object(client: httpx.Client, path: str, value: str) -> None:
    assert failure_of(client.post(path, content=value, headers=HEADERS)) == (422, "invalid_request")


@pytest.mark.parametrize("path", BODY_ROUTES)
def test_an_unknown_key_is_named_and_no_value_is_repeated(client: httpx.Client, path: str) -> None:
    body = {"split": {"x": "hunter2"}, "name": ["hunter2"], "secrets": {"k": {"v": "hunter2"}}, "surprise": "hunter2"}
    answer = client.post(path, json=body, headers=HEADERS)
    assert failure_of(answer) == (422, "invalid_request")
    assert "surprise" in answer.json()["detail"]
    assert "hunter2" not in answer.text


def test_200_levels_are_read(client: httpx.Client) -> None:
    task: Any = {}
    for _ in range(190):
        task = {"in": task}
    assert Episode(client, task).opened().prompt().status_code == 200


@pytest.mark.parametrize("text", ["\u0000", "\U0001f98a", "\uffff", "\U0010ffff", "\u2028", "é\u0301"])
def test_every_character_that_is_one_is_read(client: httpx.Client, text: str) -> None:
    assert Episode(client, {}).opened().text("echo", text=text) == text


# Bodies over the limit


def test_a_body_of_just_the_limit(client: httpx.Client) -> None:
    body = json.dumps({"split": "train"}).encode()
    assert client.post("/num_tasks", content=body.ljust(MAX_BODY)).status_code == 200
    refused = client.post("/num_tasks", content=body.ljust(MAX_BODY + 1))
    assert failure_of(refused) == (413, "body_too_large")
    assert str(MAX_BODY) in refused.json()["detail"]


def test_an_announced_body_is_refused_unread(served: Served, client: httpx.Client) -> None:
    """The client has not sent a byte of its terabyte when it is told."""
    head = b"POST /call HTTP/1.1\r\nHost: x\r\nX-Session-ID: s\r\nContent-Length: %d\r\n\r\n" % 10**12
    answer = exchange(served.url, head)
    assert failure_of(answer) == (413, "body_too_large")
    assert answer.headers["connection"] == "close"


def test_a_body_in_chunks_is_counted(served: Served, client: httpx.Client) -> None:
    """It is refused as soon as it is too long, though its end has not come."""
    head = b"POST /num_tasks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n%s\r\n" % (MAX_BODY // 2 + 1, b" " * (MAX_BODY // 2 + 1))
    assert failure_of(exchange(served.url, head + 2 * chunk)) == (413, "body_too_large")


# Content types


@pytest.mark.parametrize(
    "kind",
    ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.x+json", None, ""],
)
def test_json_by_any_name_or_none(client: httpx.Client, served: Served, kind: str | None) -> None:
    header = f"Content-Type: {kind}\r\n" if kind is not None else ""
    body = '{"split": "train"}'
    request = f"POST /num_tasks HTTP/1.1\r\nHost: x\r\n{header}Content-Length: {len(body)}\r\n\r\n{body}"
    assert exchange(served.url, request.encode()).json() == {"num_tasks": 4}


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
@pytest.mark.parametrize("path", BODY_ROUTES)
def test_what_is_not_json_by_its_own_word(client: httpx.Client, path: str, kind: str) -> None:
    answer = client.post(path, content=b'{"split": "train"}', headers={**HEADERS, "Content-Type": kind})
    assert failure_of(answer) == (415, "unsupported_media_type")
    assert "application/json" in answer.json()["detail"]


# Methods and paths

PATHS = {
    "/health": "GET",
    "/list_environments": "GET",
    "/tools": "GET",
    "/probe/tools": "GET",
    "/tasks": "POST",
    "/create_session": "POST",
    "/create": "POST",
    "/prompt": "GET",
    "/probe/call": "POST",
    "/delete": "POST",
    "/v1/environments/a/b/required-secrets": "GET",
}


METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


@pytest.mark.parametrize(
    ("path", "method"), [(path, m) for path, right in PATHS.items() for m in METHODS if m != right]
)
def test_another_method(client: httpx.Client, path: str, method: str) -> None:
    answer = client.request(method, path)
    assert failure_of(answer) == (405, "method_not_allowed")
    assert answer.headers["allow"] == PATHS[path]
    assert PATHS[path] in answer.json()["detail"]


@pytest.mark.parametrize(
    "path",
    ["/", "/nothing", "/probe", "/probe/", "/probe/nothing", "/probe/health", "/probe/create", "//tools", "/a/b/c"],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nothing_there(client: httpx.Client, path: str, method: str) -> None:
    answer = client.request(method, httpx.URL(f"{client.base_url}".rstrip("/") + path))
    assert answer.status_code == 404
    assert failure_of(answer)[1] in ("not_found", "unknown_environment")


@pytest.mark.parametrize(
    "path", [b"/%2e%2e/etc/passwd", b"/%ff%fe", b"/\xff", b"/%00", b"/pro%62e/tools%3f", b"/" + b"a" * 5000]
)
def test_odd_paths(served: Served, client: httpx.Client, path: bytes) -> None:
    answer = exchange(served.url, b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path)
    assert answer.status_code in (400, 404)
    assert len(answer.content) < 1000


def test_percent_escapes_spell_the_same_path(client: httpx.Client) -> None:
    assert client.get("/pr%6fbe/tools").json() == client.get("/probe/tools").json()


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /call HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /call HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 2\r\n\r\n",
        b"POST /call HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_http(served: Served, client: httpx.Client, request_bytes: bytes) -> None:
    address = httpx.URL(served.url)
    with socket.create_connection((address.host, address.port), timeout=10) as connection:
        connection.sendall(request_bytes)
        assert connection.recv(1000).split(b" ", 2)[1:2] in ([b"400"], [b"404"])


# Pages of other sites


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "x", "//", "http://[::1"]
)
@pytest.mark.parametrize("path", ["/tools", "/health", "/nothing"])
def test_a_foreign_page_is_refused(client: httpx.Client, origin: str, path: str) -> None:
    assert failure_of(client.get(path, headers={"Origin": origin})) == (403, "foreign_origin")


def test_a_foreign_page_starts_nothing(client: httpx.Client) -> None:
    """A page can send this without asking first: no header of its own, and a type that forms have."""
    headers = {"Origin": "https://evil.example", "Content-Type": "text/plain", "X-Session-ID": "of a page"}
    assert failure_of(client.post("/create", content=b'{"task_spec": {}}', headers=headers)) == (403, "foreign_origin")
    assert failure_of(Episode(client, sid="of a page").prompt()) == (404, "unknown_session")


def test_pages_that_are_welcome(served: Served, client: httpx.Client) -> None:
    for origin in (served.url, "https://trainer.example", "https://trainer.example/"):
        assert client.get("/tools", headers={"Origin": origin}).status_code == 200


def test_any_page_is_welcome_where_the_server_says_so(serve: Serve) -> None:
    client = client_of(serve(Probe, allowed_origins="*"))
    assert client.get("/tools", headers={"Origin": "https://anywhere.example"}).status_code == 200


# Ourselves


def test_a_fault_of_the_servers_own_says_so(
    served: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def break_down(*_: Any) -> None:
        raise ZeroDivisionError("hunter2")

    monkeypatch.setattr(served.host, "touch", break_down)
    answer = client.post("/ping", headers=HEADERS)
    assert failure_of(answer) == (500, "internal")
    assert answer.json()["detail"] == "the server failed: ZeroDivisionError"
