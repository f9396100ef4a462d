"""Where something is in the author's code: which files are theirs, where a method stands, where an error arose."""

from __future__ import annotations

import inspect
import linecache
import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

import ors

__all__ = ["Own", "Spot"]

Spot = tuple[str | None, int | None]
"""A file and a line of it, counted from 1."""

_OURS = str(Path(ors.__file__).resolve().parent)


def _libraries() -> tuple[str, ...]:
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths |= {*site.getsitepackages(), site.getusersitepackages()}
    return tuple(str(Path(path).resolve()) for path in paths if path)


_LIBRARIES = _libraries()


class Own:
    """What is the author's own code, seen from a class: its files, and whatever belongs to no installed package."""

    def __init__(self, classes: Iterable[type]) -> None:
        self.classes = [
            cls
            for cls in dict.fromkeys(base for given in classes for base in given.__mro__)
            if cls.__module__ not in ("builtins", "abc", "typing") and not _is_machinery(cls.__module__)
        ]
        roots = set()
        for cls in self.classes:
            file = getattr(sys.modules.get(cls.__module__), "__file__", None)
            if file is not None:
                path = Path(file).resolve()
                top = cls.__module__.split(".")
                roots.add(
                    str(path.parents[len(top) - 2]) if len(top) > 1 and len(top) <= len(path.parents) else str(path)
                )
        self._roots = tuple(roots)
        self._known: dict[str, bool] = {}

    def has(self, file: str) -> bool:
        """Whether a file is the author's."""
        known = self._known.get(file)
        if known is None:
            known = self._known[file] = self._look(file)
        return known

    def _look(self, file: str) -> bool:
        if file.startswith("<"):
            return False
        path = str(Path(file).resolve())
        if any(path == root or path.startswith(root + os.sep) for root in self._roots):
            return True
        return not path.startswith((_OURS, *_LIBRARIES)) and "site-packages" not in path

    def frame(self, frame: FrameType | None) -> FrameType | None:
        """The innermost frame of the author's code, from this one outwards."""
        while frame is not None and not self.has(frame.f_code.co_filename):
            frame = frame.f_back
        return frame

    def raised_at(self, error: BaseException) -> Spot:
        """The innermost line of the author's code that an error passed through."""
        trace: TracebackType | None = error.__traceback__
        spot: Spot = (None, None)
        while trace is not None:
            if self.has(trace.tb_frame.f_code.co_filename):
                spot = (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
            trace = trace.tb_next
        return spot

    def of_method(self, cls: type, name: str) -> Spot:
        """Where a method is defined; where its class is, if that method is nobody's own."""
        for base in cls.__mro__:
            member = vars(base).get(name)
            if member is None:
                continue
            if base not in self.classes:
                break
            code = _code_of(member)
            if code is not None:
                return code.co_filename, _line_of_def(code)
        return self.of_class(cls)

    def of_class(self, cls: type) -> Spot:
        """Where a class is defined."""
        try:
            return inspect.getsourcefile(cls), inspect.getsourcelines(cls)[1]
        except (OSError, TypeError):
            return None, None

    def of_attribute(self, cls: type, name: str) -> Spot:
        """Where a class sets an attribute."""
        for base in cls.__mro__:
            if base in self.classes and name in vars(base):
                file, first = self.of_class(base)
                if file is None or first is None:
                    return file, first
                return file, _line_with(file, first, rf"^\s+{re.escape(name)}\s*(?::[^=]+)?=") or first
        return self.of_class(cls)

    def of_global(self, module: str, name: str) -> Spot:
        """Where a module sets a variable."""
        file = getattr(sys.modules.get(module), "__file__", None)
        return file, _line_with(file, 1, rf"^{re.escape(name)}\s*(?::[^=]+)?=") if file else None


def _is_machinery(module: str) -> bool:
    top = module.partition(".")[0]
    if module.startswith("ors."):
        return not module.startswith("ors.conformance.probe")
    return top in ("ors", "openenv", "openreward", "pydantic", "typing", "abc", "collections", "enum")


def _code_of(member: Any) -> CodeType | None:
    for _ in range(5):
        if isinstance(member, (classmethod, staticmethod)):
            member = member.__func__
        elif isinstance(member, property):
            member = member.fget
    member = inspect.unwrap(member) if callable(member) else member
    return getattr(member, "__code__", None)


def _line_of_def(code: CodeType) -> int:
    """The line of `def`, below the decorators where the code begins."""
    return _line_with(
        code.co_filename, code.co_firstlineno, rf"^\s*(?:async\s+)?def\s+{re.escape(code.co_name)}\b"
    ) or (code.co_firstlineno)


def _line_with(file: str, first: int, pattern: str) -> int | None:
    lines = linecache.getlines(file)
    for number in range(first, len(lines) + 1):
        if re.match(pattern, lines[number - 1]):
            return number
    return None
