"""Gives a mirror other columns: those that its source has got, without those that it has lost.

The columns that stay keep their types, so that a column of whole numbers does not become another
one because of today's values; RENEW COLUMNS takes all as they are there now. The source is read
before the transaction, with the new columns; a followed one begins again with all of its rows.

Law: afterwards the mirror is what CREATE SOURCE would make, but for the types that were kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from harken.errors import NameFault, SourceFault, nearest
from harken.intake.column_changes import ColumnChange, Way
from harken.intake.log_intake import LogIntake
from harken.intake.mirror_columns import lost_column, mirror_function
from harken.intake.open_sources import OpenSources, Reading
from harken.intake.prepared_source import Prepared
from harken.intake.source_records import Layout, SourceDefinition, SourceRecord, schema_text
from harken.sources.outside import OutsideSchema


class NewColumns:
    def __init__(self, sources: OpenSources, log: LogIntake) -> None:
        self._sources, self._log = sources, log

    def prepare(self, record: SourceRecord, change: ColumnChange) -> Prepared:
        """The source with its new columns, and all of its rows in them."""
        definition = record.definition
        if change.options is not None:
            definition = replace(definition, options=dict(change.options))
        schema = self._schema(record, definition)
        wanted, fields = _wanted(record, schema, change), _by_name(schema.columns)
        layout = _layout(record, schema, wanted, fields, change.way)
        definition = _with_take(definition, change, wanted, fields)
        source = self._sources.make(definition, layout)
        try:
            reading = self._read(record, layout, source)
            function = mirror_function(definition, layout)
            return Prepared(definition, layout, function, reading, source)
        except BaseException:
            source.close()
            raise

    def _schema(self, record: SourceRecord, definition: SourceDefinition) -> OutsideSchema:
        """As it is there now, whatever the mirror has."""
        source = self._sources.make(replace(definition, capture=record.layout.capture))
        try:
            return source.schema()
        finally:
            source.close()

    def _read(self, record: SourceRecord, layout: Layout, source: Any) -> Reading:
        if record.definition.alone:
            return Reading(record.revision, OutsideSchema(layout.schema))
        if not layout.followed:
            found: Reading = source.read(None, record.revision)
            return found
        group = self._log.groups().get(layout.server or "", [])
        others = [each for each in group if each.name != record.name]
        return self._log.server([*others, record]).start(
            layout.table, layout.outside, record.revision
        )


def _by_name(columns: pa.Schema) -> dict[str, pa.Field]:
    return {each.name.lower(): each for each in columns}


def _wanted(record: SourceRecord, schema: OutsideSchema, change: ColumnChange) -> tuple[str, ...]:
    """The columns that the mirror is to have, in their order."""
    has, there = record.layout.names, _by_name(schema.columns)
    match change.way:
        case "add":
            for each in change.names:
                if each in has:
                    raise NameFault(f"{record.name} has the column {each}", code="exists")
                if each not in there:
                    raise _no_column(each, f"the source {record.name}", tuple(there))
            wanted = (*has, *dict.fromkeys(change.names))
        case "drop":
            for each in change.names:
                if each not in has:
                    raise _no_column(each, record.name, has)
            wanted = tuple(each for each in has if each not in change.names)
        case "renew":
            take = _taken(record.definition)
            wanted = tuple(each for each in there if not take or each in take)
        case "take":
            for each in change.names:
                if each not in there:
                    raise _no_column(each, f"the source {record.name}", tuple(there))
            wanted = tuple(dict.fromkeys(change.names)) or tuple(there)
    lost = [each for each in wanted if each not in there]
    if lost:
        raise lost_column(record.name, lost[0])
    if not wanted:
        raise SourceFault(f"{record.name} would have no columns", code="bad-option")
    return wanted


def _no_column(name: str, where: str, known: Sequence[str]) -> NameFault:
    near = nearest(name, known)
    return NameFault(
        f"{where} has no column {name}",
        code="unknown-column",
        hint=f"did you mean {near}?" if near else f"its columns are {', '.join(known[:20])}",
    )


def _layout(
    record: SourceRecord,
    schema: OutsideSchema,
    wanted: Sequence[str],
    fields: Mapping[str, pa.Field],
    way: Way,
) -> Layout:
    layout = record.layout
    known = dict(zip(layout.names, layout.schema, strict=True)) if way != "renew" else {}
    of_source = tuple(each.lower() for each in schema.key)
    key = layout.key
    if record.definition.key is None and (layout.followed or not set(key) <= set(wanted)):
        key = of_source if set(of_source) <= set(wanted) else ()
    gone = [each for each in key if each not in wanted]
    if gone or (layout.followed and not set(of_source) <= set(wanted)):
        name = (gone or [each for each in of_source if each not in wanted])[0]
        raise SourceFault(
            f"{name} is in the KEY of {record.name}",
            code="in-use",
            hint=f"DROP SOURCE {record.name} CASCADE and create it again with another KEY",
        )
    chosen = [known.get(each, fields[each]) for each in wanted]
    return replace(
        layout,
        names=tuple(wanted),
        outside=tuple(fields[each].name for each in wanted),
        key=key,
        types=schema_text(
            pa.schema([f.with_name(fields[n].name) for n, f in zip(wanted, chosen, strict=True)])
        ),
    )


def _taken(definition: SourceDefinition) -> tuple[str, ...]:
    given = definition.options.get("take")
    texts = given.split(",") if isinstance(given, str) else given or ()
    return tuple(each.strip().lower() for each in texts)


def _with_take(
    definition: SourceDefinition,
    change: ColumnChange,
    wanted: Sequence[str],
    there: Mapping[str, pa.Field],
) -> SourceDefinition:
    """The statement says which columns are taken, if not all of the source's are."""
    options = dict(definition.options)
    is_left_out = change.way == "drop" and any(each in there for each in change.names)
    if change.way != "take" and (_taken(definition) or is_left_out):
        options["take"] = ", ".join(there[each].name for each in wanted)
    return replace(definition, options=options)
