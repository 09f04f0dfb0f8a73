"""Relations: the signature of a predicate. Its clauses, if it has any, live in a Program.

A function f(A) -> R is the relation f(A, R): first the argument columns, then the result columns.
A set has no two equal rows; a keyed set has no two rows that agree on the key, which is how a
stored function holds one value for each argument. A bag counts its rows.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import Any

from harken.values.types import INTEGER, NUMBER, Type


class Kind(enum.Enum):
    STORED = "stored"
    DERIVED = "derived"
    FOREIGN = "foreign"


class Semantics(enum.Enum):
    SET = "set"
    BAG = "bag"


class Role(enum.Enum):
    """What a relation is for. Only PLAIN relations have names that users chose; the value of every
    other role is part of the id, so a made relation never has the id of a user's."""

    PLAIN = ""
    EXTENT = "extent"
    """The objects of a type."""
    BUILT_IN = "built-in"
    """Provided by every engine."""
    ACTIVATIONS = "activations"
    """The arguments for which a rule is active."""
    PARAMETERS = "parameters"
    """The constants of subscriptions that share a condition."""
    CLOCK = "clock"
    """The moment up to which views have been brought."""
    CONDITION = "condition"
    """What a rule, an event or a monitor watches."""
    LATE_BOUND = "late-bound"
    """A call that runs one of several functions; `of` lists them."""
    RECURSIVE = "recursive"
    """WITH RECURSIVE; `of` is the name that its author gave it."""
    PART = "part"
    """A part of a definition that ObjectLog writes as a relation of its own: a subquery, say."""
    DELTA = "delta"
    """The Δ-set of a relation: its changed rows, with weights."""
    GAINED = "gained"
    LOST = "lost"
    CHANGE = "change"
    """The weighted change of a relation, as a program computes it."""
    OLD = "old"
    """A relation as it was before the transaction."""
    BEFORE = "before"
    """A relation as it was when the transaction, or the statement, began."""
    HISTORY = "history"
    """The net change of a stored relation since then, with weights."""
    NET_GAIN = "net gain"
    """The rows that a relation gained since then."""
    NET_LOSS = "net loss"
    COPY = "copy"
    """The stored rows of a derived relation."""
    AFFECTED = "affected"
    """The keys that a change can affect."""
    REDERIVED = "rederived"
    """p^del, p^ins, p^plus and p^minus: as many rows as the change, more or less."""
    MAGIC = "magic"
    """The arguments for which rows of a relation are wanted."""
    QUESTION = "question"
    """Arguments that other layers ask a magic relation for."""
    SUPPLEMENTARY = "supplementary"
    RECENT = "recent"
    """The rows that the last round of a recursion found."""
    SETTLED = "settled"
    """The rows that were there before the round."""
    KEPT = "kept"
    """State kept between transactions: totals, counted derivations, first rows, rounds."""
    MEMORY = "memory"
    """The rows of a subexpression of rules, which the network stores while a program runs."""
    PREVIOUS = "previous"
    """What continual queries remember of their last executions: values, positions, signals."""
    AUXILIARY = "auxiliary"
    """Made by a rewrite, and nobody needs to know more."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Relation:
    """`inputs` is how many leading columns are arguments; they tell overloads apart.

    A foreign relation can only be evaluated with its inputs bound. A relation of the `past` may
    hold objects that no longer are of the type of their column. A recursive relation `in_rounds`
    has each row as often as it is derived, a round of the recursion from the rows of the round
    before. `of` is the relation that this one was made from, or what its `role` says.
    """

    name: str
    columns: tuple[Column, ...]
    inputs: int
    kind: Kind
    semantics: Semantics = Semantics.SET
    key: tuple[int, ...] | None = None
    past: bool = False
    in_rounds: bool = False
    role: Role = field(default=Role.PLAIN, repr=False)
    of: Relation | str | None = field(default=None, repr=False)
    since: str = field(default="", repr=False)
    """Of a relation of the past: whether of the `transaction` or of the `statement`."""
    nulls: frozenset[int] = field(init=False, repr=False)
    """The columns that may be NULL: types do not tell themselves apart by that, relations do."""
    made: str = field(init=False, compare=False)
    """The end of the id of a relation that no user named: its role, and those it was made from."""
    id: str = field(init=False, repr=False, compare=False)
    """The name that is unique in a database: `delivery_time(item,supplier)`."""

    def __post_init__(self) -> None:
        nulls = frozenset(i for i, each in enumerate(self.columns) if each.type.nullable)
        object.__setattr__(self, "nulls", nulls)
        object.__setattr__(self, "made", self._made())
        inputs = ",".join(column.type.name for column in self.columns[: self.inputs])
        object.__setattr__(self, "id", f"{self.name}({inputs}){self.made}")
        if not 0 <= self.inputs <= len(self.columns):
            raise ValueError(f"{self.name}: {self.inputs} inputs among {len(self.columns)} columns")
        if self.key is not None and self.semantics is Semantics.BAG:
            raise ValueError(f"{self.name}: a bag has no key")
        if any(not 0 <= position < len(self.columns) for position in self.key or ()):
            raise ValueError(f"{self.name}: key {self.key} outside the columns")

    def _made(self) -> str:
        """Every id that a user chose ends with a bracket, and no other does."""
        if self.role is Role.PLAIN:
            return ""
        if isinstance(self.of, Relation):
            since = f" of {self.since}" if self.since else ""
            return f":{self.role.value}{since}{self.of.made}"
        return f":{self.role.value}[{self.of}]" if self.of else f":{self.role.value}"

    def variant(self, role: Role, name: str, **fields: Any) -> Relation:
        """A relation made from this one, with the same columns unless `fields` say otherwise."""
        return replace(self, role=role, of=self, name=name, **fields)

    def __hash__(self) -> int:
        """Equal relations have the same id, and its hash is known."""
        return hash(self.id)

    @property
    def signature(self) -> str:
        """The name adorned with its types, as the papers write it: `income_employee,number`."""
        return f"{self.name}_{','.join(column.type.name for column in self.columns)}"

    @property
    def label(self) -> str:
        """What people are shown in place of the id: without the roles that keep ids apart."""
        inputs = ",".join(column.type.name for column in self.columns[: self.inputs])
        called = f"[{self.of}]" if self.role is Role.LATE_BOUND else ""
        return f"{self.name}{called}({inputs})"

    @property
    def written_name(self) -> str:
        """The name that stands in the user's text, where there is one."""
        return str(self.of) if self.role is Role.RECURSIVE else self.name

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
    role=Role.BUILT_IN,
)
"""copies(n, 1), ..., copies(n, n): a row that stands there n times. Every engine provides it."""


def _range(type_: Type) -> Relation:
    given = tuple(Column(name, type_) for name in ("start", "end", "step", "value"))
    name = f"range of {type_.name}"
    return Relation(name, given, inputs=3, kind=Kind.FOREIGN, role=Role.BUILT_IN)


RANGES = {type_: _range(type_) for type_ in (INTEGER, NUMBER)}
"""range(start, end, step, value): the values from the start on, step by step, before the end."""


def extent_name(type_name: str) -> str:
    """The name of the relation that holds the objects of a type."""
    return f"extent {type_name}"


def extent_relation(type_: Type, kind: Kind = Kind.STORED) -> Relation:
    return Relation(
        name=extent_name(type_.name),
        columns=(Column("object", type_),),
        inputs=0,
        kind=kind,
        key=(0,) if kind is Kind.STORED else None,
        role=Role.EXTENT,
    )


def is_extent(relation: Relation) -> bool:
    return relation.role is Role.EXTENT
