"""Serves an example's file with `ors serve`, its environments in a process that the server spawns."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(path: str, port: str) -> None:
    del sys.path[0]  # the command `ors` has no script's folder on its path
    os.environ["ORS_HOST_PROCESS"] = "spawned"
    from ors.cli import main

    sys.argv = ["ors", "serve", str(Path(path)), "--port", port]
    main()


if __name__ == "__main__":
    main(*sys.argv[1:])
