"""A PostgreSQL server of its own for a benchmark: as the user postgres, in a temporary directory,
on a free port of this machine. It is gone when the block ends."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PLACES = ("/usr/lib/postgresql", "/usr/local/lib/postgresql")


class NoPostgres(Exception):
    """There is none to measure beside, and why."""


@contextmanager
def postgres() -> Iterator[Any]:
    """A connection to a new server, which commits after each statement."""
    try:
        import psycopg
    except ModuleNotFoundError:
        raise NoPostgres("psycopg is not installed") from None
    programs, user = _programs(), _user()
    directory = Path(tempfile.mkdtemp(prefix="harken-postgres-"))
    try:
        os.chmod(directory, 0o700)
        if user is not None:
            os.chown(directory, user.pw_uid, user.pw_gid)
        port = _free_port()
        run = _runner(user, directory)
        run([programs / "initdb", "-D", directory / "data", "-A", "trust", "-U", "harken"])
        options = f"-p {port} -h 127.0.0.1 -k {directory}"
        log = directory / "log"
        control = [programs / "pg_ctl", "-w", "-D", directory / "data"]
        run([*control, "-l", log, "-o", options, "start"])
        try:
            place = f"host=127.0.0.1 port={port} user=harken dbname=postgres"
            with psycopg.connect(place, autocommit=True) as connection:
                yield connection
        finally:
            run([*control, "-m", "fast", "stop"])
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _programs() -> Path:
    found = [
        each for place in PLACES for each in Path(place).glob("*/bin") if (each / "initdb").exists()
    ]
    if not found:
        raise NoPostgres("there is no PostgreSQL (Debian: apt-get install postgresql)")
    return max(found, key=lambda each: float(each.parent.name))


def _user() -> pwd.struct_passwd | None:
    """Whom the server runs as: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        raise NoPostgres("there is no user postgres, and the server does not run as root") from None


def _runner(user: pwd.struct_passwd | None, directory: Path) -> Any:
    def run(command: list[Any]) -> None:
        subprocess.run(
            [str(part) for part in command],
            check=True,
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
        )

    return run


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
