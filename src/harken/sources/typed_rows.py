"""Rows of a source without types, as Arrow batches of typed columns.

The type of a column is the one that the mirror has (`Context.known`), else the one that was
declared, else the inferred one.

Law: with `known`, a column of the mirror comes in its type, whatever its values; a value that does
not fit it is `source-changed`, and no row is changed or left out for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from harken.errors import SourceFault
from harken.limits import check
from harken.sources.column_types import DoesNotFit, converter, infer, name_of, type_named
from harken.sources.outside import OutsideSchema

BATCH = 10_000
"""Rows in a batch."""
SHOWN = 60
"""Characters of a value in a message."""

Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class TypedRows:
    """How the rows of one source get their types. `textual` sources write all values as texts; then
    `numeral` makes of a text the number that it may be."""

    textual: bool = False
    declared: Mapping[str, pa.DataType] = field(default_factory=dict)
    known: Mapping[str, pa.DataType] = field(default_factory=dict)
    nulls: frozenset[str] = frozenset()
    """Texts that mean NULL."""
    numeral: Callable[[str], str] | None = None

    @classmethod
    def of(
        cls,
        known: OutsideSchema | None,
        declared: Sequence[str] | pa.Schema = (),
        *,
        textual: bool = False,
        nulls: Sequence[str] = (),
        numeral: Callable[[str], str] | None = None,
    ) -> TypedRows:
        mirror = {} if known is None else {each.name: each.type for each in known.columns}
        if isinstance(declared, pa.Schema):
            given = dict(zip(declared.names, declared.types, strict=True))
        else:
            given = declared_types(declared)
        return cls(textual, given, mirror, frozenset(nulls), numeral)

    def table(self, names: Sequence[str], rows: Rows) -> pa.Table:
        """The rows, which are as long as `names`."""
        self._check_declared(names)
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        arrays, fields = [], []
        for name, column in zip(names, columns, strict=True):
            check()
            values = self._plain(column)
            type_ = self._type(name, values)
            arrays.append(self._array(name, values, type_))
            fields.append(pa.field(name, type_))
        return pa.table(arrays, schema=pa.schema(fields))

    def _plain(self, column: Sequence[Any]) -> Sequence[Any]:
        if not self.nulls:
            return column
        return [
            None if isinstance(value, str) and value in self.nulls else value for value in column
        ]

    def _type(self, name: str, values: Sequence[Any]) -> pa.DataType:
        given = self.known.get(name) or self.declared.get(name)
        if given is not None:
            return given
        return infer(map(self._number, values), textual=self.textual)

    def _array(self, name: str, values: Sequence[Any], type_: pa.DataType) -> pa.Array:
        convert = converter(type_)
        if self.numeral is not None and not pa.types.is_string(type_):
            values = [self._number(value) for value in values]
        found: list[Any] = []
        try:
            for value in values:
                found.append(None if value is None else convert(value))
        except DoesNotFit:
            raise self._misfit(name, type_, values[len(found)], len(found) + 1) from None
        try:
            return pa.array(found, type_)
        except (pa.ArrowException, OverflowError, UnicodeError) as error:
            raise SourceFault(
                f"the column {name} has a value that {name_of(type_)} does not hold: {error}",
                code="source-changed",
            ) from None

    def _number(self, value: Any) -> Any:
        return self.numeral(value) if self.numeral and isinstance(value, str) else value

    def _misfit(self, name: str, type_: pa.DataType, value: Any, row: int) -> SourceFault:
        shown = str(value)
        shown = shown if len(shown) <= SHOWN else shown[:SHOWN] + "…"
        if name in self.known:
            return SourceFault(
                f"the column {name} is {name_of(type_)} here, and its row {row} has now {shown!r}",
                code="source-changed",
                hint="ALTER SOURCE name RENEW COLUMNS gives it the type that it has now; or name "
                "the text in the option nulls, if it means that there is no value",
            )
        return SourceFault(
            f"the column {name} was declared as {name_of(type_)}, and its row {row} has {shown!r}",
            code="bad-option",
            hint="declare another type, or name the text in the option nulls if it means that "
            "there is no value",
        )

    def _check_declared(self, names: Sequence[str]) -> None:
        strange = [name for name in self.declared if name not in names and name not in self.known]
        if strange:
            raise SourceFault(
                f"the option types names the column {strange[0]}, which is not there",
                code="bad-option",
                hint=f"the columns are {', '.join(names)}",
            )


def batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from table.to_batches(max_chunksize=BATCH)


def declared_types(given: Sequence[str]) -> dict[str, pa.DataType]:
    """The option `types`: a name and a type for each column.

    >>> declared_types(["price decimal(8", "2)", "at timestamp"])
    {'price': Decimal128Type(decimal128(8, 2)), 'at': TimestampType(timestamp[us])}
    """
    found: dict[str, pa.DataType] = {}
    for each in whole_entries(given):
        name, _, type_ = each.strip().partition(" ")
        if not type_:
            raise SourceFault(
                f"the option types has {each.strip()[:SHOWN]!r}, which is not a name and a type",
                code="bad-option",
                hint="write types 'price decimal(8, 2), day date'",
            )
        found[name] = type_named(type_)
    return found


_OPENING, _CLOSING = "([", ")]"


def whole_entries(given: Sequence[str] | str | None) -> list[str]:
    """The entries of a list that was separated at commas, those in brackets included.

    >>> whole_entries(["td:is(.a", ".b)", "a@href"])
    ['td:is(.a, .b)', 'a@href']
    """
    parts = given.split(",") if isinstance(given, str) else list(given or ())
    found: list[str] = []
    depth = 0
    for part in parts:
        if depth > 0:
            found[-1] += f", {part.strip()}"
        else:
            found.append(part.strip())
        depth += sum(part.count(each) for each in _OPENING)
        depth -= sum(part.count(each) for each in _CLOSING)
    return [each for each in found if each]


_NOT_OF_A_NAME = re.compile(r"[^\w]+")


def column_name(text: str, number: int) -> str:
    """A heading as the name of a column that needs no quotes.

    >>> column_name("Wind (km/h)", 2), column_name("%", 3), column_name("2026", 1)
    ('wind_km_h', 'column_3', 'column_2026')
    """
    found = _NOT_OF_A_NAME.sub("_", text.strip().lower()).strip("_")[:SHOWN]
    if not found:
        return f"column_{number}"
    return f"column_{found}" if found[0].isdecimal() else found


def distinct_names(names: Sequence[str]) -> list[str]:
    """Equal names are numbered.

    >>> distinct_names(["a", "A", "b"])
    ['a', 'A_2', 'b']
    """
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        fresh, number = name, 2
        while fresh.lower() in taken:
            fresh, number = f"{name}_{number}", number + 1
        taken.add(fresh.lower())
        found.append(fresh)
    return found
