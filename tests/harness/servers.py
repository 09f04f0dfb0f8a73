"""Database servers for tests: started once for all the tests of a process, on loopback, as their
own user, in a temporary directory. Debian's packages are installed where that is possible; else
the tests are skipped.

A test gets a database of its own in a server (`postgres_database`, `mariadb_url`).
"""

from __future__ import annotations

import fcntl
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harken.bench.postgres import QUICK, NoPostgres, PostgresServer, free_port, postgres_server
from tests.harness.patience import PATIENCE

NUMBERS = itertools.count(1)
LOCK = Path(tempfile.gettempdir()) / "harken-tests-apt.lock"
LOGICAL = ("wal_level=logical", "max_replication_slots=40", "max_wal_senders=0")


def installed(package: str, *programs: str) -> bool:
    """Whether a package of Debian is there; it is installed if it is not, and if that is
    possible."""
    if any(shutil.which(each) or Path(each).exists() for each in programs):
        return True
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if any(shutil.which(each) or Path(each).exists() for each in programs):
            return True
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-y", "--no-install-recommends", package]
        for command in (install, ["apt-get", "update"], install):
            done = subprocess.run(command, env=environment, check=False, **quiet)  # type: ignore[call-overload]
            if command == install and done.returncode == 0:
                return True
    return False


def running_postgres(*settings: str) -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg")
    installed("postgresql", *map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), "postgres")
    try:
        with postgres_server(*QUICK, *settings) as server:
            yield server
    except NoPostgres as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def logical_server() -> Iterator[PostgresServer]:
    """PostgreSQL whose log can be read."""
    yield from running_postgres(*LOGICAL)


@pytest.fixture(scope="session")
def plain_server() -> Iterator[PostgresServer]:
    """PostgreSQL as it is installed: no logical decoding."""
    yield from running_postgres("wal_level=replica")


EMPTY = """
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT evtname FROM pg_event_trigger LOOP
    EXECUTE format('DROP EVENT TRIGGER %I', name);
  END LOOP;
  FOR name IN SELECT pubname FROM pg_publication LOOP
    EXECUTE format('DROP PUBLICATION %I', name);
  END LOOP;
  FOR name IN SELECT nspname FROM pg_namespace
    WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' LOOP
    EXECUTE format('DROP SCHEMA %I CASCADE', name);
  END LOOP;
END $$;
CREATE SCHEMA public AUTHORIZATION pg_database_owner;
GRANT USAGE ON SCHEMA public TO PUBLIC;
"""


class PostgresDatabase:
    """An empty database in a server, with a connection that commits after each statement.

    The tests of a server use the same one after each other: to empty it takes a few milliseconds,
    to create another takes hundreds.
    """

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.name = f"test_{os.getpid()}"
        with self._connect("postgres") as connection:
            known = "SELECT 1 FROM pg_database WHERE datname = %s"
            if not connection.execute(known, [self.name]).fetchall():
                connection.execute(f"CREATE DATABASE {self.name} TEMPLATE template0")
        self._others: list[Any] = []
        self.connection = self._connect(self.name)

    @property
    def url(self) -> str:
        return self.server.url(self.name)

    def connect(self, user: str = "harken", **options: Any) -> Any:
        self._others.append(self._connect(self.name, user, **options))
        return self._others[-1]

    def _connect(self, database: str, user: str = "harken", **options: Any) -> Any:
        import psycopg

        place = self.server.place(database, user)
        return psycopg.connect(place, **{"autocommit": True, **options})

    def run(self, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
        if self.connection.closed:  # the server was stopped meanwhile
            self.connection = self._connect(self.name)
        found = self.connection.execute(statement, values)
        return found.fetchall() if found.description else []

    def empty(self) -> None:
        """Nothing of the test is left, and nobody else is connected. A database that has rights or
        settings of its own goes as a whole."""
        for each in (*self._others, self.connection):
            each.close()
        with self._connect("postgres") as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
                [self.name],
            )
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                "WHERE database = %s",
                [self.name],
            )
            changed = connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s AND (datacl IS NOT NULL "
                "OR oid IN (SELECT setdatabase FROM pg_db_role_setting))",
                [self.name],
            ).fetchall()
            if changed:
                connection.execute(f"DROP DATABASE {self.name}")
        if not changed:
            self.run(EMPTY)
            self.connection.close()


@pytest.fixture
def logical_database(logical_server: PostgresServer) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(logical_server)
    yield database
    database.empty()


@pytest.fixture
def plain_database(plain_server: PostgresServer) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(plain_server)
    yield database
    database.empty()


# --- MariaDB -------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[str]:
    """The URL of a MariaDB server for SQLAlchemy, without a database at its end."""
    pytest.importorskip("pymysql")
    if not installed("mariadb-server", "mariadbd"):
        pytest.skip("there is no MariaDB (Debian: apt-get install mariadb-server)")
    directory = Path(tempfile.mkdtemp(prefix="harken-mariadb-"))
    run_as = None
    if os.geteuid() == 0:
        try:
            run_as = pwd.getpwnam("mysql")
        except KeyError:
            pytest.skip("there is no user mysql, and the server does not run as root")
        os.chown(directory, run_as.pw_uid, run_as.pw_gid)
    user = None if run_as is None else run_as.pw_uid
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    port, data = free_port(), directory / "data"
    places = [f"--datadir={data}", "--innodb-flush-log-at-trx-commit=0"]
    subprocess.run(
        [
            "mariadb-install-db",
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            places[0],
        ],
        check=True,
        user=user,
        **quiet,
    )
    socket = f"--socket={directory}/socket"
    server = subprocess.Popen(
        [
            "mariadbd",
            "--no-defaults",
            *places,
            socket,
            "--bind-address=127.0.0.1",
            f"--port={port}",
        ],
        user=user,
        **quiet,
    )
    try:
        ping = ["mariadb-admin", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot"]
        subprocess.run([*ping, f"--wait={PATIENCE}", "ping"], check=True, **quiet)
        yield f"mysql+pymysql://root@127.0.0.1:{port}"
    finally:
        server.kill()  # its data is not needed again
        server.wait(PATIENCE)
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def mariadb_url(mariadb_server: str) -> Iterator[str]:
    """The URL of an empty database."""
    import sqlalchemy

    name = f"test_{os.getpid()}_{next(NUMBERS)}"
    engine = sqlalchemy.create_engine(mariadb_server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    yield f"{mariadb_server}/{name}?charset=utf8mb4"
    with engine.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name}")
    engine.dispose()
