"""A change as its client receives it, and as it is stored: encoded rows with their types.

The types are part of a stored change. A function may be redefined with other results, and then the
rows it lost have other types than the rows it gained.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harken.database import frames
from harken.database.evaluation import decode_rows
from harken.database.results import Result, to_json
from harken.errors import TypeFault, offered
from harken.ir.relations import Column
from harken.values.rows import Row
from harken.values.types import Type, literal_type_named

Types = tuple[Type, ...]


NULLABLE = " or NULL"


@dataclass(frozen=True, slots=True)
class RowShape:
    """The columns of the rows of a view, and the positions of those that identify a row; None if
    no columns are known to do so."""

    columns: tuple[Column, ...] = ()
    key: tuple[int, ...] | None = None


NO_SHAPE = RowShape()


@dataclass(frozen=True, slots=True)
class Pairs:
    """A change by key: rows whose other columns changed, as (before, after), and the rest."""

    updated: list[tuple[Row, Row]]
    inserted: list[Row]
    deleted: list[Row]


@dataclass(frozen=True, slots=True)
class Change:
    """What a view gained and lost in one transaction. A row has the arguments and the results of
    the function; in a bag it appears as often as it was inserted or deleted.

    A `fresh` change replaces everything before it: `plus` has all rows of the view.
    """

    view: str
    plus: list[Row]
    minus: list[Row]
    transaction: int
    fresh: bool = False
    at: datetime.datetime | None = field(default=None, compare=False, kw_only=True)
    """When it was committed, where that is known; of a `fresh` one, when it was read."""
    shape: RowShape = field(default=NO_SHAPE, compare=False, kw_only=True)

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        """Each row with its sign, what was lost first: `for sign, row in change`."""
        yield from ((-1, row) for row in self.minus)
        yield from ((1, row) for row in self.plus)

    def __len__(self) -> int:
        return len(self.minus) + len(self.plus)

    def __bool__(self) -> bool:
        return True

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.shape.columns)

    @property
    def types(self) -> Types:
        return tuple(column.type for column in self.shape.columns)

    def one(self) -> Row:
        """The only row that was gained; anything but one is an error."""
        return Result("rows", self.columns, self.plus, types=self.types).one()

    def scalar(self) -> Any:
        """The only value of the only row that was gained."""
        return Result("rows", self.columns, self.plus, types=self.types).scalar()

    def pairs(self, key: Sequence[str] | None = None) -> Pairs:
        """Rows lost and gained with the same key, as updates. The key is that of the view, or the
        columns that are named here."""
        positions = self._key(key)
        lost: defaultdict[Row, list[Row]] = defaultdict(list)
        for row in self.minus:
            lost[tuple(row[each] for each in positions)].append(row)
        updated, inserted = [], []
        for row in self.plus:
            before = lost[tuple(row[each] for each in positions)]
            if before:
                updated.append((before.pop(0), row))
            else:
                inserted.append(row)
        return Pairs(updated, inserted, [row for rows in lost.values() for row in rows])

    def _key(self, names: Sequence[str] | None) -> tuple[int, ...]:
        if names is None:
            if self.shape.key is None:
                raise TypeFault(
                    f"no columns are known to identify a row of {self.view}",
                    code="bad-value",
                    hint='name them: change.pairs(key=["..."])',
                )
            return self.shape.key
        for name in [names] if isinstance(names, str) else names:
            if name not in self.columns:
                raise TypeFault(
                    f"{self.view} has no column {name}",
                    code="unknown-column",
                    hint=offered(str(name), self.columns, "columns"),
                )
        chosen = [names] if isinstance(names, str) else names
        return tuple(self.columns.index(name) for name in chosen)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` of the rows lost and gained, with Spark's columns for changes:
        `_change_type`, `_commit_version` and `_commit_timestamp`."""
        return frames.changes_to_arrow(
            self.columns, self.types, list(self), self.transaction, self.at
        )

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with the columns of `to_arrow`."""
        frames.library("pandas")
        return frames.to_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """A `polars.DataFrame` with the columns of `to_arrow`."""
        frames.library("polars")
        return frames.to_polars(self.to_arrow())

    def _repr_html_(self) -> str:
        signed = [("+" if sign > 0 else "−", *row) for sign, row in self]
        columns = self.columns or tuple(f"{i}" for i in range(1, len(signed[0]) if signed else 1))
        return Result("rows", ("", *columns), signed, types=("", *self.types))._repr_html_()  # type: ignore[arg-type]

    def __repr__(self) -> str:
        rest = ", fresh=True" if self.fresh else ""
        return (
            f"Change(view={self.view!r}, plus={self.plus!r}, minus={self.minus!r}, "
            f"transaction={self.transaction}{rest})"
        )

    @property
    def position(self) -> int:
        """The position of a client that has applied this change: it can resume from there."""
        return self.transaction

    def json_line(self) -> str:
        sides = {"plus": self.plus, "minus": self.minus}
        rows = {name: Result("rows", (), list(each)).json_rows() for name, each in sides.items()}
        fresh = {"fresh": True} if self.fresh else {}
        return to_json({"kind": "change", "view": self.view, **rows, **fresh})


@dataclass(frozen=True, slots=True)
class StoredRows:
    types: Types
    rows: list[Row]

    def values(self, home: str) -> list[Row]:
        return decode_rows(self.rows, self.types, home)

    def as_json(self) -> dict[str, Any]:
        types = [type_.name + (NULLABLE if type_.nullable else "") for type_ in self.types]
        return {"types": types, "rows": self.rows}


@dataclass(frozen=True, slots=True)
class StoredChange:
    plus: StoredRows
    minus: StoredRows
    fresh: bool = False
    at: float | None = None
    """When it was committed, in seconds of the Unix epoch; known once it is committed."""

    def __bool__(self) -> bool:
        return bool(self.plus.rows or self.minus.rows or self.fresh)

    def change(self, view: str, transaction: int, home: str, shape: RowShape = NO_SHAPE) -> Change:
        plus, minus = self.plus.values(home), self.minus.values(home)
        return Change(view, plus, minus, transaction, self.fresh, at=moment(self.at), shape=shape)

    def text(self) -> str:
        parts: dict[str, Any] = {"plus": self.plus.as_json(), "minus": self.minus.as_json()}
        if self.fresh:
            parts["fresh"] = True
        if self.at is not None:
            parts["at"] = self.at
        return json.dumps(parts, ensure_ascii=False)


def read_change(text: str) -> StoredChange:
    parts = json.loads(text)
    plus, minus = read_rows(parts["plus"]), read_rows(parts["minus"])
    return StoredChange(plus, minus, parts.get("fresh", False), parts.get("at"))


def moment(seconds: float | None) -> datetime.datetime | None:
    return None if seconds is None else datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def read_rows(part: Mapping[str, Any]) -> StoredRows:
    types = tuple(_read_type(name) for name in part["types"])
    return StoredRows(types, [tuple(row) for row in part["rows"]])


def _read_type(text: str) -> Type:
    name = text.removesuffix(NULLABLE)
    return (literal_type_named(name) or Type(name)).or_null(name != text)


def netted(changes: Sequence[Change]) -> Change | None:
    """Merge changes into one. A row that was inserted and deleted again is not in it; None if
    nothing is left.

    >>> netted([Change("v", [(1,), (2,)], [], 4), Change("v", [(3,)], [(1,)], 5)])
    Change(view='v', plus=[(2,), (3,)], minus=[], transaction=5)
    """
    weights: Counter[Row] = Counter()
    fresh = False
    for change in changes:
        if change.fresh:
            weights.clear()
            fresh = True
        weights.update(change.plus)
        weights.subtract(change.minus)
    plus, minus = list((+weights).elements()), list((-weights).elements())
    if not (plus or minus or fresh):
        return None
    last = changes[-1]
    return Change(last.view, plus, minus, last.transaction, fresh, at=last.at, shape=last.shape)


def net_change(
    types: Types, weights: Mapping[Row, int], fresh: bool = False, at: float | None = None
) -> StoredChange:
    """The change for net weights: positive ones are insertions, negative ones deletions."""
    gained: list[Row] = []
    lost: list[Row] = []
    for row, weight in weights.items():
        if weight > 0:
            gained += [row] * weight
        elif weight < 0:
            lost += [row] * -weight
    return StoredChange(stored_rows(types, gained), stored_rows(types, lost), fresh, at)


def stored_rows(types: Types, rows: list[Row]) -> StoredRows:
    """Sorted rows: stored values in the order of the values, objects by age, NULL first."""
    if len(rows) > 1:
        try:
            rows = sorted(rows)
        except TypeError:  # NULL has no order
            rows = sorted(rows, key=_place)
    return StoredRows(types, rows)


def _place(row: Row) -> Row:
    return tuple((value is not None, value) for value in row)
