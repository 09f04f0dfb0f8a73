"""The columns of a mirror, and the rows of a source in them.

A column of the mirror is called as in the source, in lower case. The columns of a key cannot be
NULL; all others can.

Law: `mirror_rows` leaves no row out: what the mirror cannot hold is a fault of the reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from harken.database.function_tables import declared_order, table_of
from harken.database.language_names import SQL
from harken.database.system import relation_of
from harken.engines.arrow_rows import stored_form, type_of_column
from harken.errors import HarkenError, NameFault, SourceFault, nearest
from harken.intake.row_differences import first_repeated
from harken.intake.source_records import Layout, SourceDefinition, schema_text
from harken.ir.relations import Column
from harken.ir.schema import Function, FunctionKind
from harken.sources.outside import Opened, OutsideSchema

MOST_COLUMNS = 1_000


def layout_of(
    definition: SourceDefinition, schema: OutsideSchema, take: Sequence[str], opened: Opened
) -> Layout:
    """The columns of a new mirror."""
    columns = _taken(schema.columns, take)
    names = [each.name.lower() for each in columns]
    _check_names(names)
    key = definition.key
    if key is None:
        key = tuple(each.lower() for each in schema.key)
        if not set(key) <= set(names):
            key = ()  # a part of it was not taken
    for each in key:
        if each not in names:
            raise _no_column(each, names, "for the KEY")
    for each in columns:
        column_type(each)
    return Layout(
        names=tuple(names),
        outside=tuple(each.name for each in columns),
        key=key,
        types=schema_text(pa.schema(columns)),
        capture=opened.capture,
        why=opened.why or _why(definition, opened),
        server=opened.server,
        table=opened.table,
        followed=opened.followed is not None,
    )


def _why(definition: SourceDefinition, opened: Opened) -> str:
    if definition.capture is not None:
        return "the statement says so"
    if opened.followed is not None:
        return "it tells its changes"
    return "it can only be read again, and is compared with its rows here"


def _taken(columns: pa.Schema, take: Sequence[str]) -> list[pa.Field]:
    if not take:
        return list(columns)
    by_name = {each.name.lower(): each for each in columns}
    missing = [each for each in take if each.lower() not in by_name]
    if missing:
        raise _no_column(missing[0], list(by_name), "to take")
    return [by_name[each] for each in dict.fromkeys(name.lower() for name in take)]


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise SourceFault("the source has no columns", code="source-suspect")
    if len(names) > MOST_COLUMNS:
        raise SourceFault(
            f"the source has {len(names):,} columns, and a relation at most {MOST_COLUMNS:,}",
            code="bad-option",
            hint="choose some with the option take",
        )
    twice = [each for i, each in enumerate(names) if each in names[:i]]
    if twice:
        raise SourceFault(
            f"two columns of the source are called {twice[0]}, if capitals do not count",
            code="bad-option",
            hint="name the columns to keep with the option take, or rename one where it comes from",
        )


def _no_column(name: str, known: Sequence[str], what: str) -> NameFault:
    near = nearest(name, known)
    return NameFault(
        f"the source has no column {name} {what}",
        code="unknown-column",
        hint=f"did you mean {near}?" if near else f"its columns are {', '.join(known[:20])}",
    )


def column_type(field: pa.Field) -> Column:
    try:
        return Column(field.name.lower(), type_of_column(field.name, field.type).or_null())
    except HarkenError as error:
        raise SourceFault(
            f"the column {field.name} has the type {field.type}, which Harken does not have",
            code="bad-option",
            hint="leave it out: the option take names the columns to keep",
        ) from error


def mirror_function(definition: SourceDefinition, layout: Layout) -> Function:
    """The stored function that the mirror is. Of a source that is asked, rows are counted as it
    gives them, and columns that a query does not need are NULL."""
    if definition.alone:
        layout = replace(layout, key=())
    columns = [replace(column_type(each), name="") for each in layout.schema]
    named = [
        Column(name, each.type.or_null(name not in layout.key))
        for name, each in zip(layout.names, columns, strict=True)
    ]
    by_name = {each.name: each for each in named}
    function = Function(
        name=definition.name,
        parameters=tuple(by_name[each] for each in layout.key),
        results=tuple(each for each in named if each.name not in layout.key),
        kind=FunctionKind.FOREIGN if definition.alone else FunctionKind.STORED,
        bag=not layout.key,
        text=definition.text,
        language=SQL,
    )
    function = declared_order(function, layout.names)
    return replace(function, relation=relation_of(function))


def mirror_rows(function: Function, layout: Layout, read: pa.Table) -> pa.Table:
    """Rows that were read, as the mirror stores them, in the order of its relation."""
    table = table_of(function)
    assert function.relation is not None
    places = dict(zip(layout.names, layout.outside, strict=True))
    by_position = dict(zip(table.positions, table.columns, strict=True))
    ordered = [places[by_position[i].name] for i in range(len(by_position))]
    missing = [each for each in ordered if each not in read.column_names]
    if missing:
        raise lost_column(definition_name=function.name, column=missing[0])
    columns = function.relation.columns
    wanted = read.select(ordered)
    _check_types(function.name, layout, wanted.schema)
    stored = stored_form(wanted, columns)
    for name, column in zip(layout.key, stored.columns, strict=False):
        if column.null_count:
            raise SourceFault(
                f"{column.null_count} rows have no value for {name}, which is in the KEY",
                code="source-suspect",
                hint="choose another KEY, or none: then equal rows are counted",
            )
    return stored


def lost_column(definition_name: str, column: str) -> SourceFault:
    return SourceFault(
        f"the source has no column {column} any more",
        code="source-changed",
        hint=f"if that is so for good: ALTER SOURCE {definition_name} DROP COLUMN {column.lower()}",
    )


def _check_types(name: str, layout: Layout, read: pa.Schema) -> None:
    """A column may come in another of Arrow's types if the mirror has one for both."""
    for field in read:
        known = layout.schema.field(field.name)
        if field.type == known.type or pa.types.is_null(field.type):
            continue
        if column_type(field).type != column_type(known).type:
            raise SourceFault(
                f"the column {field.name} of the source was {known.type} and is {field.type} now",
                code="source-changed",
                hint=f"ALTER SOURCE {name} RENEW COLUMNS, to have the new type",
            )


