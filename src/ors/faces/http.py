"""What every HTTP face shares: a request, a reply, an entry of a route table.

They are plain ASGI underneath: a face on the hot path pays for what it uses and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from ors.core.failures import Failure
from ors.core.ports import Principal
from ors.errors import RequestError, describe_errors
from ors.jsontext import JSONTextError, dump, load

__all__ = ["Handler", "Reply", "Request", "Route", "failure_reply", "json_reply"]

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
M = TypeVar("M", bound=BaseModel)

ANYONE = Principal()


class Reply:
    """A whole answer: a status, headers and a body."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        self.status = status
        self.body = body
        self.headers = headers

    async def send(self, send: Send) -> None:
        """Write the answer."""
        headers = self.headers
        if self.status != 304:  # the length there is that of the answer which it stands for
            headers = [*headers, (b"content-length", b"%d" % len(self.body))]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def json_reply(body: bytes, status: int = 200, headers: list[tuple[bytes, bytes]] | None = None) -> Reply:
    """An answer that is JSON already."""
    return Reply(status, body, [(b"content-type", b"application/json"), *(headers or ())])


def failure_reply(failed: Failure, headers: list[tuple[bytes, bytes]] | None = None) -> Reply:
    """An answer that says what failed: `{"detail", "kind", "retryable"}`."""
    body = dump({"detail": failed.detail, "kind": failed.kind, "retryable": failed.retryable})
    extra = list(headers or ())
    if failed.retry_after is not None:
        extra.append((b"retry-after", b"%d" % max(1, round(failed.retry_after))))
    if failed.kind == "unauthorized":
        extra.append((b"www-authenticate", b"Bearer"))
    return json_reply(body, failed.status, extra)


class Request:
    """One HTTP request on its way through a face."""

    __slots__ = (
        "_body",
        "env",
        "env_spelt",
        "headers",
        "max_body",
        "path",
        "principal",
        "receive",
        "scope",
        "send",
        "sid",
    )

    def __init__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send, max_body: int) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.max_body = max_body
        self.principal = ANYONE
        self.path = ""
        self.env: str | None = None
        self.env_spelt = ""
        self.sid = ""
        self._body: bytes | None = None

    def header(self, name: bytes) -> str:
        """A header's text, stripped; empty when it is missing."""
        value = self.headers.get(name)
        return value.decode("latin-1").strip() if value else ""

    async def body(self) -> bytes:
        """The whole body. Raises RequestError when it is too large or the client leaves before its end."""
        if self._body is None:
            self._body = await self._read()
        return self._body

    async def _read(self) -> bytes:
        announced = self.headers.get(b"content-length")
        if announced is not None and announced.isdigit() and int(announced) > self.max_body:
            raise self._too_large(f"{int(announced)} bytes")
        message = await self.receive()
        body: bytes = message.get("body", b"")
        if not message.get("more_body", False) and message["type"] == "http.request":
            if len(body) > self.max_body:
                raise self._too_large(f"{len(body)} bytes")
            return body
        parts, size = [body], len(body)
        while message["type"] == "http.request" and message.get("more_body", False):
            message = await self.receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.max_body:
                raise self._too_large("more")
        if message["type"] != "http.request":
            raise RequestError("client_gone", "the client left before its body was complete")
        return b"".join(parts)

    def _too_large(self, what: str) -> RequestError:
        return RequestError("body_too_large", f"the body has {what}; at most {self.max_body} bytes are read")

    async def parse(self, model: type[M]) -> M:
        """The body as a model. Raises RequestError that says what is wrong and where, without repeating the input."""
        kind = self.headers.get(b"content-type")
        if kind is not None and kind and b"json" not in kind.lower():
            raise RequestError(
                "unsupported_media_type", f"the body is {self.header(b'content-type')[:100]!r}; send application/json"
            )
        body = self._body
        if body is None:
            body = self._body = await self._read()
        try:
            value = load(body)
        except JSONTextError as exc:
            raise RequestError("invalid_json", f"the body is not valid JSON: {exc}") from None
        try:
            # what `model_validate` calls, without its checks of arguments that are not given here
            parsed: M = model.__pydantic_validator__.validate_python(value)
        except ValidationError as exc:
            raise RequestError("invalid_request", f"the body is not valid: {describe_errors(exc)}") from None
        return parsed


Handler: TypeAlias = Callable[[Request], Awaitable[Reply | None]]


@dataclass(frozen=True, slots=True)
class Route:
    """An entry of a route table. It drives dispatch, the OpenAPI document and the docs.

    path: what follows the environment's name for `env` routes (which also answer without the name, for the first
    environment), else the whole path. session: the route needs `X-Session-ID`. open: it asks for no key. body: the
    model of the request; optional: it may be missing. answer: the JSON Schema of the answer, or the name of a type.
    kinds: how it can fail.
    """

    method: Literal["GET", "POST"]
    path: str
    handler: Handler
    summary: str
    scope: Literal["root", "env"] = "root"
    session: bool = False
    open: bool = False
    body: type[BaseModel] | None = None
    answer: Any = None
    stream: bool = False
    kinds: tuple[str, ...] = ()
    tag: str = "Sessions"
    headers: tuple[str, ...] = ()
    optional: bool = False
