"""Serves with `Server.run`: `python -m faces.run_alone SETTINGS PORT`, the settings as JSON. It imports little."""

from __future__ import annotations

import json
import sys

from ors import Server

from .probes import Odd, Probe, Slow

if __name__ == "__main__":
    Server([Probe, Slow, Odd], **json.loads(sys.argv[1])).run("127.0.0.1", int(sys.argv[2]))
