"""Keeping derived state: what makes the next change cheaper to find.

    copies        the rows of a relation as they were            CopiedRows
    recursions    the rows of relations that derive each other   RecursiveRows
    totals        of the groups of an aggregate                  calculus.totals.Totals
    first rows    of an order                                    calculus.firsts.FirstRows
    counts        of the derivations of each row                 calculus.counting.Derivations
    rounds        of a recursion that counts derivations         calculus.rounds.Rounds

Each is opened by its specification, built from queries, and follows the changes of what it was
built from. All of it belongs to the session, counts against one budget, and can be dropped at any
time: then changes are found without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar, overload

from harken.calculus.rounds import Rounds
from harken.calculus.stored_recursion import Maintenance
from harken.calculus.totals import Summary
from harken.engines.protocol.capture import Delta
from harken.engines.protocol.prepared_queries import Query
from harken.ir.clauses import Program
from harken.ir.relations import Relation
from harken.planner.prepare import Plan

BuiltFrom = TypeVar("BuiltFrom", contravariant=True)
Change = TypeVar("Change", contravariant=True)


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """The rows of a relation as they were; plans read them by `calculus.states.copy_of`."""

    relation: Relation


@dataclass(frozen=True, slots=True)
class RecursiveRows:
    """The rows of relations that derive each other; plans read them by `copy_of`. `name` tells
    them from those that are kept for another node."""

    relations: tuple[Relation, ...]
    name: str


Specification: TypeAlias = Summary | Rounds | CopiedRows | RecursiveRows


@dataclass(frozen=True, slots=True)
class Size:
    """What is kept, in rows and in bytes; the bytes are an estimate."""

    rows: int = 0
    bytes: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.rows + other.rows, self.bytes + other.bytes)


class Kept(Protocol[BuiltFrom, Change]):
    """Derived state that is kept.

    Law: while it holds, it is what `build` would make now. It does not hold before it is built,
    after another session's commit that it did not follow, or once a rollback undid the building;
    after a rollback that undid a `follow`, it is again what it was before that.
    """

    @property
    def name(self) -> str: ...

    def build(self, source: BuiltFrom) -> None:
        """Rebuild it; it may turn out that it cannot be kept, and is then invalid."""

    def follow(self, change: Change, delta: Delta) -> bool:
        """Bring it up to date, and put what that changed into the Δ-set. False if it cannot be kept
        any longer: then it is dropped, and the Δ-set is empty."""

    def holds(self) -> bool: ...

    def revoke(self) -> None:
        """It was not brought up to date: it does not hold any more."""

    def drop(self) -> None: ...

    def size(self) -> int:
        """How many rows are kept."""

    def measure(self) -> Size:
        """How many rows are kept, and their bytes."""


MemberChanges: TypeAlias = Sequence[tuple[Query, int | None]]
"""Queries for changed members, each with the weight of a row; None if the last column has it."""


class KeptSummary(Kept[Query, MemberChanges], Protocol):
    """Totals, first rows or counts; built from the members."""

    @property
    def specification(self) -> Summary: ...


class KeptCounts(KeptSummary, Protocol):
    """Rows of a view, each with how often it is derived.

    Law: while it holds, a row is in the view if and only if its count is not 0.
    """

    def total(self) -> int:
        """How many derivations all rows have."""


class KeptCopy(Kept[Query, None], Protocol):
    """A copy; it follows the change that the Δ-set holds already."""


@dataclass(frozen=True, slots=True)
class RoundsSource:
    """The queries for the first round, and for the next one, over what is moving."""

    base: Query
    step: Query


@dataclass(frozen=True, slots=True)
class RoundsChange:
    """The change of the first round, and of the step over the rounds that are kept; None if it has
    not changed. `step` is that of the source."""

    base: Query | None
    kept_step: Query | None
    step: Query


class KeptRounds(Kept[RoundsSource, RoundsChange], Protocol):
    """The rounds of a recursion."""

    def create(self) -> None:
        """Make room for it: the queries of its source read what is moving in it."""


@dataclass(frozen=True, slots=True)
class RecursionSource:
    """A query that evaluates all the relations, and their names in it."""

    query: Query
    stated: Mapping[str, Relation]


class RecursionChange(Protocol):
    """Rules that bring the rows of a recursion up to date, ready to be run."""


class KeptRecursion(Kept[RecursionSource, RecursionChange], Protocol):
    """The rows of relations that derive each other."""

    @property
    def version(self) -> int:
        """How often it was built: plans that read it are remade with it."""

    @property
    def is_built(self) -> bool:
        """Is there anything? It may be out of date, see `holds`."""

    @property
    def relations(self) -> tuple[Relation, ...]: ...

    def prepare(self, rules: Maintenance, deletion: Plan, insertion: Plan) -> RecursionChange:
        """Make the rules for one combination of changed relations ready to be run."""

    def compare(self, source: RecursionSource, delta: Delta) -> None:
        """Rebuild it, and put the difference from the old rows into the Δ-set."""

    @property
    def can_apply(self) -> bool:
        """Is it a single relation, so that its change is all that is needed?"""

    def apply(self, delta: Delta) -> None:
        """Bring it up to date with a change that is known."""


AnyKept: TypeAlias = KeptSummary | KeptCopy | KeptRounds | KeptRecursion


class Keep(Protocol):
    """Opens what is kept, and knows all of it.

    Law: `total` is the sum of all that is built and holds.
    """

    @overload
    def open(self, specification: Summary, in_file: bool = ...) -> KeptSummary:
        """Totals `in_file` belong to all sessions of the file: each that writes follows them."""

    @overload
    def open(self, specification: CopiedRows) -> KeptCopy: ...

    @overload
    def open(self, specification: Rounds) -> KeptRounds: ...

    @overload
    def open(self, specification: RecursiveRows) -> KeptRecursion: ...

    def build(
        self,
        wanted: Iterable[tuple[KeptSummary, Program]],
        compile_members: Callable[[Program], Query],
    ) -> None:
        """Build several from the programs of their members, in as few passes as possible."""

    def compile(self, plan: Plan, reading: Iterable[KeptRounds | KeptRecursion]) -> Query:
        """A plan that reads what is kept."""

    def built(self) -> list[AnyKept]:
        """All that is built and holds."""

    def total(self) -> Size: ...
