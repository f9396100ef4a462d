"""A shuffled order of any number of things that takes no memory: where each stands is computed, not looked up.

A Feistel network over the next power of four permutes the numbers below that; what lands past the end is permuted again
until it lands inside ("cycle walking", at most four times on average). Orders are the same on every machine and in
every version: a saved place in one stays valid.
"""

from __future__ import annotations

import hashlib

__all__ = ["Permutation"]

_ROUNDS = 6
_64_BITS = (1 << 64) - 1


class Permutation:
    """The numbers from 0 to `size` - 1 in an order that `seed` and `epoch` determine: `order[place]` is the number."""

    __slots__ = ("_half", "_keys", "_mask", "size")

    def __init__(self, size: int, seed: int, epoch: int = 0) -> None:
        if size < 0:
            raise ValueError(f"a size of {size}; it is at least 0")
        self.size = size
        self._half = max(1, (max(size - 1, 1).bit_length() + 1) // 2)
        self._mask = (1 << self._half) - 1
        text = f"{size},{seed},{epoch}".encode()
        digest = hashlib.blake2b(text, digest_size=8 * _ROUNDS, person=b"ors-order").digest()
        self._keys = [int.from_bytes(digest[at : at + 8], "little") for at in range(0, len(digest), 8)]

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, place: int) -> int:
        """The number at a place. Raises IndexError for a place outside."""
        if not 0 <= place < self.size:
            raise IndexError(f"place {place} in an order of {self.size}")
        half, mask = self._half, self._mask
        number = place
        while True:
            left, right = number >> half, number & mask
            for key in self._keys:
                left, right = right, left ^ (_mixed(right ^ key) & mask)
            number = left << half | right
            if number < self.size:
                return number


def _mixed(value: int) -> int:
    """64 bits of which each depends on all 64 of `value`."""
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _64_BITS
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _64_BITS
    return value ^ value >> 33
