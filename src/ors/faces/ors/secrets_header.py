"""The header `X-Secrets`: base64 of `{name: {"value": str, "allowed_domains"?: [str]}}`."""

from __future__ import annotations

import base64
import binascii

from ors.errors import RequestError
from ors.jsontext import JSONTextError, load

__all__ = ["secrets_from_header"]


def secrets_from_header(header: bytes | None) -> dict[str, str]:
    """Read the header. Raises RequestError without repeating anything of it."""
    if not header or not header.strip():
        return {}
    try:
        data = load(base64.b64decode(header.strip(), validate=True))
    except (binascii.Error, ValueError, JSONTextError):
        raise RequestError("invalid_header", "X-Secrets is not base64 of a JSON object") from None
    if not isinstance(data, dict):
        raise RequestError("invalid_header", "X-Secrets is not base64 of a JSON object")
    secrets = {}
    for name, entry in data.items():
        value = entry.get("value") if isinstance(entry, dict) else entry
        if not isinstance(value, str):
            raise RequestError("invalid_header", f"X-Secrets: the entry {name[:100]!r} has no text as its value")
        secrets[name] = value
    return secrets
