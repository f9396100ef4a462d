"""Descriptors for as many connections as sessions need: the soft limit grows before it is met, up to the hard one."""

from __future__ import annotations

__all__ = ["see"]

_threshold: float | None = None


def see(descriptor: int) -> None:
    """A connection has this descriptor. The lowest free number is always given, so it says how many are in use."""
    global _threshold
    if _threshold is None or descriptor > _threshold:
        _threshold = _grow(descriptor)


def _grow(descriptor: int) -> float:
    """Make room beyond a descriptor, and return the number at which to look again."""
    try:
        import resource
    except ImportError:
        return float("inf")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return float("inf")
    if descriptor <= soft * 0.6:
        return soft * 0.6
    wanted = max(4 * descriptor, 4096)
    most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    if most <= soft:
        return float("inf")
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (ValueError, OSError):
        return float("inf")
    return most * 0.6
