"""Copying one version of a table, while others go on committing to it.

Law: the copy has that version as its newest, with the same rows and the same log up to it.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from harken.engines.delta.tables import SIDE, LakeTable

LOG = "_delta_log"
NUMBERED = re.compile(r"(\d{20})\b.*")
"""A file of the log or beside it, which begins with the version it is for."""


def copy_version(path: str, version: int, target: Path) -> int:
    """Copy a version of the table at `path`; returns the number of its rows. A file that is
    deleted meanwhile is a FileNotFoundError."""
    source = Path(path)
    files = LakeTable.open(path).snapshot(version).files
    for file in files:
        _copy(source / file.path, target / file.path)
    for folder in (LOG, SIDE):
        for each in sorted((source / folder).glob("*")):
            numbered = NUMBERED.fullmatch(each.name)
            if each.is_file() and numbered and int(numbered[1]) <= version:
                _copy(each, target / folder / each.name)
    return sum(file.rows for file in files)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
