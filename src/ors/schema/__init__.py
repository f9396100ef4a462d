"""The data types of the Open Reward Standard for other languages, printed from the models in `ors.types`.

`json_schema()` is one draft-07 document with a definition for each type; `typescript()` declares the same types.

What a client sends (`ToolCall`, `CreateSession`, …) may leave out whatever has a default. In what a server answers,
and in what an environment makes of it, a default is written out; only a key that may be null can be missing, since the
standard lets servers leave those out. Both forms of every key are accepted where the standard's text shows both.
"""

from __future__ import annotations

from ors.schema.json_schema import json_schema
from ors.schema.typescript import typescript

__all__ = ["json_schema", "typescript"]
