"""Ids that the server makes: random, with a short MAC, so that it can tell its own from a client's without a record."""

from __future__ import annotations

import hashlib
import hmac
import os

__all__ = ["IdMint"]


class IdMint:
    """Makes ids of 32 hexadecimal digits and recognises them. Fronts that share a key recognise each other's."""

    __slots__ = ("_keyed",)

    def __init__(self, key: bytes | None = None) -> None:
        secret = hashlib.blake2b(key, digest_size=32).digest() if key else os.urandom(32)
        self._keyed = hashlib.blake2b(key=secret, digest_size=4)

    def make(self) -> str:
        """A new id."""
        random = os.urandom(12)
        return (random + self._mac(random)).hex()

    def ours(self, text: str) -> bool:
        """Whether an id was made here."""
        if len(text) != 32:
            return False
        try:
            raw = bytes.fromhex(text)
        except ValueError:
            return False
        return len(raw) == 16 and hmac.compare_digest(raw[12:], self._mac(raw[:12]))

    def _mac(self, random: bytes) -> bytes:
        mac = self._keyed.copy()
        mac.update(random)
        return mac.digest()
