"""The servers of the face tests, on both hosts."""

from __future__ import annotations

from faces.conftest import host_process, serve

__all__ = ["host_process", "serve"]
