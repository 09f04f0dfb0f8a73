"""Kinds of sources of the user's own: a function that yields rows, or a class.

    @harken.source_kind("prices", key="item")
    def prices(place: str, most: int = 100):
        yield {"item": "tea", "price": 3}

Its parameters are the options. A class has them in its constructor, and

- `rows()`, which yields all rows;
- `position()`, if it can say cheaply how far its data has come: a text that stays the same while
  nothing has changed;
- `changes(since)`, if it also knows its changes: for each transaction after the position `since` a
  position, the rows that went and the rows that came. Then `position()` is called right before
  `rows()`, and says where the changes after these rows begin;
- `close()`.

Law: a kind of the user's own keeps the contract of `harken.sources.outside` like any other.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from harken.errors import HarkenError, SourceFault
from harken.limits import check
from harken.sources.column_types import type_named
from harken.sources.kinds import register_kind
from harken.sources.outside import (
    Context,
    Opened,
    Option,
    OptionType,
    OutsideSchema,
    OutsideTransaction,
    Position,
    Snapshot,
    TableChange,
)
from harken.sources.typed_rows import TypedRows

OPTION_TYPES: Mapping[Any, OptionType] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "flag",
}
MOST_ROWS = 10_000_000
OUTSIDE_FAULTS = (OSError, ValueError, LookupError, TypeError, ArithmeticError, RuntimeError)
Made = TypeVar("Made", bound=Callable[..., Any])


def source_kind(
    name: str,
    *,
    key: str | Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    title: str = "",
) -> Callable[[Made], Made]:
    """A decorator of a function that yields rows, or of a class with `rows()`: from now on it is
    the kind of source `name` in this process. Rows are dictionaries, tuples in the order of
    `columns`, or Arrow tables and batches. `columns` gives names and types (`{"price":
    "decimal(8, 2)"}`); without it the types are those of the first values."""

    def registered(made: Made) -> Made:
        keys = (key,) if isinstance(key, str) else tuple(key)
        declared = {each: type_named(type_) for each, type_ in (columns or {}).items()}
        register_kind(UserKind(name, made, keys, declared, title or name))
        return made

    return registered


@dataclass(frozen=True)
class UserKind:
    name: str
    made: Callable[..., Any]
    key: tuple[str, ...]
    declared: Mapping[str, pa.DataType]
    title: str
    options: tuple[Option, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", options_of(self.name, self.made))

    @property
    def knows_changes(self) -> bool:
        return inspect.isclass(self.made) and hasattr(self.made, "changes")

    @property
    def captures(self) -> tuple[str, ...]:
        return ("changes", "poll") if self.knows_changes else ("poll",)

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        given = {each.name: options.get(each.name, each.default) for each in self.options}
        source = UserSource(self, given, context)
        if self.knows_changes and capture != "poll":
            return Opened(
                polled=UserPolled(source),
                followed=UserFollowed(source),
                server=f"{self.name}:{context.name}",
                table=context.name,
                capture="changes",
                why=f"the kind {self.name} knows its changes",
            )
        return Opened(polled=UserPolled(source), table=context.name)


def options_of(name: str, made: Callable[..., Any]) -> tuple[Option, ...]:
    """The parameters of a function or of a constructor.

    >>> def prices(place: str, most: int = 9): ...
    >>> [(each.name, each.type, each.required, each.default) for each in options_of("p", prices)]
    [('place', 'text', True, None), ('most', 'integer', False, 9)]
    """
    found = []
    hints = typing.get_type_hints(made.__init__ if inspect.isclass(made) else made)
    for each in inspect.signature(made).parameters.values():
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY):
            raise SourceFault(
                f"the parameter {each.name} of the kind {name} can be no option",
                code="bad-option",
                hint="name every option as a parameter",
            )
        required = each.default is each.empty
        default = None if required else each.default
        hint = hints.get(each.name, str if default is None else type(default))
        type_ = _option_type(hint)
        found.append(Option(each.name, each.name, type_, default, required))
    return tuple(found)


def _option_type(hint: Any) -> OptionType:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        parts = [each for each in typing.get_args(hint) if each is not types.NoneType]
        hint = parts[0] if len(parts) == 1 else str
    if hint in (list, tuple) or typing.get_origin(hint) in (list, tuple):
        return "names"
    return OPTION_TYPES.get(hint, "text")


class UserSource:
    """One opened source, whose errors are told as those of a source."""

    def __init__(self, kind: UserKind, options: Mapping[str, Any], context: Context) -> None:
        self.kind, self._options = kind, options
        self.known = context.known
        """The columns of the mirror, if there is one."""
        self._made: Any = None

    @property
    def made(self) -> Any:
        """The object of the user's class."""
        if self._made is None:
            self._made = self.call(self.kind.made, **self._options)
        return self._made

    def call(self, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except HarkenError:
            raise
        except OUTSIDE_FAULTS as error:
            raise self._fault(error) from error

    def iterated(self, rows: Any) -> Iterator[Any]:
        found = self.call(iter, rows)
        while True:
            try:
                each = next(found)
            except StopIteration:
                return
            except HarkenError:
                raise
            except OUTSIDE_FAULTS as error:
                raise self._fault(error) from error
            yield each

    def _fault(self, error: Exception) -> SourceFault:
        return SourceFault(
            f"the kind {self.kind.name} failed: {type(error).__name__}: {error}", code="source-down"
        )

    def position(self) -> Position | None:
        if not inspect.isclass(self.kind.made) or not hasattr(self.made, "position"):
            return None
        found = self.call(self.made.position)
        return None if found is None else str(found)

    def table(self) -> pa.Table:
        """All rows."""
        function = self.made.rows if inspect.isclass(self.kind.made) else None
        rows = self.call(function) if function else self.call(self.kind.made, **self._options)
        return self.typed(self.iterated(rows))

    def typed(self, rows: Iterator[Any]) -> pa.Table:
        tables, plain = [], []
        for each in rows:
            check()
            if isinstance(each, pa.RecordBatch):
                tables.append(pa.Table.from_batches([each]))
            elif isinstance(each, pa.Table):
                tables.append(each)
            else:
                plain.append(each)
            if len(plain) > MOST_ROWS:
                raise SourceFault(
                    f"the kind {self.kind.name} yields more than {MOST_ROWS:,} rows",
                    code="source-suspect",
                )
        if tables and plain:
            raise SourceFault(
                f"the kind {self.kind.name} yields rows and Arrow tables", code="source-suspect"
            )
        if tables:
            return pa.concat_tables(tables)
        names = self._names(plain)
        typed = TypedRows.of(self.known, pa.schema(list(self.kind.declared.items())))
        return typed.table(names, [self.row(each, names) for each in plain])

    def _names(self, rows: Sequence[Any]) -> list[str]:
        if self.known is not None:
            return list(self.known.columns.names)
        if self.kind.declared:
            return list(self.kind.declared)
        names: dict[str, None] = {}
        for each in rows:
            if not isinstance(each, Mapping):
                break
            names.update(dict.fromkeys(map(str, each)))
        if not names:
            raise SourceFault(
                f"the columns of the kind {self.kind.name} are not known",
                code="bad-option",
                hint=f'@harken.source_kind("{self.kind.name}", columns={{"name": "text"}}), or '
                "yield dictionaries",
            )
        return list(names)

    def row(self, given: Any, names: Sequence[str]) -> tuple[Any, ...]:
        if isinstance(given, Mapping):
            strange = [each for each in given if each not in names]
            if strange and self.known is None:
                raise SourceFault(
                    f"a row of the kind {self.kind.name} has the column {strange[0]}, which "
                    "columns does not name",
                    code="source-changed",
                )
            return tuple(given.get(name) for name in names)
        if isinstance(given, str | bytes) or not isinstance(given, Sequence):
            raise SourceFault(
                f"the kind {self.kind.name} yields {type(given).__name__}, which is no row",
                code="source-suspect",
                hint="yield dictionaries, tuples or Arrow tables",
            )
        if len(given) != len(names):
            raise SourceFault(
                f"a row of the kind {self.kind.name} has {len(given)} values for "
                f"{len(names)} columns",
                code="source-changed",
            )
        return tuple(given)

    def schema_of(self, table: pa.Table) -> OutsideSchema:
        missing = [each for each in self.kind.key if each not in table.schema.names]
        if missing:
            raise SourceFault(
                f"the kind {self.kind.name} has no column {missing[0]}, which is its key",
                code="source-changed",
            )
        return OutsideSchema(table.schema, self.kind.key)

    def close(self) -> None:
        if self._made is not None and hasattr(self._made, "close"):
            self.call(self._made.close)
        self._made = None


class UserPolled:
    def __init__(self, source: UserSource) -> None:
        self._source = source

    def schema(self) -> OutsideSchema:
        return self._source.schema_of(self._source.table())

    def snapshot(self, since: Position | None = None) -> Snapshot | None:
        position = self._source.position()
        if position is not None and position == since:
            return None
        table = self._source.table()
        schema = self._source.schema_of(table)
        return Snapshot(schema, iter(table.to_batches()), position, expected_rows=table.num_rows)

    def close(self) -> None:
        self._source.close()


class UserFollowed:
    """A class that knows its changes, as a server with one table."""

    def __init__(self, source: UserSource) -> None:
        self._source = source
        self._columns: tuple[str, ...] = ()

    def schema(self, table: str) -> OutsideSchema:
        return self._source.schema_of(self._source.table())

    def expect(self, table: str, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)

    def start(self, tables: Sequence[str]) -> Mapping[str, Snapshot]:
        found = {}
        for name in tables:
            position = self._source.position()
            if position is None:
                raise SourceFault(
                    f"the kind {self._source.kind.name} knows its changes, so it needs a method "
                    "position()",
                    code="bad-option",
                )
            table = self._source.table()
            schema = self._source.schema_of(table)
            self._columns = self._columns or tuple(schema.columns.names)
            self._source.known = schema
            found[name] = Snapshot(
                schema, iter(table.to_batches()), position, expected_rows=table.num_rows
            )
        return found

    def stop(self, table: str) -> None:
        self._call_if_there("stop")

    def transactions(
        self, positions: Mapping[str, Position], limit: int = 10_000
    ) -> Iterator[OutsideTransaction]:
        for name, since in positions.items():
            rows = 0
            changes = self._source.call(self._source.made.changes, since)
            for position, minus, plus in self._source.iterated(changes):
                change = TableChange(name, self._rows(minus), self._rows(plus))
                yield OutsideTransaction(str(position), (change,))
                rows += len(change.minus) + len(change.plus)
                if rows >= limit:
                    break

    def _rows(self, given: Any) -> list[tuple[Any, ...]]:
        rows = [self._source.row(each, self._columns) for each in given]
        if not rows:
            return []
        return list(zip(*self._typed(rows), strict=True))

    def _typed(self, rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
        table = self._source.typed(
            iter([dict(zip(self._columns, row, strict=True)) for row in rows])
        )
        return [table.column(name).to_pylist() for name in self._columns]

    def release(self, position: Position) -> None:
        self._call_if_there("release", position)

    def _call_if_there(self, name: str, *given: Any) -> None:
        if hasattr(self._source.made, name):
            self._source.call(getattr(self._source.made, name), *given)

    def lag(self, position: Position) -> float | None:
        return None

    def close(self) -> None:
        self._source.close()
