"""Ids that the server makes: random, with a short MAC, so that it can tell its own from a client's without a record."""

from __future__ import annotations

import hashlib
import hmac
import os

__all__ = ["IdMint"]


class IdMint:
    """Makes ids of 32 hexadecimal digits and recognises them. Fronts that share a key recognise each other's."""

    __slots__ = ("_keyed", "_random")

    def __init__(self, key: bytes | None = None) -> None:
        secret = hashlib.blake2b(key, digest_size=32).digest() if key else os.urandom(32)
        self._keyed = hashlib.blake2b(key=secret, digest_size=4)
        self._random: list[bytes] = []

    def make(self) -> str:
        """A new id."""
        if not self._random:
            # asked of the system for many at once: a system call for each would cost more than all the rest
            many = os.urandom(12 * 256)
            self._random = [many[at : at + 12] for at in range(0, len(many), 12)]
        random = self._random.pop()
        mac = self._keyed.copy()
        mac.update(random)
        return (random + mac.digest()).hex()

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
