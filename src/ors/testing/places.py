"""Where something is written: file and line of a method, and the author's line that an error passed through last."""

from __future__ import annotations

import inspect
import linecache
import re
import site
import sys
import sysconfig
import traceback
from types import CodeType, FrameType
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
        return code.co_filename, _line_of_def(code)
    for base in cls.__mro__ if method and method in dir(cls) else (cls,):
        if method and method not in vars(base):
            continue
        try:
            lines, first = inspect.getsourcelines(base)
            set_at = (n for n, line in enumerate(lines) if method and re.match(rf"\s+{method}\s*(?::[^=]+)?=", line))
            return inspect.getsourcefile(base), first + next(set_at, 0)
        except (OSError, TypeError):
            break
    return None, None


def _line_of_def(code: CodeType) -> int:
    """The line of `def`; code begins with its decorators."""
    lines = linecache.getlines(code.co_filename)
    for number in range(code.co_firstlineno, min(code.co_firstlineno + 20, len(lines) + 1)):
        if re.match(rf"\s*(?:async\s+)?def\s+{re.escape(code.co_name)}\b", lines[number - 1]):
            return number
    return code.co_firstlineno


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
