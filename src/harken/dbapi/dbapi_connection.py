"""A connection of PEP 249: a session on a database, with implicit transactions.

Law: the first statement that changes something begins a transaction, `commit` and `rollback` end
it, and closing the connection rolls back what was not committed. A query outside of a transaction
sees what is committed when it starts. With `autocommit` each statement is a transaction of its own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import harken
from harken.database.results import Results
from harken.dbapi import dbapi_errors as errors
from harken.dbapi.cursors import Cursor, Values
from harken.dbapi.statement_kinds import Kind, kind_of


def connect(
    database: str | os.PathLike[str] | harken.Database = ":memory:",
    *,
    autocommit: bool = False,
    **options: Any,
) -> Connection:
    """Open a database file or one in memory, or use an open session (`harken.Database`), which
    stays open when the connection is closed. `options` are those of `harken.connect`."""
    with errors.translated():
        if isinstance(database, harken.Database):
            return Connection(database, autocommit, owned=False)
        return Connection(harken.connect(database, **options), autocommit, owned=True)


class Connection:
    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, database: harken.Database, autocommit: bool, *, owned: bool) -> None:
        self.database = database
        """The session, for everything beyond PEP 249: monitors, rules, `explain`."""
        self._owned = owned
        self._autocommit = bool(autocommit)
        self._closed = False

    @property
    def autocommit(self) -> bool:
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        """Setting it commits an open transaction."""
        self.commit()
        self._autocommit = bool(value)

    @property
    def in_transaction(self) -> bool:
        return not self._closed and self.database.in_transaction

    def cursor(self) -> Cursor:
        self.check_open()
        return Cursor(self)

    def execute(self, operation: str, parameters: Values = ()) -> Cursor:
        """A cursor that has run a text."""
        return self.cursor().execute(operation, parameters)

    def executemany(self, operation: str, seq_of_parameters: Sequence[Values]) -> Cursor:
        return self.cursor().executemany(operation, seq_of_parameters)

    def run(self, operation: str, values: Any) -> Results:
        """Run a text for a cursor, in the transaction that it belongs to."""
        with errors.translated():
            if isinstance(operation, str) and not self._autocommit:
                self._begin_for(kind_of(operation))
            return self.database.sql(operation, values)

    def _begin_for(self, kind: Kind) -> None:
        if kind is Kind.CHANGES:
            self.database.begin()
        elif kind is Kind.ALONE and self.database.in_transaction:
            self.database.commit()

    def commit(self) -> None:
        self.check_open()
        with errors.translated():
            if self.database.in_transaction:
                self.database.commit()

    def rollback(self) -> None:
        self.check_open()
        with errors.translated():
            if self.database.in_transaction:
                self.database.rollback()

    def close(self) -> None:
        """Roll back what was not committed."""
        if self._closed:
            return
        with errors.translated():
            if self.database.in_transaction:
                self.database.rollback()
            if self._owned:
                self.database.close()
        self._closed = True

    def check_open(self) -> None:
        if self._closed:
            raise errors.InterfaceError(
                "the connection is closed", code="closed", hint="connect again"
            )

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commit at the end of the block, or roll back if it raised. The connection stays open."""
        if self._closed:
            return
        if kind is None:
            self.commit()
        else:
            self.rollback()
