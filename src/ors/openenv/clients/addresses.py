"""The addresses of one server: what was given, its WebSocket, and where its HTTP routes begin."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit, urlunsplit

__all__ = ["http_base", "is_local", "websocket_url"]

_SECURE = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


def websocket_url(base_url: str, path: str = "/ws") -> str:
    """`http://host`, `wss://host/prefix`, or a bare host → the address of its WebSocket. Raises ValueError."""
    scheme, rest = _split(base_url)
    stem = rest.removesuffix(path)
    return f"{_SECURE[scheme]}://{stem}{path}"


def http_base(base_url: str) -> str:
    """The address below which the HTTP routes are; it ends in a slash, so that `urljoin` keeps a prefix."""
    scheme, rest = _split(base_url)
    secure = _SECURE[scheme] == "wss"
    return f"{'https' if secure else 'http'}://{rest.removesuffix('/ws')}/"


def is_local(base_url: str) -> bool:
    """Whether a server is on this machine, where no proxy and no compression is wanted."""
    host = urlsplit(f"//{_split(base_url)[1]}").hostname or ""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
        # who connects to "any address" comes to this machine
        return address.is_loopback or address.is_unspecified
    except ValueError:
        return False


def _split(base_url: str) -> tuple[str, str]:
    text = base_url.strip()
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    scheme = scheme.lower()
    if scheme not in _SECURE or not rest or rest.startswith("/"):
        raise ValueError(f"base_url is no address of a server: {base_url[:200]!r}; write http://host:port")
    parts = urlsplit(f"//{rest}")
    return scheme, urlunsplit(("", parts.netloc, parts.path.rstrip("/"), "", "")).removeprefix("//")
