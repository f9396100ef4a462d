"""Who asks: API keys, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence

from ors.core.ports import Principal
from ors.errors import RequestError

__all__ = ["Keys"]

_OPEN = Principal()


class Keys:
    """The keys of a server. Without any, everybody is the same principal."""

    def __init__(self, keys: Sequence[str]) -> None:
        # digests have one length, so comparing them tells nothing of a key's length either
        self._known = [(_digest(key.encode()), Principal(key=_name(key))) for key in dict.fromkeys(keys)]

    def __bool__(self) -> bool:
        return bool(self._known)

    def authenticate(self, headers: Mapping[bytes, bytes]) -> Principal:
        """The principal whose key was sent as `X-API-Key` or as a bearer token. Raises RequestError."""
        if not self._known:
            return _OPEN
        sent = headers.get(b"x-api-key") or b""
        if not sent:
            scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
            if scheme.lower() == b"bearer":
                sent = token.strip()
        if not sent:
            raise RequestError("unauthorized", "an API key is required: send it as X-API-Key or as a bearer token")
        digest = _digest(sent)
        found = None
        for known, principal in self._known:
            if hmac.compare_digest(known, digest):
                found = principal
        if found is None:
            raise RequestError("unauthorized", "this API key is not known here")
        return found


def _digest(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=32).digest()


def _name(key: str) -> str:
    """What a key is called where it must not be shown."""
    return hashlib.blake2b(key.encode(), digest_size=8, person=b"ors-key").hexdigest()
