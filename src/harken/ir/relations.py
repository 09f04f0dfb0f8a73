"""Relations: the signature of a predicate. Its clauses, if it has any, live in a Program.

A function f(A) -> R is the relation f(A, R): first the argument columns, then the result columns.
A set has no two equal rows; a keyed set has no two rows that agree on the key, which is how a
stored function holds one value for each argument. A bag counts its rows.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field

from harken.values.types import INTEGER, NUMBER, Type

LATE_BOUND = re.compile(r"(\*)\[.*?\]")
"""`income*[employee|manager]` calls one of these functions; it is written `income*`."""


class Kind(enum.Enum):
    STORED = "stored"
    DERIVED = "derived"
    FOREIGN = "foreign"


class Semantics(enum.Enum):
    SET = "set"
    BAG = "bag"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Relation:
    """`inputs` is how many leading columns are arguments; they tell overloads apart.

    A foreign relation can only be evaluated with its inputs bound. A relation of the `past` may
    hold objects that no longer are of the type of their column. A derived relation that is `tabled`
    may be computed once for all who mention it; with a `limit`, the evaluation of a recursive one
    ends with the round in which it has so many rows. A recursive one `in_rounds` has each row as
    often as it is derived, a round of the recursion from the rows of the round before.
    """

    name: str
    columns: tuple[Column, ...]
    inputs: int
    kind: Kind
    semantics: Semantics = Semantics.SET
    key: tuple[int, ...] | None = None
    past: bool = False
    tabled: bool = field(default=False, compare=False, repr=False)
    limit: int | None = field(default=None, compare=False, repr=False)
    in_rounds: bool = field(default=False, compare=False, repr=False)
    nulls: frozenset[int] = field(init=False, repr=False)
    """The columns that may be NULL: types do not tell themselves apart by that, relations do."""
    id: str = field(init=False, repr=False, compare=False)
    """The name that is unique in a database: `delivery_time(item,supplier)`."""

    def __post_init__(self) -> None:
        nulls = frozenset(i for i, each in enumerate(self.columns) if each.type.nullable)
        object.__setattr__(self, "nulls", nulls)
        inputs = ",".join(column.type.name for column in self.columns[: self.inputs])
        object.__setattr__(self, "id", f"{self.name}({inputs})")
        if not 0 <= self.inputs <= len(self.columns):
            raise ValueError(f"{self.name}: {self.inputs} inputs among {len(self.columns)} columns")
        if self.key is not None and self.semantics is Semantics.BAG:
            raise ValueError(f"{self.name}: a bag has no key")
        if any(not 0 <= position < len(self.columns) for position in self.key or ()):
            raise ValueError(f"{self.name}: key {self.key} outside the columns")

    def __hash__(self) -> int:
        """Equal relations have the same id, and its hash is known."""
        return hash(self.id)

    @property
    def signature(self) -> str:
        """The name adorned with its types, as the papers write it: `income_employee,number`."""
        name = re.sub(LATE_BOUND, r"\1", self.name.replace("Δ ", "Δ"))
        return f"{name}_{','.join(column.type.name for column in self.columns)}"

    @property
    def arity(self) -> int:
        return len(self.columns)

    @property
    def is_set(self) -> bool:
        return self.semantics is Semantics.SET


COPIES = Relation(
    "copies",
    (Column("n", INTEGER), Column("which", INTEGER)),
    inputs=1,
    kind=Kind.FOREIGN,
    semantics=Semantics.BAG,
)
"""copies(n, 1), ..., copies(n, n): a row that stands there n times. Every engine provides it."""


def _range(type_: Type) -> Relation:
    given = tuple(Column(name, type_) for name in ("start", "end", "step", "value"))
    return Relation(f"range of {type_.name}", given, inputs=3, kind=Kind.FOREIGN)


RANGES = {type_: _range(type_) for type_ in (INTEGER, NUMBER)}
"""range(start, end, step, value): the values from the start on, step by step, before the end."""


def extent_name(type_name: str) -> str:
    """The id of the relation that holds the objects of a type."""
    return f"extent {type_name}"


def extent_relation(type_: Type, kind: Kind = Kind.STORED) -> Relation:
    return Relation(
        name=extent_name(type_.name),
        columns=(Column("object", type_),),
        inputs=0,
        kind=kind,
        key=(0,) if kind is Kind.STORED else None,
    )


def is_extent(relation: Relation) -> bool:
    return relation.name.startswith("extent ") and relation.inputs == 0
