"""Classes whose annotations are text: what they name stands in the class, in a function, or nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from ors.tools import tool
from ors.types import ToolOutput

if TYPE_CHECKING:
    from somewhere import Absent  # type: ignore[import-not-found]


class InsideClass:
    class Params(BaseModel):
        answer: str

    @tool
    def go(self, params: Params) -> ToolOutput: ...


def _make() -> Any:
    class Params(BaseModel):
        answer: str

    class Inside:
        @tool
        def go(self, params: Params) -> ToolOutput:
            return ToolOutput(blocks=Params.__name__)

    return Inside


InsideFunction = _make()


class Unreadable:
    @tool
    def go(self, params: Absent) -> ToolOutput: ...
