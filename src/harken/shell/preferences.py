"""What the shell remembers of the last session: the language, and whether times are shown."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from harken.database.language_names import SQL


@dataclass(slots=True)
class Preferences:
    language: str = SQL
    timing: bool = True
    paging: bool = True


def read_preferences(path: Path) -> Preferences:
    """Those in the file, as far as it can be read."""
    with suppress(OSError, ValueError, TypeError):
        found = json.loads(path.read_text("utf-8"))
        known = {name: found[name] for name in asdict(Preferences()) if name in found}
        return Preferences(**known)
    return Preferences()


def write_preferences(path: Path, preferences: Preferences) -> None:
    with suppress(OSError):  # a home that cannot be written is no reason to complain
        path.write_text(json.dumps(asdict(preferences)), "utf-8")
