"""Whether a server, in whatever language, does what the protocols' texts say.

The table holds one row for each requirement; `check_server` runs the rows that a network can show and reports on each.
Nothing here is shared with the server or the client that are judged: it speaks HTTP and reads streams by itself.
"""

from __future__ import annotations

from ors.conformance.run import Finding, Report, Unreachable, check_server
from ors.conformance.table import LEVELS, Level, Row, sentences

__all__ = [
    "LEVELS",
    "PROTOCOLS",
    "Finding",
    "Level",
    "Report",
    "Row",
    "Unreachable",
    "check_server",
    "probe_source",
    "rows_of",
    "sentences",
]

PROTOCOLS = ("ors", "openenv")
PROBES = ("ors", "openreward")


def rows_of(protocol: str) -> tuple[Row, ...]:
    """The rows of a protocol. Raises LookupError where there are none yet."""
    if protocol == "ors":
        from ors.conformance.ors_rows import ROWS

        return ROWS
    raise LookupError(f"there are no rows for {protocol!r} yet")


def probe_source(package: str) -> str:
    """The source of the probe environment, as it is served with a package: `ors` (also ors-sdk) or `openreward`."""
    from importlib import resources

    text = resources.files("ors.conformance").joinpath("probe", "environment.py").read_text("utf-8")
    if package == "ors":
        return text
    if package == "openreward":
        return text.replace("from ors import", "from openreward.environments import")
    raise LookupError(f"there is no probe for {package!r}")
