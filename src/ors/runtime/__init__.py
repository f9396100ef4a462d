"""Where author code runs: lanes for synchronous code, a loop of its own for asynchronous code, limits, captured output.

Used by every owner process. Author code never runs on the server's event loop.
"""

from ors.runtime.running import Home, Running
from ors.runtime.runtime import Runtime, RuntimeOptions

__all__ = ["Home", "Running", "Runtime", "RuntimeOptions"]
