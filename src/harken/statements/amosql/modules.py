"""Python modules beside a script: `foreign "notify:post"` finds `notify.py` in its directory.

As with Python's own scripts, that directory is searched first. `sys.path` is extended only during
the import, and a module of the same name that is already loaded from elsewhere keeps its name.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

_lock = threading.Lock()
_loaded: dict[tuple[str, str], ModuleType] = {}
"""Modules by the directory they were found in and their name."""


def find_module(name: str, directories: Sequence[str]) -> ModuleType:
    """The module of this name: from the directory of a script, or else from Python's path."""
    top = name.partition(".")[0]
    for directory in directories:
        if (Path(directory) / f"{top}.py").is_file() or (Path(directory) / top).is_dir():
            with _lock:
                return _import_from(directory, name, top)
    return importlib.import_module(name)


def _import_from(directory: str, name: str, top: str) -> ModuleType:
    known = _loaded.get((directory, name))
    if known is None:
        with _first(directory), _name_free(top, directory):
            importlib.invalidate_caches()
            known = _loaded[directory, name] = importlib.import_module(name)
    return known


@contextmanager
def _first(directory: str) -> Iterator[None]:
    before = list(sys.path)
    sys.path.insert(0, directory)
    try:
        yield
    finally:
        sys.path[:] = before


@contextmanager
def _name_free(top: str, directory: str) -> Iterator[None]:
    """Temporarily remove modules of this name that come from other directories."""
    others = {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] == top and not _is_in(module, directory)
    }
    for name in others:
        del sys.modules[name]
    try:
        yield
    finally:
        if others:
            for name in [each for each in sys.modules if each.partition(".")[0] == top]:
                del sys.modules[name]
            sys.modules.update(others)


def _is_in(module: ModuleType, directory: str) -> bool:
    place = getattr(module, "__file__", None)
    return place is not None and Path(place).resolve().is_relative_to(directory)
