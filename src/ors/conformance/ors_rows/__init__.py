"""The rows of the Open Reward Standard, one module for each area. OpenEnv's Task API has part of it."""

from __future__ import annotations

from ors.conformance.ors_rows.calls import CALL
from ors.conformance.ors_rows.create import CREATE
from ors.conformance.ors_rows.environments import ENV
from ors.conformance.ors_rows.outputs import OUTPUT
from ors.conformance.ors_rows.prompts import BLOCK, PROMPT
from ors.conformance.ors_rows.ranges import RANGE
from ors.conformance.ors_rows.replay import REPLAY
from ors.conformance.ors_rows.server import SERVER
from ors.conformance.ors_rows.sessions import SESSION
from ors.conformance.ors_rows.splits import SPLIT
from ors.conformance.ors_rows.stream import STREAM
from ors.conformance.ors_rows.tasks import TASK
from ors.conformance.ors_rows.tools import TOOL
from ors.conformance.table import Row

__all__ = ["AREAS", "ROWS"]

AREAS = (ENV, TOOL, SPLIT, TASK, RANGE, CREATE, SESSION, PROMPT, BLOCK, CALL, REPLAY, STREAM, OUTPUT, SERVER)
"""In the order in which they are checked."""

ROWS: tuple[Row, ...] = tuple(row for area in AREAS for row in area.rows)
