"""Files of this machine, read only under the allowed roots.

Law: a path is permitted if what it leads to, with all symbolic links resolved, is under a root, and
it is that file which is read. A file that changes while it is read is not taken.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from harken.errors import SourceFault
from harken.limits import check

MOST_FILES = 100_000
"""Files of one source."""
SETTLED_SECONDS = 1.0
"""A file whose last change is older than this has another time when it changes again. File systems
count time in steps, of up to a second."""
READ_AT_ONCE = 1 << 20
WILDCARDS = frozenset("*?[")


def permitted(path: str | Path, roots: Sequence[str] | None) -> Path:
    """The file or directory that a path leads to."""
    try:
        found = Path(path).resolve()
    except (OSError, RuntimeError, ValueError):
        raise SourceFault(f"the path {path} leads nowhere", code="bad-option") from None
    if roots is None or any(found.is_relative_to(Path(root).resolve()) for root in roots):
        return found
    raise SourceFault(
        f"{path} lies outside of the directories that sources may read",
        code="not-allowed",
        hint="the setting source_roots names them; a symbolic link counts as what it leads to",
    )


def files_at(path: str, roots: Sequence[str] | None) -> list[Path]:
    """The file of this path, or all files that a pattern with `*` matches, `**` for any depth.
    Names that begin with `.` or `_` are left out by patterns."""
    if not WILDCARDS & set(path):
        return [existing(permitted(path, roots))]
    fixed = Path(path)
    while WILDCARDS & set(str(fixed)):
        fixed = fixed.parent
    if not permitted(fixed, roots).is_dir():
        raise _missing(fixed)
    found = (permitted(each, roots) for each in glob.iglob(path, recursive=True))
    return _listed(each for each in found if each.is_file() and not is_hidden(each.name))


def files_below(directory: str, pattern: str, roots: Sequence[str] | None) -> list[Path]:
    """The files of a directory and its subdirectories that match a pattern."""
    top = permitted(directory, roots)
    if not top.is_dir():
        raise _missing(top)
    return _listed(
        permitted(each, roots)
        for each in top.rglob(pattern)
        if each.is_file() and not any(map(is_hidden, each.relative_to(top).parts))
    )


def is_hidden(name: str) -> bool:
    """Spark leaves out such files, too: write one under such a name, and rename it when it is
    complete."""
    return name.startswith((".", "_"))


def existing(path: Path) -> Path:
    if not path.is_file():
        raise _missing(path)
    return path


def _listed(files: Iterator[Path]) -> list[Path]:
    found: set[Path] = set()
    for each in files:
        check()
        found.add(each)
        if len(found) > MOST_FILES:
            raise SourceFault(
                f"there are more than {MOST_FILES:,} files",
                code="bad-option",
                hint="use a narrower pattern, or several sources",
            )
    return sorted(found)


def _missing(path: Path) -> SourceFault:
    what = "directory" if path.is_file() else "file or directory"
    return SourceFault(f"there is no {what} {path}", code="source-down", hint="check the path")


# --- has a file changed? --------------------------------------------------------------------------


def stamp_of(path: Path, digest: str = "") -> str:
    """What tells this state of a file from others."""
    status = path.stat()
    changed = max(status.st_mtime, status.st_ctime)
    facts = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
    # The clock of the file system is that of the machine, not one that was passed in.
    settled = time.time() - changed > SETTLED_SECONDS
    return json.dumps({"stat": facts, "settled": settled, "digest": digest})


def is_unchanged(path: Path, stamp: str) -> bool:
    """Is the file surely as it was? Does not read it."""
    before, now = json.loads(stamp), json.loads(stamp_of(path))
    return bool(before["settled"] and before["stat"] == now["stat"])


def read_whole(path: Path, most_bytes: int) -> tuple[bytes, str]:
    """The bytes of a file and its stamp."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(path, error) from None
    with os.fdopen(descriptor, "rb") as file:
        try:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise SourceFault(f"{path} is no file that can be read", code="bad-option")
            if before.st_size > most_bytes:
                raise too_large(path, most_bytes)
            body = bytearray()
            while part := file.read(READ_AT_ONCE):
                check()
                body += part
                if len(body) > most_bytes:
                    raise too_large(path, most_bytes)
            after = os.fstat(file.fileno())
        except OSError as error:
            raise _unreadable(path, error) from None
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise SourceFault(
            f"{path} was written while it was read",
            code="source-suspect",
            hint="write a file under a name that begins with _ and rename it when it is complete",
        )
    return bytes(body), stamp_of(path, hashlib.sha256(body).hexdigest())


def too_large(path: Path, most_bytes: int) -> SourceFault:
    return SourceFault(
        f"{path} is larger than {most_bytes:,} bytes",
        code="source-suspect",
        hint="raise the limit with the option max_bytes, if the file may be so large",
    )


def _unreadable(path: Path, error: OSError) -> SourceFault:
    return SourceFault(f"{path} cannot be read: {error.strerror}", code="source-down")
