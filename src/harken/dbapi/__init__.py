"""Harken's SQL through Python's database API (PEP 249), for tools that use it.

    connection = harken.dbapi.connect("shop.db")
    cursor = connection.cursor()
    cursor.execute("SELECT city, sum(amount) FROM sale WHERE day > ? GROUP BY city", (day,))
    cursor.fetchall()

Law: a statement does and returns what `harken.connect(...).sql(...)` does and returns, in the
transactions that PEP 249 describes (`dbapi_connection`).
"""

from __future__ import annotations

from harken.dbapi.cursors import Cursor
from harken.dbapi.dbapi_connection import Connection, connect
from harken.dbapi.dbapi_errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from harken.dbapi.type_objects import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

apilevel = "2.0"
threadsafety = 1
"""Threads may share the module, but not connections."""
paramstyle = "qmark"
"""A mapping instead of a sequence gives the values of `:name`."""

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
