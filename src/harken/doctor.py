"""`harken doctor`: what this machine has of what Harken needs, and what to do about the rest.

Looks without importing PySpark or starting Spark. Only the resident engine is needed for Harken to
be well: what the lake engine lacks is a warning.
"""

from __future__ import annotations

import enum
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

import harken

OLDEST_PYTHON = (3, 11)
OLDEST_JAVA = 17


class Health(enum.Enum):
    WELL = "ok"
    WARNING = "warning"
    BROKEN = "broken"


_MARKS = {
    Health.WELL: ("✓", "green"),
    Health.WARNING: ("!", "yellow"),
    Health.BROKEN: ("✗", "red"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was found, and what to do if that is not well."""

    subject: str
    found: str
    health: Health = Health.WELL
    remedy: str = ""


def examine() -> Iterator[Finding]:
    for look in CHECKS:
        yield look()


def show(findings: list[Finding]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for finding in findings:
        line = Text.assemble(_MARKS[finding.health], f" {finding.subject:<16} {finding.found}")
        console.print(line)
        if finding.remedy:
            console.print(Text(f"{'':<19}→ {finding.remedy}"))
    console.print("Harken is well." if is_well(findings) else "Harken does not work here yet.")


def is_well(findings: list[Finding]) -> bool:
    return all(finding.health is not Health.BROKEN for finding in findings)


def python() -> Finding:
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info >= OLDEST_PYTHON:
        return Finding("Python", found)
    return Finding("Python", found, Health.BROKEN, "install Python 3.11 or newer")


def sqlite() -> Finding:
    try:
        import apsw
    except ImportError as error:
        return Finding("SQLite", f"apsw: {error}", Health.BROKEN, _reinstall("apsw"))
    return Finding("SQLite", f"{apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})")


def grammar() -> Finding:
    return _package("lark", Health.BROKEN)


def resident_engine() -> Finding:
    """The proof: a small program in memory."""
    try:
        with harken.connect() as db:
            db.amosql("create type item properties (quantity integer);")
            db.amosql("create item(quantity) instances :x(20); set quantity(:x) = 22;")
            (row,) = db.amosql("select quantity(i) + 20 for each item i;").rows
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
        return Finding("resident engine", found, Health.BROKEN, _reinstall("harken"))
    if row != (42,):
        return Finding("resident engine", f"gave {row}", Health.BROKEN, _reinstall("harken"))
    return Finding("resident engine", "works")


def pyspark() -> Finding:
    return _package("pyspark", Health.WARNING)


def java() -> Finding:
    """As Spark looks for it: JAVA_HOME first, then the path."""
    path = _java_path()
    remedy = f"for the lake engine install Java {OLDEST_JAVA} or newer, or set JAVA_HOME to it"
    if path is None:
        return Finding("Java", "not found", Health.WARNING, remedy)
    version = _java_version(path)
    if version is None:
        return Finding("Java", f"{path} does not run", Health.WARNING, remedy)
    if version < OLDEST_JAVA:
        return Finding("Java", f"{version} ({path})", Health.WARNING, remedy)
    return Finding("Java", f"{version} ({path})")


def pyspark_python() -> Finding:
    """Workers run this interpreter; one without Harken's packages makes them die without a word."""
    chosen = os.environ.get("PYSPARK_PYTHON")
    if chosen is None:
        found, health = "not set", Health.WARNING
    elif _same_interpreter(chosen):
        return Finding("PYSPARK_PYTHON", chosen)
    else:
        found, health = f"{chosen} is not this interpreter", Health.WARNING
    remedy = f"for the lake engine: export PYSPARK_PYTHON={sys.executable}"
    return Finding("PYSPARK_PYTHON", found, health, remedy)


CHECKS: tuple[Callable[[], Finding], ...] = (
    python,
    sqlite,
    grammar,
    resident_engine,
    pyspark,
    java,
    pyspark_python,
)


def _package(name: str, if_missing: Health) -> Finding:
    try:
        return Finding(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "not installed", if_missing, _reinstall(name))


def _reinstall(name: str) -> str:
    return f"install it again: {sys.executable} -m pip install --force-reinstall {name}"


def _java_path() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        return shutil.which(os.path.join(home, "bin", "java"))
    return shutil.which("java")


def _java_version(path: str) -> int | None:
    """17 for `openjdk version "17.0.9"`, 8 for `java version "1.8.0_402"`."""
    try:
        shown = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    return int(found[1]) if found else None


def _same_interpreter(chosen: str) -> bool:
    path = shutil.which(chosen)
    return path is not None and os.path.abspath(path) == os.path.abspath(sys.executable)
