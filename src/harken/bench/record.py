"""`harken bench --record FILE`: figures with the commit, the day and the machine they were measured
on.

The record is what the documents quote. A new measurement of a figure replaces the old one; all
others keep the commit that they were measured on.

Law: there is one figure for each name, measure and set of parameters.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from harken.bench.figures import Figure
from harken.errors import HarkenError

Key: TypeAlias = tuple[str, str, str]

REPOSITORY = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Run:
    """A benchmark as it is run for the documents."""

    name: str
    items: tuple[int, ...] = ()
    rounds: int | None = None
    tpch: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


PUBLISHED = (
    Run("point"),
    Run("load"),
    Run("query"),
    Run("inventory"),
    Run("inventory-small", items=(1_000, 10_000_000)),
    Run("many-rules", items=(1_000, 10_000)),
    Run("subscribers"),
    Run("subscribers-served"),
    Run("lake-steps"),
    Run("lake-growth"),
    Run("lake-parts"),
    Run("sql", rounds=3, tpch={"scales": (1,)}),
    Run("sql-load", tpch={"scales": (0.1,)}),
    Run("sql-sweep", tpch={"scales": (0.1,)}),
    Run("sql-lake", rounds=1, tpch={"scales": (1,)}),
    Run("sql-lake-sweep", tpch={"scales": (1,)}),
    Run("closure"),
    Run("closure-lake"),
    Run("counting"),
    Run("cq"),
    Run("cq-lake"),
    Run("serve"),
    Run("sources"),
    Run("waves"),
    Run("statements"),
    Run("statements-profile"),
)
"""What `harken bench --all` runs: every benchmark that a document quotes, in the size it quotes.
Together they take hours."""


class Record:
    """The figures in a file. Each is written when it is known, because a run of hours may be
    interrupted."""

    def __init__(self, path: Path, note: str = "") -> None:
        self._path = path
        self._origin = {
            "commit": commit(),
            "day": datetime.date.today().isoformat(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.python_version()}",
            **({"note": note} if note else {}),
        }
        self._content = read(path)

    def keep(self, figures: Iterable[Figure]) -> None:
        lines = {_key(line): line for line in self._content["figures"]}
        for figure in figures:
            line = json.loads(figure.json_line())
            del line["kind"]
            lines[_key(line)] = line | self._origin
        self._content["figures"] = [lines[key] for key in sorted(lines)]
        self._path.write_text(_text(self._content), encoding="utf-8")


def read(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The content of a record; empty if there is no file yet."""
    if not path.exists():
        return {"figures": [], "quotes": []}
    try:
        found = json.loads(path.read_text("utf-8"))
        return {"figures": list(found["figures"]), "quotes": list(found["quotes"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HarkenError(
            f"{path} is not a record of benchmarks: {error}",
            code="cannot-read",
            hint="give the path of a record, or of a new file",
        ) from error


def commit() -> str:
    """The commit that Harken runs from, with a + if files have changed since."""
    try:
        found = _git("rev-parse", "--short=7", "HEAD")
        return f"{found}+" if _git("status", "--porcelain", "--", "src") else found
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _key(line: Mapping[str, Any]) -> Key:
    return line["name"], json.dumps(line["params"], sort_keys=True), line["measure"]


def _text(content: Mapping[str, list[dict[str, Any]]]) -> str:
    """A line for each figure, so that a change of one is a change of one line."""
    parts = []
    for name, lines in content.items():
        shown = ",\n".join(f"  {json.dumps(line, ensure_ascii=False)}" for line in lines)
        parts.append(f'"{name}": [\n{shown}\n]' if shown else f'"{name}": []')
    return "{" + ",\n".join(parts) + "}\n"
