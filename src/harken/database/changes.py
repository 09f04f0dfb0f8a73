"""A change as its client receives it, and as it is stored: encoded rows with their types.

The types are part of a stored change. A function may be redefined with other results, and then the
rows it lost have other types than the rows it gained.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harken.database.evaluation import decode_rows
from harken.database.results import Result, to_json
from harken.values.rows import Row
from harken.values.types import Type, literal_type_named

Types = tuple[Type, ...]


NULLABLE = " or NULL"


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

    def __bool__(self) -> bool:
        return bool(self.plus.rows or self.minus.rows or self.fresh)

    def change(self, view: str, transaction: int, home: str) -> Change:
        plus, minus = self.plus.values(home), self.minus.values(home)
        return Change(view, plus, minus, transaction, self.fresh)

    def text(self) -> str:
        parts: dict[str, Any] = {"plus": self.plus.as_json(), "minus": self.minus.as_json()}
        if self.fresh:
            parts["fresh"] = True
        return json.dumps(parts, ensure_ascii=False)


def read_change(text: str) -> StoredChange:
    parts = json.loads(text)
    plus, minus = read_rows(parts["plus"]), read_rows(parts["minus"])
    return StoredChange(plus, minus, parts.get("fresh", False))


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
    return Change(changes[-1].view, plus, minus, changes[-1].transaction, fresh)


def net_change(types: Types, weights: Mapping[Row, int], fresh: bool = False) -> StoredChange:
    """The change for net weights: positive ones are insertions, negative ones deletions."""
    gained = Counter({row: weight for row, weight in weights.items() if weight > 0})
    lost = Counter({row: -weight for row, weight in weights.items() if weight < 0})
    return StoredChange(stored_rows(types, gained), stored_rows(types, lost), fresh)


def stored_rows(types: Types, rows: Counter[Row]) -> StoredRows:
    """Sorted rows: stored values in the order of the values, objects by age, NULL first."""

    def place(row: Row) -> Row:
        return tuple((value is not None, value) for value in row)

    nullable = any(type_.nullable for type_ in types)
    return StoredRows(types, sorted(rows.elements(), key=place if nullable else None))
