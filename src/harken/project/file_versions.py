"""Watches the files of a project for changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from harken.errors import HarkenError
from harken.project.project_files import Project, files_below, read_project

PAUSE = 0.5
"""Seconds between two checks of the files."""


def versions(directory: Path, project: Project | None) -> dict[str, tuple[int, int] | None]:
    """Changes whenever any file changes, including files that could not be read completely."""
    files = {*files_below(directory), *(project.files if project is not None else ())}
    return {str(file): _version(file) for file in files}


def _version(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def each_version(
    directory: Path,
    refused: Callable[[HarkenError], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Project]:
    """The present project, and again whenever it has changed; errors are reported."""
    project: Project | None = None
    while True:
        seen = versions(directory, project)
        try:
            project = read_project(directory)
            seen = versions(directory, project)
            yield project
        except HarkenError as error:
            refused(error)
        while versions(directory, project) == seen:
            sleep(PAUSE)
