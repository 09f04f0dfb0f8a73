"""CREATE TABLE ... USING lake LOCATION '...': an existing table as an SQL table.

It has the named columns, or all; a column may be NULL unless declared otherwise, and without a key
duplicates count. Steps read its changes; nothing is written to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlglot import exp

from harken.database import lake_functions
from harken.database.function_tables import declared_order
from harken.database.language_names import SQL
from harken.database.locations import REMOTE, Roots
from harken.database.runtime import Runtime
from harken.errors import EngineError, HarkenError, LanguageError, NameFault, TypeFault
from harken.ir.relations import Column
from harken.ir.schema import Function, FunctionKind
from harken.lang.sql.parser import Statement
from harken.lang.sql.program_draft import unknown_column
from harken.lang.sql.type_names import type_name
from harken.packages import needs
from harken.statements.declaring import declare_stored

FORMATS = ("lake", "delta", "parquet", "csv", "json")
TEXTS = ("csv", "json")
"""Files in these formats do not give the types of their columns."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is, and the names of its columns there."""

    path: str
    format: str | None
    schema: Any

    @property
    def names(self) -> dict[str, str]:
        return {name.lower(): name for name in self.schema.names}


def create_located(
    runtime: Runtime,
    statement: Statement,
    name: str,
    declared: Sequence[Column],
    key: Sequence[str],
) -> None:
    try:
        with needs("lake"):
            place = _place(statement, declared, Roots(runtime.settings["lake_roots"]))
    except HarkenError as error:
        error.hint = in_sql(error.hint)
        raise
    columns = _checked(place, declared, statement) if declared else _found(place)
    by_name = {column.name: column for column in columns}
    for each in key:
        if each not in by_name:
            raise _no_column(each, place, statement)
    first = [replace(by_name[each], type=by_name[each].type.or_null(False)) for each in key]
    rest = [column for column in columns if column.name not in key]
    function = Function(
        name=name,
        parameters=tuple(first) if rest else (),
        results=tuple(rest or first),
        kind=FunctionKind.STORED,
        bag=not (key and rest),
        text=_text(name, [_as_stored(column, key) for column in columns], key, place),
        language=SQL,
    )
    function = declared_order(function, [column.name for column in columns])
    ordered = [place.names[column.name] for column in (*function.parameters, *function.results)]
    given = place.schema if place.format in TEXTS and declared else None
    lake_functions.attach(
        runtime,
        function,
        place.path,
        ordered,
        format=place.format,
        schema=given,
        declare=declare_stored,
    )


def in_sql(hint: str | None) -> str | None:
    """A hint about `db.lake`, as one about CREATE TABLE.

    >>> in_sql('say which: db.lake(name, path, key=[...], format="csv")')
    "say which: CREATE TABLE name KEY (...) USING csv LOCATION '...'"
    """
    if hint is None or "db.lake(" not in hint:
        return hint
    before, _, call = hint.partition("db.lake(")
    if "schema=" in call:
        return f"{before}CREATE TABLE name (column TYPE, ...) USING csv LOCATION '...'"
    kind = "csv" if "format=" in call else "lake"
    return f"{before}CREATE TABLE name KEY (...) USING {kind} LOCATION '...'"


def _as_stored(column: Column, key: Sequence[str]) -> Column:
    return replace(column, type=column.type.or_null(False)) if column.name in key else column


def _place(statement: Statement, declared: Sequence[Column], roots: Roots) -> Place:
    node = statement.node
    location, kind = node.find(exp.LocationProperty), node.find(exp.FileFormatProperty)
    assert location is not None
    given, format = location.this.name, "lake" if kind is None else kind.name.lower()
    if format not in FORMATS:
        raise LanguageError(
            f"the format {format} is not supported",
            code="unsupported",
            span=statement.span,
            hint="say USING " + " or ".join(FORMATS),
        )
    path = roots.locate(given, statement.span)
    if REMOTE in path or (Path(path) / "_delta_log").is_dir():
        return _delta_table(path, roots, statement)
    if format == "delta" or not Path(path).is_dir():
        what = "Delta table" if format == "delta" else "table or directory"
        raise EngineError(
            f"there is no {what} at {given}",
            code="no-lake-table",
            span=statement.span,
            hint="check the path",
        )
    from harken.engines import arrow_rows as rows
    from harken.sources.file_formats import format_of, schema_of

    roots.check_contents(path, tuple, statement.span)
    kind_of_files = format if format != "lake" else format_of(Path(path))
    found = Place(path, kind_of_files, schema_of(Path(path), kind_of_files))
    if kind_of_files in TEXTS and declared:  # by the names in the files, with the declared types
        types = ((found.names.get(c.name, c.name), rows.arrow_type(c.type)) for c in declared)
        return replace(found, schema=rows.schema_of(types))
    return found


def _delta_table(path: str, roots: Roots, statement: Statement) -> Place:
    from harken.sources.delta_table import DeltaInput

    try:
        found = DeltaInput(path, key=())
        roots.check_contents(path, lambda: [file.path for file in found.files()], statement.span)
    except (OSError, ValueError) as error:
        raise EngineError(
            f"the table at {path} cannot be read: {str(error).partition(chr(10))[0]}",
            code="cannot-open",
            span=statement.span,
            hint="check the address, and the access to it",
        ) from error
    return Place(path, None, found.schema)


def _found(place: Place) -> list[Column]:
    from harken.engines.arrow_rows import type_of_column

    return [
        Column(name.lower(), type_of_column(name, place.schema.field(name).type).or_null())
        for name in place.schema.names
    ]


def _checked(place: Place, declared: Sequence[Column], statement: Statement) -> list[Column]:
    """The named columns, if the table has them with those types."""
    from harken.engines.arrow_rows import type_of_column

    for column in declared:
        if column.name not in place.names:
            raise _no_column(column.name, place, statement)
        found = type_of_column(column.name, place.schema.field(place.names[column.name]).type)
        if found != column.type:
            raise TypeFault(
                f"the column {column.name} is {type_name(found)} there, "
                f"not {type_name(column.type)}",
                code="type-mismatch",
                span=statement.span,
                hint="declare it with that type, and CAST it in a view",
            )
    return list(declared)


def _text(name: str, columns: Sequence[Column], key: Sequence[str], place: Place) -> str:
    """The complete statement, which is read when the database is reopened."""
    parts = [
        f"`{column.name}` {type_name(column.type)}" + ("" if column.type.nullable else " NOT NULL")
        for column in columns
    ]
    if key:
        parts.append(f"PRIMARY KEY ({', '.join(f'`{each}`' for each in key)})")
    where = exp.Literal.string(place.path).sql("spark")
    return f"CREATE TABLE `{name}` ({', '.join(parts)}) USING lake LOCATION {where}"


def _no_column(name: str, place: Place, statement: Statement) -> NameFault:
    return unknown_column("the table there", name, place.names, statement.span)
