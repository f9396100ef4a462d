"""Answers about tasks: with a tag that says whether they changed, and compressed where the client takes that.

Tags are weak: they say that the text is the same, whichever way it is packed. The routes are questions although most of
them are asked with POST, so `If-None-Match` is answered with 304 on all of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator

from ors.core.failures import Failure
from ors.faces.http import Reply, Request, failure_reply, json_reply
from ors.faces.tasks.coding import SMALLEST, negotiate

__all__ = ["stream", "tag_of", "unchanged", "whole"]

logger = logging.getLogger("ors.server")

_INLINE = 64 << 10
_BLOCK = 32 << 10
_VARY = (b"vary", b"accept-encoding")


def tag_of(*parts: bytes) -> bytes:
    """The tag of an answer, made of its text or of whatever determines it."""
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return b'W/"%s"' % digest.hexdigest().encode()


def unchanged(request: Request, tag: bytes) -> Reply | None:
    """The answer that says that the client has the text already, if its `If-None-Match` names it."""
    known = request.header(b"if-none-match")
    if not known:
        return None
    names = [name.strip().removeprefix("W/") for name in known.split(",")]
    if "*" in names or tag.decode().removeprefix("W/") in names:
        return Reply(304, b"", [(b"etag", tag), _VARY])
    return None


async def whole(request: Request, body: bytes) -> Reply:
    """A whole answer."""
    if len(body) <= _INLINE:
        return _whole(request, body)
    return await asyncio.to_thread(_whole, request, body)


def _whole(request: Request, body: bytes) -> Reply:
    tag = tag_of(body)
    if (known := unchanged(request, tag)) is not None:
        return known
    headers = [(b"etag", tag), _VARY]
    if len(body) >= SMALLEST and (packer := negotiate(request.header(b"accept-encoding"))) is not None:
        headers.append((b"content-encoding", packer.name))
        body = packer.pack(body) + packer.end()
    return json_reply(body, headers=headers)


async def stream(
    request: Request, before: bytes, pieces: AsyncIterator[bytes | Failure], after: bytes, tag: bytes | None
) -> Reply | None:
    """An answer in pieces: sent as they come, and no further when the client has left.

    A failure that comes first is the answer. Of a later one the client learns by an answer that is not complete.
    """
    sending = _Sending(request, tag)
    # the body of the request has been read: what there is to receive now is that the client has left
    gone = asyncio.ensure_future(request.receive())
    try:
        async for piece in pieces:
            if isinstance(piece, Failure):
                if not sending.begun:
                    return failure_reply(piece)
                logger.error("a list of tasks broke off: %s", piece.detail)
                return None
            if gone.done():
                return None
            await sending.add(before + piece if before else piece)
            before = b""
        await sending.add(after, last=True)
    except Exception:
        if not sending.begun:
            raise
        logger.exception("a list of tasks broke off")
    finally:
        gone.cancel()
        await pieces.aclose()  # type: ignore[attr-defined]
    return None


class _Sending:
    """The answer on its way."""

    def __init__(self, request: Request, tag: bytes | None) -> None:
        self._send = request.send
        self._packer = negotiate(request.header(b"accept-encoding"))
        self._tag = tag
        self._held: list[bytes] = []
        self._size = 0
        self.begun = False

    async def add(self, data: bytes, *, last: bool = False) -> None:
        """Send some more; what is packed waits until it is worth it, except for the first."""
        first = not self.begun
        if first:
            await self._begin()
        packer = self._packer
        if packer is not None:
            self._held.append(data)
            self._size += len(data)
            if not (first or last) and self._size < _BLOCK:
                return
            data, self._held, self._size = b"".join(self._held), [], 0
            # in a thread: other threads, and this loop, go on meanwhile
            data = packer.pack(data) if len(data) < SMALLEST else await asyncio.to_thread(packer.pack, data)
            if last:
                data += packer.end()
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})

    async def _begin(self) -> None:
        self.begun = True
        headers = [(b"content-type", b"application/json"), _VARY]
        if self._tag is not None:
            headers.append((b"etag", self._tag))
        if self._packer is not None:
            headers.append((b"content-encoding", self._packer.name))
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
