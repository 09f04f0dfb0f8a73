"""Nodes of recursive relations, and the three ways in which they compute their change.

    external        rederivation on demand: nothing is stored (`calculus.rederivation`)
    materialized    a stored copy, deleted from and rederived (`calculus.maintenance`)
    naive           all rows from scratch, beside those of before

Law: each gives the same change.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harken.calculus.maintenance import maintain
from harken.calculus.rederivation import cycle_of, is_rederivable, rederive
from harken.calculus.states import in_old_state, old
from harken.database.rules.nodes import DerivedNode, Planning
from harken.engines.sqlite.engine import Query
from harken.engines.sqlite.kept import Kept, Rules
from harken.ir.clauses import Program
from harken.ir.relations import Relation
from harken.planner.network import Part
from harken.planner.prepare import prepare, prepare_change

EXTERNAL, MATERIALIZED = "external", "materialized"


@dataclass(slots=True, eq=False)
class RecursiveNode(DerivedNode):
    kept_rows: Kept = field(kw_only=True)
    external: dict[frozenset[str], Query] = field(default_factory=dict)
    maintained: dict[frozenset[str], Rules] = field(default_factory=dict)
    refused: str | None = None
    """Why its change is always found from scratch, if it is."""

    def drop(self) -> None:
        DerivedNode.drop(self)
        self.kept_rows.drop()

    def rederive(self, changed: frozenset[str], planning: Planning) -> None:
        """Fill the Δ-set with nothing but the tables at hand."""
        query = self.external.get(changed)
        if query is None:
            made = rederive(self.part.program, changed, self.part.nodes)
            query = planning.compile_change(made.program, made.driven)
            self.external[changed] = query
            self.is_fresh = True
        self.delta.fill_weighted(query)

    def maintain(
        self, changed: frozenset[str], stored: frozenset[str], planning: Planning
    ) -> None:
        """Fill the Δ-set, and bring the stored rows up to date. `stored` are the stored relations
        that have changed: the rows that are built first are those of before."""
        if not self.kept_rows.validity.holds():
            self.build(planning, stored)
        rules = self.maintained.get(changed)
        if rules is None:
            rules = self.maintained[changed] = self._compile_rules(changed, planning)
            self.is_fresh = True
        self.kept_rows.follow(rules, self.delta)

    def build(self, planning: Planning, stored: frozenset[str] = frozenset()) -> None:
        """Store the rows, as they were before these relations changed."""
        program = self.part.program
        stated = {each.id: each for each in self.kept_rows.relations}
        if stored:
            program = in_old_state(program, stored)
            stated = {
                name: old(each) if old(each).id in program.definitions else each
                for name, each in stated.items()
            }
        hierarchy = planning.catalog.hierarchy
        wanted = [each.id for each in stated.values()]
        query = planning.engine.compile(prepare(program, hierarchy, wanted=wanted))
        self.kept_rows.build(query, stated)
        query.release()
        self.maintained.clear()

    def _compile_rules(self, changed: frozenset[str], planning: Planning) -> Rules:
        made = maintain(self.part.program, changed, self.part.nodes)
        engine, hierarchy = planning.engine, planning.catalog.hierarchy
        deleted = {each.id: made.deleted(each) for each in made.relations}
        grown = {each.id: made.grown(each) for each in made.relations}
        driven = [each.id for each in deleted.values()]
        copies = self.kept_rows.copies
        deletion = engine.compile_into(
            prepare_change(made.deletion, hierarchy, driven), {}, copies
        )
        known = {each.id: deletion.tables[each.id] for each in deleted.values()}
        tables = {grown[name].id: table for name, table in self.kept_rows.tables.items()}
        insertion = engine.compile_into(
            prepare_change(made.insertion, hierarchy, list(tables)), tables, {**known, **copies}
        )
        return Rules(
            made,
            deletion.fixpoints,
            insertion.fixpoints,
            {name: known[each.id] for name, each in deleted.items()},
        )


def why_from_scratch(program: Program, is_far: bool) -> str | None:
    """Why a recursive relation is always evaluated from scratch; None if it need not be."""
    if is_far:
        return "relations in the lake are recursive only as a whole"
    return is_rederivable(program)


def kept_relations(part: Part) -> tuple[Relation, ...]:
    definitions = part.program.definitions
    return tuple(definitions[name].relation for name in sorted(cycle_of(part.program)))
