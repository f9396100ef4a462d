"""Importing what somebody named on the command line, with errors that say what in it went wrong and where."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from ors.cli.errors import CommandError

__all__ = ["import_file", "import_module", "make_importable"]


def import_module(text: str, name: str) -> ModuleType:
    """Import a module by its name, with the current folder importable. Raises CommandError."""
    make_importable(os.getcwd())
    with _explaining(text, name, None):
        return importlib.import_module(name)


def import_file(text: str, file: Path) -> ModuleType:
    """Import a file under its own name, with its folder importable. Raises CommandError."""
    # the file's own name, so that a process that the server spawns can import it too
    name = file.stem.replace(".", "_")
    loaded = sys.modules.get(name)
    if loaded is not None:
        origin = getattr(loaded, "__file__", None)
        if origin is not None and Path(origin).resolve() == file:
            return loaded
        raise CommandError(f"'{text}' has the name of the module '{name}' ({origin or 'built in'}); rename the file")
    make_importable(str(file.parent))
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _explaining(text, name, file):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def make_importable(folder: str) -> None:
    """Let modules in a folder be imported."""
    if folder not in sys.path:
        sys.path.insert(0, folder)


@contextlib.contextmanager
def _explaining(text: str, name: str, file: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as exc:
        if file is None and exc.name is not None and (name == exc.name or name.startswith(f"{exc.name}.")):
            file_of_it = Path(*name.split(".")).with_suffix(".py")
            raise CommandError(
                f"'{text}': there is no module '{exc.name}' in the current folder or among the installed packages; "
                f"a file is written with its ending, '{file_of_it}'"
            ) from exc
        mend = f"; install what provides '{exc.name}' for this Python" if exc.name else ""
        raise CommandError(f"'{text}' cannot be imported: {_place(exc)}{exc}{mend}") from exc
    except ImportError as exc:
        mend = f"; {_about_relative_imports(file)}" if file is not None and "relative import" in str(exc) else ""
        raise CommandError(f"'{text}' cannot be imported: {_place(exc)}{exc}{mend}") from exc
    except SyntaxError as exc:
        where = f"{Path(exc.filename or text).name}, line {exc.lineno}"
        raise CommandError(f"'{text}' cannot be imported: {where}: {type(exc).__name__}: {exc.msg}") from exc
    except SystemExit as exc:
        raise CommandError(
            f"'{text}' ends the process when it is imported (exit code {exc.code!r}): {_place(exc)}"
            f"put what a program does under `if __name__ == '__main__':`"
        ) from exc
    except BaseException as exc:
        raise CommandError(f"'{text}' cannot be imported: {_place(exc)}{type(exc).__name__}: {exc}") from exc


def _place(exc: BaseException) -> str:
    """The last line of somebody's own code that an error passed through."""
    frames = [frame for frame in traceback.extract_tb(exc.__traceback__) if not _is_machinery(frame.filename)]
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}: " if frames else ""


def _is_machinery(filename: str) -> bool:
    return filename.startswith("<frozen ") or filename == __file__ or filename == importlib.__file__


def _about_relative_imports(file: Path) -> str:
    """Why `from .x import y` fails in a file that is named as a file, and how to serve it all the same."""
    if not (file.parent / "__init__.py").exists():
        return "a file that is in no package imports its neighbours by their names: `from neighbour import …`"
    parts, root = [file.stem], file.parent
    while (root / "__init__.py").exists():
        parts.insert(0, root.name)
        root = root.parent
    module = ".".join(parts)
    return f"relative imports need the package around the file: in the folder {root} run `ors serve {module}`"
