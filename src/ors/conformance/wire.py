"""HTTP/1.1 as the check speaks it: bytes and their times are kept, and nothing that a server does raises an error here.

A connection serves one request. What is wrong with an answer is `Answer.problem`, in words.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import h11

__all__ = ["Address", "Answer", "BadJSON", "Sent", "Speaker", "strict_json"]

MAX_ANSWER = 64 * 1024 * 1024
"""Bytes of an answer after which no more is read."""

KEPT_OF_BROKEN = 256 * 1024


class BadJSON(ValueError):
    """A text is not JSON, or JSON that no two programs read alike."""


def strict_json(text: str | bytes) -> Any:
    """Parse JSON as RFC 8259 has it: UTF-8, no NaN, no key twice. Raises BadJSON."""

    def no_constant(name: str) -> Any:
        raise BadJSON(f"{name} is no JSON")

    def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise BadJSON("a key stands twice in one object")
        return found

    try:
        return json.loads(
            text.decode("utf-8") if isinstance(text, bytes) else text,
            parse_constant=no_constant,
            object_pairs_hook=no_duplicates,
        )
    except BadJSON:
        raise
    except RecursionError:
        raise BadJSON("it is nested too deeply") from None
    except ValueError as exc:
        raise BadJSON(str(exc)) from None


@dataclass(frozen=True)
class Sent:
    """A request as it was sent, without the headers that the user added to all."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass
class Answer:
    """What came back. status: 0 where no head came. pieces: the body as it arrived, with seconds since the request."""

    request: Sent
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    head_s: float = 0.0
    end_s: float = 0.0
    problem: str | None = None
    cut: bool = False
    """We had seen enough and left."""

    @property
    def body(self) -> bytes:
        """The whole body, as far as it came; unpacked where it is packed with gzip, empty where it cannot be."""
        body = b"".join(piece for _, piece in self.pieces)
        if body and self.header("content-encoding").strip().lower() == "gzip":
            try:
                return zlib.decompress(body, 31)
            except zlib.error:
                return b""
        return body

    def shorten(self) -> None:
        """Keep the beginning: of an answer that did not come whole nothing else is looked at."""
        kept, size = [], 0
        for at_s, piece in self.pieces:
            if size >= KEPT_OF_BROKEN:
                break
            kept.append((at_s, piece[: KEPT_OF_BROKEN - size]))
            size += len(piece)
        self.pieces = kept

    def header(self, name: str) -> str:
        """A header's value; empty when it is missing."""
        return next((value for key, value in self.headers if key == name.lower()), "")

    @property
    def media_type(self) -> str:
        """The content type without its parameters."""
        return self.header("content-type").partition(";")[0].strip().lower()

    def json(self) -> Any:
        """The body as JSON. Raises BadJSON."""
        return strict_json(self.body)


class Address:
    """Where a server is: the parts of its URL."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no URL of a server; it looks like http://127.0.0.1:8080")
        self.host = parts.hostname
        self.secure = parts.scheme == "https"
        self.port = parts.port or (443 if self.secure else 80)
        self.prefix = parts.path.rstrip("/")
        shown = f"[{self.host}]" if ":" in self.host else self.host
        self.authority = shown if parts.port is None else f"{shown}:{parts.port}"
        self.url = f"{parts.scheme}://{self.authority}{self.prefix}"


class Speaker:
    """Sends requests to one server. timeout_s: for a whole answer. headers: sent with each request, never shown."""

    def __init__(self, address: Address, *, timeout_s: float = 10.0, headers: Mapping[str, str] | None = None) -> None:
        self.address = address
        self.timeout_s = timeout_s
        self.headers = dict(headers or {})

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        until: Callable[[Answer], bool] | None = None,
    ) -> Answer:
        """Send a request and read its answer; `until` says after each piece whether enough has been read.

        A header whose value is empty is left out.
        """
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        shown = {"Accept": "application/json", **(headers or {})}
        if content:
            shown.setdefault("Content-Type", "application/json")
        shown = {name: value for name, value in shown.items() if value}
        sent = Sent(method, path, shown, content)
        answer = Answer(sent)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        limit = self.timeout_s if timeout_s is None else timeout_s
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(limit):
                context = ssl.create_default_context() if self.address.secure else None
                reader, writer = await asyncio.open_connection(self.address.host, self.address.port, ssl=context)
                await self._talk(reader, writer, answer, begun, until)
        except TimeoutError:
            answer.problem = (
                f"the answer was not complete after {limit:g} s" if answer.status else f"no answer within {limit:g} s"
            )
        except h11.RemoteProtocolError as exc:
            answer.problem = f"this is not HTTP/1.1 as it should be: {exc}"
        except (OSError, ssl.SSLError) as exc:
            answer.problem = f"the connection failed: {exc or type(exc).__name__}"
        finally:
            answer.end_s = loop.time() - begun
            if answer.problem is not None:
                answer.shorten()
            if writer is not None:
                # not waited for: a server can keep us waiting even at the close
                with contextlib.suppress(Exception):
                    writer.transport.abort()
        return answer

    async def _talk(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answer: Answer,
        begun: float,
        until: Callable[[Answer], bool] | None,
    ) -> None:
        sent = answer.request
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=128 * 1024)
        target = self.address.prefix + quote(sent.path, safe="/?&=%:@!$'()*+,;~-._")
        lines = {"Host": self.address.authority, "Connection": "close", **self.headers, **sent.headers}
        lines["Content-Length"] = str(len(sent.body))
        encoded = [(name.encode(), value.encode()) for name, value in lines.items()]
        head = http.send(h11.Request(method=sent.method, target=target.encode(), headers=encoded)) or b""
        body = (http.send(h11.Data(data=sent.body)) or b"") if sent.body else b""
        writer.write(head + body + (http.send(h11.EndOfMessage()) or b""))
        await writer.drain()
        loop, size = asyncio.get_running_loop(), 0
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(await reader.read(65536))
            elif isinstance(event, h11.Response):
                answer.status, answer.head_s = event.status_code, loop.time() - begun
                answer.headers = [
                    (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in event.headers
                ]
            elif isinstance(event, h11.Data):
                answer.pieces.append((loop.time() - begun, bytes(event.data)))
                size += len(event.data)
                if size > MAX_ANSWER:
                    answer.problem = f"the answer is longer than {MAX_ANSWER // 2**20} MiB"
                    return
                if until is not None and until(answer):
                    answer.cut = True
                    return
            elif isinstance(event, h11.EndOfMessage):
                return
            elif isinstance(event, h11.ConnectionClosed):
                answer.problem = "the connection was closed before an answer"
                return
