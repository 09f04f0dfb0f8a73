"""A PostgreSQL server of its own, for a benchmark or the tests: as the user postgres, in a
temporary directory, on a free port of this machine. It is gone when the block ends."""

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
QUICK = ("fsync=off", "full_page_writes=off")
"""For servers whose machine does not crash while they are needed."""


class NoPostgres(Exception):
    """There is none to measure beside, and why."""


class PostgresServer:
    """It can be stopped, killed and started again, and keeps its port and its data."""

    def __init__(self, directory: Path, settings: tuple[str, ...] = ()) -> None:
        self.directory = directory
        self._user = _user()
        self._programs = _programs()
        self.port = free_port()
        os.chmod(directory, 0o700)
        if self._user is not None:
            os.chown(directory, self._user.pw_uid, self._user.pw_gid)
        self._settings = [f"-c {each}" for each in settings]
        run = self._run
        data = ("-D", directory / "data", "--no-sync")
        run("initdb", *data, "-A", "trust", "-U", "harken", "-E", "UTF8")

    def place(self, database: str = "postgres", user: str = "harken") -> str:
        return f"host=127.0.0.1 port={self.port} user={user} dbname={database}"

    def url(self, database: str = "postgres", user: str = "harken") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        options = " ".join([f"-p {self.port} -h 127.0.0.1 -k {self.directory}", *self._settings])
        self._control("-l", self.directory / "log", "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is a crash: it recovers when it starts."""
        self._control("-m", mode, "stop")

    def _control(self, *arguments: Any) -> None:
        self._run("pg_ctl", "-w", "-D", self.directory / "data", *arguments)

    def _run(self, program: str, *arguments: Any) -> None:
        user = self._user
        subprocess.run(
            [str(self._programs / program), *map(str, arguments)],
            check=True,
            cwd=self.directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
        )


@contextmanager
def postgres_server(*settings: str) -> Iterator[PostgresServer]:
    """A running server, with settings such as `wal_level=logical`."""
    directory = Path(tempfile.mkdtemp(prefix="harken-postgres-"))
    try:
        server = PostgresServer(directory, settings)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")  # its data is not needed again
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def postgres() -> Iterator[Any]:
    """A connection to a new server, which commits after each statement."""
    try:
        import psycopg
    except ModuleNotFoundError:
        raise NoPostgres("psycopg is not installed") from None
    with (
        postgres_server() as server,
        psycopg.connect(server.place(), autocommit=True) as connection,
    ):
        yield connection


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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
