"""Connections to a PostgreSQL server, with the addresses and files that an operator allows.

Every session writes values in the same way whatever the server's defaults are, because rows come as
text. An error of the driver becomes a `SourceFault` that names the server and never a password.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import conninfo, errors

from harken.errors import HarkenError, SourceFault
from harken.network_guard import permitted_addresses
from harken.sources.outside import Context

Connection = psycopg.Connection[tuple[Any, ...]]
DEFAULT_PORT = "5432"
SESSION = """
    SET datestyle = 'ISO, YMD'; SET intervalstyle = 'iso_8601'; SET timezone = 'UTC';
    SET extra_float_digits = 1; SET bytea_output = 'hex'; SET lc_monetary = 'C';
    SET xmloption = 'content'; SET idle_in_transaction_session_timeout = 0
"""
SERVER = """
    SELECT system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    FROM pg_control_system()
"""
FILES = ("sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir")
"""Parameters that name files of this machine."""
REFUSED = ("passfile", "service", "servicefile", "hostaddr", "requirepeer", "krbsrvname", "gsslib")
"""Parameters that would read other files, or connect elsewhere than the host says."""


class Place:
    """Where a server is, and how to connect to it. It holds the password and shows it nowhere."""

    def __init__(self, url: str, password: str | None, timeout: float, context: Context) -> None:
        try:
            given = conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            raise SourceFault(
                "the url of the source is not one of PostgreSQL",
                code="bad-option",
                hint="write postgresql://user@host:5432/database",
            ) from None
        self._parameters = {name: str(value) for name, value in given.items() if value is not None}
        if password is not None:
            self._parameters["password"] = password
        self._timeout = timeout
        self._context = context
        self._check_parameters()

    @property
    def host(self) -> str:
        return self._parameters.get("host", os.environ.get("PGHOST", ""))

    @property
    def database(self) -> str:
        default = os.environ.get("PGDATABASE", self.user)
        return self._parameters.get("dbname") or default

    @property
    def user(self) -> str:
        return self._parameters.get("user", os.environ.get("PGUSER", ""))

    @property
    def name(self) -> str:
        """Which server and database it is, and as whom: without a secret."""
        port = self._parameters.get("port", DEFAULT_PORT)
        return f"postgresql://{self.user}@{self.host}:{port}/{self.database}"

    def _check_parameters(self) -> None:
        for name in REFUSED:
            if name in self._parameters:
                raise SourceFault(f"the url may not say {name}", code="not-allowed")
        roots = self._context.allowed_roots
        for name in FILES:
            path = self._parameters.get(name)
            if path in (None, "", "system") or roots is None:
                continue
            real = Path(str(path)).resolve()
            if not any(real.is_relative_to(Path(root).resolve()) for root in roots):
                raise SourceFault(
                    f"the file that {name} names is outside of the directories that sources may "
                    "read",
                    code="not-allowed",
                    hint="the operator names these directories with --set source_roots=PLACE",
                )

    def connect(self, *, autocommit: bool = True) -> Connection:
        with told(self):
            connection = psycopg.connect(
                "",
                autocommit=autocommit,
                **{**self._parameters, **self._addresses()},  # type: ignore[arg-type]
                connect_timeout=max(2, round(self._timeout)),
                application_name=self._parameters.get("application_name", self._context.agent),
                client_encoding="UTF8",
                keepalives_idle=30,
            )
            try:
                connection.execute(SESSION)
                if not autocommit:
                    connection.commit()
            except BaseException:
                connection.close()
                raise
        return connection

    def _addresses(self) -> Mapping[str, str]:
        """What to connect to instead of names: an address that was checked."""
        if self._context.allow_private_addresses:
            return {}
        hosts = self.host.split(",")
        if any(host.startswith(("/", "@")) or not host for host in hosts):
            raise SourceFault(
                "the url leads to a server on this machine",
                code="not-allowed",
                hint="the operator can allow it: --set allow_private_addresses=true, or "
                "HARKEN_ALLOW_PRIVATE_ADDRESSES=1 in the environment",
            )
        try:
            found = [permitted_addresses(host, int(DEFAULT_PORT))[0] for host in hosts]
        except OSError as error:
            raise SourceFault(
                f"no address was found for {self.host}: {error}", code="source-down"
            ) from error
        except HarkenError as error:
            raise SourceFault(error.message, code=error.code, hint=error.hint) from error
        return {"hostaddr": ",".join(found)}


def server_identity(connection: Connection) -> str:
    """Of its data and its timeline, which is a new one after a failover. A standby has none."""
    row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
    if row is not None and row[0]:
        raise SourceFault("the server is a standby, or is still recovering", code="source-down")
    row = connection.execute(SERVER).fetchone()
    assert row is not None
    return str(row[0])


@contextmanager
def told(place: Place) -> Iterator[None]:
    """A block whose errors of the driver become errors of ours."""
    try:
        yield
    except psycopg.Error as error:
        raise fault(place, error) from error


def fault(place: Place, error: psycopg.Error) -> SourceFault:
    said = (error.diag.message_primary or str(error)).strip().splitlines()
    said = [each for each in said if not each.startswith("\t")]  # questions of libpq
    what = f"{place.host or 'the server'}: {said[-1] if said else type(error).__name__}"
    if isinstance(error, errors.InsufficientPrivilege):
        return SourceFault(
            what,
            code="not-allowed",
            hint=f"give {place.user or 'the user of the source'} that right, or choose another "
            "CAPTURE",
        )
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn | errors.InvalidName):
        return SourceFault(
            what,
            code="source-changed",
            hint="does the option table name it? Odd names are quoted as PostgreSQL needs it: "
            '"Odd name"."My table"',
        )
    if isinstance(error, errors.QueryCanceled | errors.LockNotAvailable):
        return SourceFault(what, code="source-down", hint="the server was too slow; try again")
    hint = "check host, port, user and database in the option url, and that the server runs"
    is_ours = error.sqlstate is None or isinstance(error, errors.InvalidCatalogName)
    return SourceFault(what, code="source-down", hint=hint if is_ours else None)


def short_id(text: str) -> str:
    """A name for objects in the server that no other database file of ours takes."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
