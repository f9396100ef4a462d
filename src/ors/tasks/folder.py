"""A folder of task folders: each folder in it is a task."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ors.errors import TaskFileError
from ors.jsontext import JSONTextError, load
from ors.tasks.declared import DeclaredSource, defining_folder, outside
from ors.tasks.descriptors import Signature, settled
from ors.tasks.locks import OpeningLock
from ors.tasks.source import Id

__all__ = ["Folder"]

_USUAL = ("task.json", "task.toml")


class Folder(DeclaredSource["str | os.PathLike[str]"]):
    """`{split: folder of task folders}`, in the order of their names; files, and names that start with `.`, are none.

    A task is `{"name", "path"}` (the folder's name, and its path as it starts from where you wrote the split's) and
    what the files named in `read` hold: a JSON or TOML file its fields, any other file one text under its name without
    the ending. Without `read`, `task.json` and `task.toml` are read where they are. The name is the task's id.
    """

    def __init__(
        self,
        where: Mapping[str, str | os.PathLike[str]],
        *,
        read: Sequence[str] | None = None,
        id: Id = "name",
        types: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(where, id=id, types=types)
        if isinstance(read, str):
            raise TypeError(f"read={read!r}; give a list of file names")
        self._read = read
        self._folder = defining_folder()
        self._lock = OpeningLock()
        self._opened: dict[str, tuple[Signature, list[str]]] = {}

    def count(self, split: str) -> int:
        """How many task folders a split has."""
        return len(self._names(split)[1])

    def get(self, split: str, index: int) -> dict[str, Any]:
        """The task in the folder at an index."""
        names = self._names(split)[1]
        if not 0 <= index < len(names):
            raise outside(split, index, len(names))
        name, where = names[index], os.fspath(self.where(split))
        task: dict[str, Any] = {"name": name, "path": os.path.join(where, name)}
        folder = self._folder / Path(where).expanduser() / name
        for file in _USUAL if self._read is None else self._read:
            try:
                content = (folder / file).read_bytes()
            except FileNotFoundError:
                if self._read is None and folder.is_dir():
                    continue
                raise TaskFileError(os.path.join(task["path"], file), "no such file", index + 1) from None
            except OSError as exc:
                raise TaskFileError(os.path.join(task["path"], file), str(exc.strerror or exc), index + 1) from exc
            for key, value in _fields(file, content, os.path.join(task["path"], file), index).items():
                if key in task:
                    raise TaskFileError(os.path.join(task["path"], file), f"there are two {key!r}", index + 1)
                task[key] = value
        return task

    def range(self, split: str, start: int, stop: int) -> list[dict[str, Any]]:
        """The tasks from `start` to before `stop`."""
        return [self.get(split, index) for index in range(start, min(stop, self.count(split)))]

    def version(self, split: str) -> Hashable:
        """The inode and times of the folder of the split; what changes inside a task folder does not show."""
        return self._names(split)[0]

    def tag(self, split: str) -> Hashable:
        """None: what changes inside a task folder does not show."""
        return None

    def _names(self, split: str) -> tuple[Signature, list[str]]:
        folder = self._folder / Path(self.where(split)).expanduser()
        try:
            opened = self._opened.get(split)
            if opened is not None and Signature.of(folder) == opened[0]:
                return opened
            with self._lock:
                signature = settled(folder)
                names = [entry.name for entry in os.scandir(folder) if entry.is_dir() and entry.name[0] != "."]
                opened = self._opened[split] = (signature, sorted(names))
                return opened
        except OSError as exc:
            raise TaskFileError(os.fspath(self.where(split)), f"{exc.strerror or exc} ({folder})") from exc

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": {}}


def _fields(file: str, content: bytes, named: str, index: int) -> dict[str, Any]:
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        text = content.decode()
        suffix = Path(file).suffix
        if suffix not in _PARSERS:
            return {Path(file).stem: text}
        found = _PARSERS[suffix](content, text)
    except UnicodeDecodeError as exc:
        raise TaskFileError(named, f"is not UTF-8: {exc.reason} at byte {exc.start}", index + 1) from None
    except JSONTextError as exc:
        raise TaskFileError(named, str(exc).replace("the body", "the file"), index + 1) from None
    except tomllib.TOMLDecodeError as exc:
        raise TaskFileError(named, f"is no TOML: {exc}", index + 1) from None
    if type(found) is not dict:
        raise TaskFileError(named, "holds no object", index + 1)
    return found


_PARSERS: dict[str, Callable[[bytes, str], Any]] = {
    ".json": lambda content, text: load(content),
    ".toml": lambda content, text: tomllib.loads(text),
}