def check_key(
    function: Function, layout: Layout, rows: pa.Table, come: pa.Table | None = None
) -> None:
    """No two rows have one key. If only the rows `come` are new, one of them has it."""
    if not layout.key:
        return
    of_key = rows.select(list(range(len(layout.key))))
    if come is not None and not pa.types.is_floating(of_key.schema.types[0]):
        of_key = of_key.filter(pc.is_in(of_key.column(0), come.column(0).combine_chunks()))
    at = first_repeated(of_key)
    if at is not None:
        pairs = zip(layout.key, of_key, strict=True)
        values = ", ".join(f"{name} = {column[at].as_py()!r}" for name, column in pairs)
        raise SourceFault(
            f"two rows of {function.name} have {values}, which is its KEY",
            code="source-suspect",
            hint="choose another KEY, or none: then equal rows are counted",
        )


def key_candidates(read: pa.Table) -> list[tuple[str, ...]]:
    """Columns, or pairs of them, that identify each row that was read."""
    if not read.num_rows:
        return []
    plain = [
        each.name
        for each in read.schema
        if not read[each.name].null_count and not pa.types.is_floating(each.type)
    ][:12]
    found: list[tuple[str, ...]] = [
        (each,) for each in plain if pc.count_distinct(read[each]).as_py() == read.num_rows
    ]
    if found:
        return found
    pairs = [(a, b) for i, a in enumerate(plain) for b in plain[i + 1 :]]
    return [each for each in pairs if first_repeated(read.select(each)) is None]
