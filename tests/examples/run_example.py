"""Runs an example's file as `python FILE` does; only the port that it names is replaced by a free one."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from ors import Server


def main(path: str, port: str) -> None:
    sys.path[0] = str(Path(path).parent)  # as Python has it for a script
    from serving import end_with_parent

    end_with_parent()
    serve = Server.run

    def run(self: Server, host: str = "0.0.0.0", port: int = 8080) -> None:
        assert host == "127.0.0.1", f"an example without keys is for this machine only, not for {host}"
        assert port == 8080
        serve(self, host=host, port=free)

    free = int(port)
    Server.run = run
    runpy.run_path(path, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
