"""The rows of OpenEnv: its guide to the Task API, and what its published clients rely on, one module for each area."""

from __future__ import annotations

from ors.conformance.openenv_rows.discovery import ENV, SPLIT
from ors.conformance.openenv_rows.episodes import ABOUT, EPISODE
from ors.conformance.openenv_rows.ranges import RANGE
from ors.conformance.openenv_rows.rpc import RPC
from ors.conformance.openenv_rows.socket_errors import REFUSAL
from ors.conformance.openenv_rows.sockets import SOCKET
from ors.conformance.openenv_rows.tasks import TASK
from ors.conformance.table import Row

__all__ = ["AREAS", "ROWS"]

AREAS = (ENV, SPLIT, TASK, RANGE, ABOUT, EPISODE, SOCKET, REFUSAL, RPC)
"""In the order in which they are checked."""

ROWS: tuple[Row, ...] = tuple(row for area in AREAS for row in area.rows)
