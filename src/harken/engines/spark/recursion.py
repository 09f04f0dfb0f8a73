"""Recursive relations by semi-naive evaluation: each round joins only what the last one found.

    full ← the clauses without recursion;  delta ← full
    until delta is empty:  new ← the recursive clauses with one recursive atom over delta
                           delta ← new − full;  full ← full ∪ delta

Of relations `in_rounds` (UNION ALL) nothing is taken away: delta ← new;  full ← full + delta.

The rounds run from the driver. What one of them found is checkpointed, so the plan of a round does
not hold those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harken.engines.spark.sql_expressions import after
from harken.ir.clauses import Atom, Clause, Definition
from harken.ir.relations import Kind, Relation, Role, Semantics
from harken.ir.strata import Stratum, no_fixpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROUND_LIMIT = 100_000
ALL_LIMIT = 1_000
"""So many rounds relations in rounds may have: on a cycle they would have more and more."""
ROW_LIMIT = 10_000_000
"""The most rows."""

Evaluate = Callable[[str, Mapping[str, "DataFrame"]], "DataFrame"]
"""The rows of a statement, given those that its marked names stand for."""

CompileClauses = Callable[[Definition], str]


@dataclass(frozen=True, slots=True)
class Rounds:
    """What the first round of one relation computes, and each later one; none if it has none."""

    full: str
    delta: str
    start: str
    step: str | None


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """The compiled evaluation of one recursive stratum."""

    relations: tuple[Rounds, ...]
    names: tuple[str, ...]
    in_rounds: bool = False
    """Is each row there as often as it is derived?"""

    def run(self, evaluate: Evaluate, known: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """The rows of each relation of the stratum, by the name it has in statements above."""
        found = {
            each.full: _kept(self._once(evaluate(each.start, known))) for each in self.relations
        }
        recent = {each.delta: found[each.full] for each in self.relations}
        limit = ALL_LIMIT if self.in_rounds else ROUND_LIMIT
        size = 0
        for _ in range(limit):
            if all(_is_empty(rows) for rows in recent.values()):
                return found
            if self.in_rounds:
                size += sum(each.count() for each in recent.values())
                if size > ROW_LIMIT:
                    raise no_fixpoint(self.names, f"{ROW_LIMIT} rows", self.in_rounds)
            frames = {**known, **found, **recent}
            recent = {each.delta: self._new(each, evaluate, frames) for each in self.relations}
            found = {
                each.full: _kept(found[each.full].unionAll(recent[each.delta]))
                for each in self.relations
            }
        raise no_fixpoint(self.names, f"{limit} rounds", self.in_rounds)

    def _once(self, rows: DataFrame) -> DataFrame:
        return rows if self.in_rounds else rows.distinct()

    def _new(
        self, rounds: Rounds, evaluate: Evaluate, frames: Mapping[str, DataFrame]
    ) -> DataFrame:
        """What a relation gains in a round."""
        full = frames[rounds.full]
        if rounds.step is None:
            return full.limit(0)
        if self.in_rounds:
            return _kept(evaluate(rounds.step, frames).limit(ROW_LIMIT + 1))
        rows = evaluate(rounds.step, frames).distinct()
        return _kept(rows.join(full, rows.columns, "left_anti"))


def _is_empty(rows: DataFrame) -> bool:
    """Not `isEmpty`: under Spark Connect that holds each DataFrame it was asked of for as long as
    the process lives (4.3 has `functools.cache` on it), and so its checkpoint on the server."""
    return not rows.take(1)


def _kept(rows: DataFrame) -> DataFrame:
    """The rows, computed, so that the next plan does not hold the last.

    A checkpoint of Spark 4.3 claims things of columns that it does not have, and a union above it
    fails. Of a value that it takes for random Spark claims nothing.
    """
    columns = [f"{after(name)} AS {name}" for name in rows.columns]
    return rows.localCheckpoint().selectExpr(*columns)


def compile_stratum(
    stratum: Stratum,
    compile_with: Callable[[Mapping[str, str]], CompileClauses],
    tables: dict[str, str],
    prefix: str,
) -> Fixpoint:
    """Compile a recursive stratum; adds the names of its rows to `tables` for those above it."""
    names = {}
    for number, definition in enumerate(stratum.definitions):
        relation = definition.relation
        names[relation.id] = (f"⟦{prefix}_{number}_full⟧", f"⟦{prefix}_{number}_delta⟧")
        tables[relation.id], tables[_delta(relation).id] = names[relation.id]
    relations = []
    for definition in stratum.definitions:
        rounds = [(clause, _delta_clauses(clause, stratum.names)) for clause in definition.clauses]
        first = tuple(clause for clause, later in rounds if not later)
        steps = tuple(each for _, later in rounds for each in later)
        full, delta = names[definition.relation.id]
        bag = _as_bag(definition.relation)

        def rows(clauses: tuple[Clause, ...], bag: Relation = bag) -> str:
            heads = (Clause(replace(each.head, relation=bag), each.body) for each in clauses)
            return compile_with(tables)(Definition(bag, tuple(heads)))

        step = rows(steps) if steps else None
        relations.append(Rounds(full, delta, rows(first), step))
    spoken = tuple(sorted(definition.relation.written_name for definition in stratum.definitions))
    return Fixpoint(tuple(relations), spoken, stratum.in_rounds)


def _as_bag(relation: Relation) -> Relation:
    """The duplicates of a round are removed once, for all its clauses together."""
    return replace(relation, semantics=Semantics.BAG, key=None)


def _delta(relation: Relation) -> Relation:
    return relation.variant(Role.RECENT, f"recent {relation.name}", kind=Kind.STORED)


def _delta_clauses(clause: Clause, recursive: frozenset[str]) -> list[Clause]:
    """One clause for each recursive atom, with that atom over what the last round found."""
    variants = []
    for position, literal in enumerate(clause.body):
        if isinstance(literal, Atom) and literal.relation.id in recursive:
            changed = replace(literal, relation=_delta(literal.relation))
            body = (*clause.body[:position], changed, *clause.body[position + 1 :])
            variants.append(Clause(clause.head, body))
    return variants
