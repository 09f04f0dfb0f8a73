"""A cursor of PEP 249: runs a text and returns the rows of its results.

Law: the rows are those of `db.sql(text, values)`, each once and in order. All of them are read when
the text runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harken.database.results import Result, Results
from harken.dbapi.dbapi_errors import InterfaceError, ProgrammingError
from harken.values.rows import Row
from harken.values.types import Type, decimal_digits, is_decimal

if TYPE_CHECKING:
    from harken.dbapi.dbapi_connection import Connection

Values = Sequence[Any] | Mapping[str, Any]
Description = tuple[str, Type, None, None, int | None, int | None, bool]
"""Name, type code, two unused sizes, precision and scale of a decimal, and whether it may be
NULL."""


class Cursor:
    arraysize = 1
    """How many rows `fetchmany` returns by default."""
    lastrowid = None
    """Rows have no numbers."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.rowcount = -1
        """How many rows a query gave, or an INSERT, UPDATE, DELETE or MERGE changed; -1 before any
        statement. A row that an UPDATE gives the values that it has is not counted."""
        self._results: list[Result] = []
        self._next = 0
        self._closed = False

    @property
    def description(self) -> tuple[Description, ...] | None:
        if not self._results:
            return None
        result = self._results[0]
        pairs = zip(result.columns, result.types, strict=True)
        return tuple(_described(name, type_) for name, type_ in pairs)

    # --- running ---------------------------------------------------------------------------

    def execute(self, operation: str, parameters: Values = ()) -> Cursor:
        """Run a text; `parameters` are a sequence for `?`, or a mapping for `:name`."""
        self._check_open()
        if _is_batch(parameters):
            raise ProgrammingError(
                "execute takes the values of one run",
                code="bad-value",
                hint="executemany takes a list of them",
            )
        self._take(self.connection.run(operation, parameters or None))
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Values]) -> Cursor:
        """Run a text once for each of the parameters, in one transaction."""
        self._check_open()
        rows = list(seq_of_parameters)
        self._take(self.connection.run(operation, rows) if rows else Results())
        return self

    def _take(self, results: Results) -> None:
        self._results = [each for each in results if each.kind == "rows"]
        self._start(results.changed)

    def _start(self, changed: int = 0) -> None:
        self._next = 0
        self.rowcount = len(self._results[0].rows) if self._results else changed

    # --- fetching --------------------------------------------------------------------------

    def fetchone(self) -> Row | None:
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        count = self.arraysize if size is None else size
        if type(count) is not int or count < 0:
            raise ProgrammingError(f"{count!r} is not a number of rows", code="bad-value")
        rows = self._rows()
        first, self._next = self._next, min(self._next + count, len(rows))
        return rows[first : self._next]

    def fetchall(self) -> list[Row]:
        rows = self._rows()
        first, self._next = self._next, len(rows)
        return rows[first:]

    def nextset(self) -> bool | None:
        """Move on to the rows of the next query of the text; None if there is none."""
        self._check_open()
        if len(self._results) < 2:
            return None
        del self._results[0]
        self._start()
        return True

    def _rows(self) -> list[Row]:
        self._check_open()
        if not self._results:
            raise ProgrammingError(
                "there are no rows: the last statement was not a query",
                code="no-value",
                hint="execute a query, or use RETURNING",
            )
        return self._results[0].rows

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    # --- the rest of PEP 249 ---------------------------------------------------------------

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing: values have their own types."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing: values are never truncated."""

    def close(self) -> None:
        self._closed = True
        self._results = []

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed", code="closed", hint="create another")
        self.connection.check_open()

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _described(name: str, type_: Type) -> Description:
    precision, scale = decimal_digits(type_) if is_decimal(type_) else (None, None)
    return (name, type_, None, None, precision, scale, type_.nullable)


def _is_batch(parameters: object) -> bool:
    return isinstance(parameters, list) and any(isinstance(p, tuple | dict) for p in parameters)
