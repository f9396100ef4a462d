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
PROBES = ("ors", "openreward", "openenv", "ors.openenv")


def rows_of(protocol: str) -> tuple[Row, ...]:
    """The rows of a protocol. Raises LookupError for one that is not known."""
    if protocol == "ors":
        from ors.conformance.ors_rows import ROWS

        return ROWS
    if protocol == "openenv":
        from ors.conformance.openenv_rows import ROWS as ROWS_OF_OPENENV

        return ROWS_OF_OPENENV
    raise LookupError(f"there are no rows for {protocol!r}; the protocols are {', '.join(PROTOCOLS)}")


def probe_source(package: str) -> str:
    """The source of the probe environment, as it is served with a package: `ors` (also ors-sdk), `openreward`,
    `openenv`, or `ors.openenv`."""
    from importlib import resources

    folder = resources.files("ors.conformance").joinpath("probe")
    if package == "openenv":
        return folder.joinpath("openenv_environment.py").read_text("utf-8")
    if package == "ors.openenv":
        text = folder.joinpath("openenv_environment.py").read_text("utf-8")
        return text.replace("from openenv.core.env_server import", "from ors.openenv import")
    text = folder.joinpath("environment.py").read_text("utf-8")
    if package == "ors":
        return text
    if package == "openreward":
        return text.replace("from ors import", "from openreward.environments import")
    raise LookupError(f"there is no probe for {package!r}")
