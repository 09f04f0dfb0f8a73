"""A table or view of any database that SQLAlchemy has a dialect for, read again at each poll.

Only what every database decides as we do is pushed: whole numbers, and texts that are equal, which
other collations may find equal to more texts, but never to fewer.

Law: a value that its column's type does not hold is an error, and never another value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy import types as sqltypes

from harken.errors import HarkenError, SourceFault
from harken.limits import check
from harken.network_guard import permitted_addresses
from harken.sources.column_types import TEXT
from harken.sources.kinds.driver_values import plain_value
from harken.sources.local_files import permitted
from harken.sources.outside import (
    Condition,
    Context,
    Opened,
    Option,
    Order,
    OutsideSchema,
    Position,
    Question,
    Snapshot,
    until_unique,
)
from harken.sources.typed_rows import BATCH, TypedRows, declared_types

FILES = frozenset({"sqlite", "harken", "duckdb"})
"""Dialects whose database is a file."""
HARMLESS = frozenset({"charset", "sslmode", "ssl", "encrypt", "driver", "trustservercertificate"})
"""Parameters of a URL that lead to no file and to no other address."""
TIMEOUTS = {
    "pymysql": "connect_timeout",
    "mysqldb": "connect_timeout",
    "mariadb": "connect_timeout",
    "psycopg": "connect_timeout",
    "psycopg2": "connect_timeout",
    "pg8000": "timeout",
    "pysqlite": "timeout",
    "oracledb": "tcp_connect_timeout",
}
"""How drivers call the time that connecting may take."""
LISTS = ("SET", "ENUM")
LONGEST_ANSWER = 10_000
LARGEST = 2**63 - 1
MOST_DIGITS = 38
WIDE = pa.decimal128(20, 0)
"""Holds each unsigned integer of 64 bits."""


@dataclass(frozen=True, slots=True)
class QueriedColumn:
    column: sa.Column[Any]
    type: pa.DataType

    @property
    def is_integer(self) -> bool:
        return isinstance(self.column.type, sqltypes.Integer) and pa.types.is_integer(self.type)

    @property
    def is_text(self) -> bool:
        type = self.column.type
        is_list = isinstance(type, sqltypes.Enum) or type.__visit_name__ in LISTS
        return isinstance(type, sqltypes.String) and not is_list and pa.types.is_string(self.type)


class QueriedTable:
    """Polled, and Answering. Each reading has a connection of its own."""

    def __init__(self, options: Mapping[str, Any], context: Context) -> None:
        self._url = guarded_url(options, context)
        self._name, self._schema_name = options["table"], options.get("schema")
        self._changed_when = options.get("changed_when")
        self._declared = declared_types(options.get("types") or ())
        self._context = context
        self._timeout = options.get("timeout") or 10.0
        self._made: sa.Engine | None = None

    @property
    def place(self) -> str:
        return self._url.render_as_string(hide_password=True)

    def schema(self) -> OutsideSchema:
        with self._connected() as connection:
            columns, key = self._columns(connection)
        return _schema(columns, key)

    def snapshot(self, since: Position | None = None) -> Snapshot | None:
        with self._connected() as connection:
            position = self._answer(connection)
            if position is not None and position == since:
                return None
            columns, key = self._columns(connection)
        query = sa.select(*[each.column for each in columns])
        return Snapshot(_schema(columns, key), self._batches(query, columns), position)

    def question(
        self,
        columns: Sequence[str],
        conditions: Sequence[Condition],
        limit: int | None = None,
        order: Sequence[Order] = (),
    ) -> Question:
        with self._connected() as connection:
            every, key = self._columns(connection)
        known = {each.column.name: each for each in every}
        missing = [name for name in columns if name not in known]
        if missing:
            raise SourceFault(f"{self._name} has no column {missing[0]}", code="source-changed")
        wanted = [known[name] for name in columns]
        query, pushed, is_exact = sa.select(*[each.column for each in wanted]), [], True
        for each in conditions:
            clause = _clause(each, known[each.column]) if each.column in known else None
            if clause is not None:
                query = query.where(clause)
                pushed.append(each)
                is_exact = is_exact and known[each.column].is_integer
        needed = until_unique(order, key)
        is_exact = is_exact and len(pushed) == len(conditions)
        is_exact = is_exact and all(known[each.column].is_integer for each in needed)
        limited = limit is not None and is_exact
        if limited:
            by = [clause for each in needed for clause in _order(each, known[each.column])]
            query = query.order_by(*by).limit(limit)
        text = query.compile(self._engine, compile_kwargs={"literal_binds": True})
        return Question(
            " ".join(str(text).split()),
            tuple(pushed),
            limited,
            lambda: self._batches(query, wanted),
        )

    def close(self) -> None:
        if self._made is not None:
            self._made.dispose()
            self._made = None

    # --- columns ---------------------------------------------------------------------------

    def _columns(self, connection: sa.Connection) -> tuple[list[QueriedColumn], tuple[str, ...]]:
        inspector = sa.inspect(connection)
        try:
            found = inspector.get_columns(self._name, self._schema_name)
        except sa.exc.NoSuchTableError:
            raise SourceFault(
                f"{self._title} is not there",
                code="source-changed",
                hint="is the option table right, and the option schema, if the table has one?",
            ) from None
        strange = self._declared.keys() - {each["name"] for each in found}
        if strange:
            raise SourceFault(
                f"the option types names the column {min(strange)}, which {self._title} has not",
                code="bad-option",
            )
        table = sa.Table(
            self._name,
            sa.MetaData(),
            *[sa.Column(each["name"], plain_type(each["type"])) for each in found],
            schema=self._schema_name,
        )
        mirror = self._mirror
        columns = [
            QueriedColumn(
                each,
                mirror.get(each.name) or self._declared.get(each.name) or arrow_type(each.type),
            )
            for each in table.columns
        ]
        nullable = {each["name"] for each in found if each.get("nullable", True)}
        return columns, self._key(inspector, nullable)

    def _key(self, inspector: sa.Inspector, nullable: set[str]) -> tuple[str, ...]:
        try:
            keys = [inspector.get_pk_constraint(self._name, self._schema_name)]
            names = [each["constrained_columns"] for each in keys if each]
            uniques = inspector.get_unique_constraints(self._name, self._schema_name)
            names += [each["column_names"] for each in uniques]
        except (NotImplementedError, sa.exc.NoSuchTableError):  # a view, in some dialects
            return ()
        sure = [each for each in names if each and not nullable.intersection(each)]
        return tuple(sure[0]) if sure else ()

    @property
    def _mirror(self) -> dict[str, pa.DataType]:
        known = self._context.known
        return {} if known is None else {each.name: each.type for each in known.columns}

    @property
    def _title(self) -> str:
        return f"{self._schema_name}.{self._name}" if self._schema_name else self._name

    # --- rows ------------------------------------------------------------------------------

    def _batches(
        self, query: sa.Select[Any], columns: Sequence[QueriedColumn]
    ) -> Iterator[pa.RecordBatch]:
        schema = _schema(columns, ()).columns
        typed = TypedRows(
            declared=dict(zip(schema.names, schema.types, strict=True)), known=self._mirror
        )
        with self._connected() as connection:
            streamed = connection.execution_options(stream_results=True, max_row_buffer=BATCH)
            result = streamed.execute(query)
            while part := result.fetchmany(BATCH):
                check()
                rows = [tuple(map(plain_value, row)) for row in part]
                yield from typed.table(schema.names, rows).cast(schema).to_batches()

    def _answer(self, connection: sa.Connection) -> Position | None:
        if self._changed_when is None:
            return None
        result = connection.exec_driver_sql(self._changed_when)
        rows = result.fetchmany(2) if result.returns_rows else []
        text = json.dumps([[str(value) for value in row] for row in rows])
        if len(rows) != 1 or len(text) > LONGEST_ANSWER:
            raise SourceFault(
                "the query changed_when does not give one short row",
                code="bad-option",
                hint="for example: SELECT max(changed_at), count(*) FROM orders",
            )
        return text

    # --- the connection --------------------------------------------------------------------

    @property
    def _engine(self) -> sa.Engine:
        if self._made is None:
            driver = self._url.get_driver_name()
            timeout = TIMEOUTS.get(driver)
            arguments = {} if timeout is None else {timeout: max(1, round(self._timeout))}
            self._made = sa.create_engine(
                self._url, poolclass=sa.pool.NullPool, connect_args=arguments
            )
        return self._made

    @contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except ModuleNotFoundError as error:
            raise SourceFault(
                f"the driver {error.name} is not installed",
                code="bad-option",
                hint=f"pip install {error.name}",
            ) from error
        except sa.exc.NoSuchModuleError as error:
            raise SourceFault(
                f"SQLAlchemy has no dialect for {self._url.drivername}",
                code="bad-option",
                hint="some are packages of their own, such as duckdb-engine",
            ) from error
        except sa.exc.DBAPIError as error:
            raise SourceFault(
                f"{self._where}: {_first_line(error.orig)}", code="source-down"
            ) from error
        except sa.exc.SQLAlchemyError as error:
            raise SourceFault(f"{self._where}: {_first_line(error)}", code="source-down") from error
        except ValueError as error:
            raise SourceFault(
                f"{self._title} has a value that its column's type does not hold: {error}",
                code="source-changed",
                hint="declare the column as text: types 'column text'",
            ) from error

    @property
    def _where(self) -> str:
        return self._url.host or self._url.database or self._url.drivername


def guarded_url(options: Mapping[str, Any], context: Context) -> sa.URL:
    """The URL, if it leads only where the operator allows."""
    try:
        url = sa.make_url(options["url"])
    except (sa.exc.ArgumentError, ValueError):
        raise SourceFault(
            "the url of the source is not one of SQLAlchemy",
            code="bad-option",
            hint="write mysql+pymysql://user@host/database; secret:name keeps it out of sight",
        ) from None
    if options.get("password") is not None:
        url = url.set(password=options["password"])
    if url.get_backend_name() in FILES:
        if url.database not in (None, "", ":memory:"):
            url = url.set(database=str(permitted(url.database, context.allowed_roots)))
        return url
    if context.allow_private_addresses:
        return url
    strange = [name for name in url.query if name.lower() not in HARMLESS]
    if strange or not url.host:
        what = f"says {strange[0]}" if strange else "names no host"
        raise SourceFault(
            f"the url {what}, which may lead to this machine",
            code="not-allowed",
            hint="the operator can allow it: --set allow_private_addresses=true, or "
            "HARKEN_ALLOW_PRIVATE_ADDRESSES=1 in the environment",
        )
    try:
        address = permitted_addresses(url.host, url.port or 0)[0]
    except OSError as error:
        raise SourceFault(
            f"no address was found for {url.host}: {error}", code="source-down"
        ) from error
    except HarkenError as error:
        raise SourceFault(error.message, code=error.code, hint=error.hint) from error
    return url.set(host=address)


def arrow_type(type: sqltypes.TypeEngine[Any]) -> pa.DataType:
    """
    >>> arrow_type(sqltypes.Numeric(8, 2)), arrow_type(sqltypes.JSON())
    (Decimal128Type(decimal128(8, 2)), DataType(string))
    """
    if isinstance(type, sqltypes.Boolean):
        return pa.bool_()
    if isinstance(type, sqltypes.Integer):
        is_wide = getattr(type, "unsigned", False) and isinstance(type, sqltypes.BigInteger)
        return WIDE if is_wide else pa.int64()
    if type.__visit_name__ == "YEAR":
        return pa.int64()
    if isinstance(type, sqltypes.Float):
        return pa.float64()
    if isinstance(type, sqltypes.Numeric):
        if type.precision is None or type.precision > MOST_DIGITS:
            return pa.float64()
        return pa.decimal128(type.precision, type.scale or 0)
    if isinstance(type, sqltypes.DateTime):
        return pa.timestamp("us", "UTC") if type.timezone else pa.timestamp("us")
    return pa.date32() if isinstance(type, sqltypes.Date) else TEXT


def plain_type(type: sqltypes.TypeEngine[Any]) -> sqltypes.TypeEngine[Any]:
    """The same, or none: then values come as the driver gives them, such as a TIME before zero."""
    is_odd = arrow_type(type) == TEXT and not isinstance(type, sqltypes.String)
    return sqltypes.NullType() if is_odd else type


def _schema(columns: Sequence[QueriedColumn], key: tuple[str, ...]) -> OutsideSchema:
    return OutsideSchema(pa.schema([(each.column.name, each.type) for each in columns]), key)


def _clause(condition: Condition, column: QueriedColumn) -> sa.ColumnElement[bool] | None:
    """None for what the database may decide in another way."""
    found, operator = column.column, condition.operator
    if not (column.is_integer or column.is_text):
        return None
    if operator == "is null":
        return found.is_(None) if column.is_integer else None
    if operator == "is not null":
        return found.is_not(None) if column.is_integer else None
    values = list(condition.values)
    if column.is_integer:
        if not all(type(each) is int and abs(each) <= LARGEST for each in values):
            return None
    elif operator not in ("=", "in") or not all(map(_is_plain, values)):
        return None
    if operator == "in":
        return found.in_(values)
    clause: sa.ColumnElement[bool] = found.op(operator, is_comparison=True)(values[0])
    return clause


def _order(order: Order, column: QueriedColumn) -> list[sa.ColumnElement[Any]]:
    """Databases differ in where NULLs come, and some cannot say it."""
    found = column.column
    nulls = sa.case((found.is_(None), 0 if order.nulls_first else 1), else_=int(order.nulls_first))
    own = found.desc() if order.descending else found.asc()
    return [nulls, own] if found.nullable else [own]


def _is_plain(value: Any) -> bool:
    return (
        isinstance(value, str)
        and value.strip() == value != ""  # such texts are NULL or cut off in some databases
        and "\0" not in value
        and not any("\ud800" <= each <= "\udfff" for each in value)
    )


def _first_line(error: BaseException | None) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class SqlalchemyKind:
    name = "sqlalchemy"
    title = "database of SQLAlchemy"
    captures = ("poll",)
    is_whole = True
    options: tuple[Option, ...] = (
        Option("url", "dialect+driver://user@host/database", required=True),
        Option("password", "The password, if the url has none.", secret=True),
        Option("table", "The table or view.", required=True),
        Option("schema", "Its schema, if it is not the default one."),
        Option("types", "Types of columns: `price decimal(8, 2), day date`.", "names", ()),
        Option(
            "changed_when",
            "A query whose one row stays the same while nothing has changed.",
        ),
        Option("timeout", "How long connecting may take.", "duration", 10.0, least=1, most=600),
    )

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        table = QueriedTable(options, context)
        return Opened(polled=table, server=table.place, table=options["table"])


KIND = SqlalchemyKind()
