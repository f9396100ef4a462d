"""Where something is written: file and line of a method, and the author's line that an error passed through last."""

from __future__ import annotations

import inspect
import site
import sys
import sysconfig
import traceback
from types import FrameType
from typing import Any

__all__ = ["author_frame", "author_line", "line_of", "raised_at"]

_OURS = __name__.rpartition(".testing")[0]
_LIBRARIES = tuple(
    {
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        sysconfig.get_path("purelib"),
        *site.getsitepackages(),
    }
)


def line_of(cls: type, method: str) -> tuple[str | None, int | None]:
    """The file and line of a method, or of the class where it has none of that name."""
    found = inspect.getattr_static(cls, method, None) if method else None
    function: Any = getattr(found, "__func__", found)
    function = getattr(function, "fget", None) or inspect.unwrap(function) if callable(function) or found else function
    code = getattr(function, "__code__", None)
    if code is not None and author_line(code.co_filename, getattr(function, "__module__", "")):
        return code.co_filename, code.co_firstlineno
    try:
        return inspect.getsourcefile(cls), inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return None, None


def raised_at(exc: BaseException) -> tuple[str | None, int | None]:
    """The author's line that an error passed through last."""
    for frame in reversed(traceback.extract_tb(exc.__traceback__)):
        if author_line(frame.filename, ""):
            return frame.filename, frame.lineno
    return None, None


def author_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the author's own code, at or below a frame."""
    while frame is not None:
        if author_line(frame.f_code.co_filename, frame.f_globals.get("__name__", "")):
            return frame
        frame = frame.f_back
    return None


def author_line(file: str, module: str) -> bool:
    """Whether a file is an author's: neither this package nor the standard library nor an installed one."""
    if module == _OURS or module.startswith(f"{_OURS}."):
        return False
    return not file.startswith(("<frozen", *_LIBRARIES)) and not file.startswith(_ROOT)


_ROOT = str(sys.modules[_OURS].__path__[0]) if _OURS in sys.modules else "\0"
