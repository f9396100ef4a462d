"""The server: faces assembled into one application, with keys, limits, logs and docs."""

from ors.server.server import Server

__all__ = ["Server"]
