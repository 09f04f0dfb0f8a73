"""Kept totals: an aggregate whose value for each group is stored, and follows its members.

    R = sum(V : members(G, V))      becomes      R = sum(V : totals(G, V))

where totals(G, V) is a stored relation with one row for each group that has members. Where all
aggregates of the groups of GROUP BY are kept, the groups themselves are read from there:

    groups(G) ∧ R = sum(V : members(G, V))      becomes      totals(G, R)

A change of the members is a bag of weighted rows (`bags`), so the new total of a group follows from
the old one and the change alone: counts and exact sums are added to, and for min and max the values
of a group are counted, so that the next one is there when the extreme one goes. Sums of
floating-point numbers are not kept: what is added and taken away again would leave a trace.

Law: the rewritten program has the same rows as the one it was made from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from harken.calculus.affected import group_columns
from harken.calculus.counting import Derivations
from harken.calculus.first_rows import FirstRows, first_rows, reading
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Definition,
    Literal,
    Program,
    stored_relations,
)
from harken.ir.relations import Column, Kind, Relation, Role
from harken.ir.safety import Needs
from harken.ir.strata import reachable
from harken.ir.terms import Variable
from harken.values.types import INTEGER, Type, is_decimal

OVER_TOTALS = {
    "count": "sum",
    "sum": "sum",
    "avg": "min",
    "min": "min",
    "max": "max",
    "some": "some",
    "notany": "notany",
}
"""The aggregate over the at most one total of a group; over none of them it gives what the original
gives over no members."""
DIRECT = frozenset({"count", "sum", "avg", "min", "max"})
"""Aggregates whose value is the total."""
EXTREMES = frozenset({"min", "max"})
ADDED = DIRECT - EXTREMES
"""Aggregates that follow from how many members a group has, and from their sums."""


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate, and the column of the members that it is taken of, if it is of one."""

    aggregate: str
    value: int | None

    @property
    def name(self) -> str:
        return self.aggregate if self.value is None else f"{self.aggregate} {self.value}"


@dataclass(frozen=True, slots=True)
class Totals:
    """The totals of aggregates over the same groups, of one unless all can be added up. `groups`
    are columns of the members; `present` is the one that a member counts by if it is not NULL."""

    relation: Relation
    measures: tuple[Measure, ...]
    members: Program
    groups: tuple[int, ...]
    present: int | None = None

    @property
    def counts_values(self) -> bool:
        """Are the values of a group counted one by one?"""
        return self.measures[0].aggregate in EXTREMES

    @property
    def is_added(self) -> bool:
        """Do they follow from counts and sums?"""
        return all(each.aggregate in ADDED for each in self.measures)

    @property
    def values(self) -> tuple[int, ...]:
        """The columns of the members that are aggregated."""
        found = {each.value for each in self.measures if each.value is not None}
        return tuple(sorted(found))


Summary: TypeAlias = Totals | FirstRows | Derivations


def with_totals(program: Program, needs: Needs) -> tuple[Program, tuple[Summary, ...]]:
    """The program reading kept totals and first rows where it can, and those that it reads.

    What lies below nodes reads the same totals as the nodes do: where a node is looked at as a
    whole, it is there already.
    """
    found: dict[str, Summary] = {}
    definitions = dict(program.definitions)
    for name in program.definitions:
        definition = program.definitions[name]
        if definition.first is not None:  # found by their order, not by counting those before
            firsts = first_rows(definition, program, needs)
            if firsts is not None:
                found[firsts.relation.id] = firsts
                definitions[name] = reading(definition, firsts)
            continue
        clauses = []
        for clause in definition.clauses:
            body: list[Literal] = []
            kept = {
                position: totals
                for position, literal in enumerate(clause.body)
                if (totals := totals_of(literal, program, needs)) is not None
            }
            listed = _listed(clause, kept, program)
            kept |= {position: each for position, (_, each) in listed.items()}
            for position, literal in enumerate(clause.body):
                if position in listed:
                    body.append(listed[position][0])
                elif position in kept:
                    assert isinstance(literal, Aggregation)
                    reader = _reader(kept[position])
                    definitions[reader.relation.id] = reader
                    body.append(_reading(literal, kept[position], reader.relation))
                else:
                    body.append(literal)
            found |= {each.relation.id: each for each in kept.values()}
            clauses.append(Clause(clause.head, tuple(body)))
        definitions[name] = replace(definition, clauses=tuple(clauses))
    rewritten = Program(program.goal, reachable(program.goal, definitions))
    # What stands only among the members of other totals is not read any more.
    read = stored_relations(rewritten)
    return rewritten, tuple(each for name, each in found.items() if name in read)


def totals_of(literal: Literal, program: Program, needs: Needs) -> Totals | None:
    """The totals that could be kept for an aggregate; None if they cannot."""
    if not isinstance(literal, Aggregation) or literal.atom.relation.id not in program.definitions:
        return None
    if literal.aggregate not in OVER_TOTALS:
        return None
    members = literal.atom.relation
    inside = _private(literal)
    if needs.get(members.id) or len(set(inside)) < len(inside):
        return None
    value = None
    if literal.value is not None and literal.aggregate not in ("count", "some", "notany"):
        value = literal.atom.terms.index(literal.value)
        adds = literal.aggregate in ("sum", "avg")
        type_ = members.columns[value].type
        if adds and type_ != INTEGER and not (is_decimal(type_) and literal.aggregate == "sum"):
            return None
    groups = group_columns(literal)
    if any(members.columns[i].type.nullable for i in groups):
        return None  # the tables of totals are keyed by the groups, and NULL is no key in SQLite
    present = None if literal.value is None else literal.atom.terms.index(literal.value)
    if present is not None and not members.columns[present].type.nullable:
        present = None
    own = Program(members, reachable(members, program.definitions))
    measure = Measure(literal.aggregate, value)
    return _totals(own, groups, (measure,), (literal.result.type,), present)


def _totals(
    members: Program,
    groups: tuple[int, ...],
    measures: tuple[Measure, ...],
    types: tuple[Type, ...],
    present: int | None = None,
) -> Totals:
    columns = tuple(Column(f"g{i}", members.goal.columns[i].type) for i in groups)
    totals = tuple(
        Column("total" if len(types) == 1 else f"total{i}", type_) for i, type_ in enumerate(types)
    )
    named = "+".join(each.name for each in measures)
    if present is not None:
        named = f"{measures[0].aggregate} {present}"
    relation = Relation(
        name=f"{named} of {members.goal.id} by {','.join(map(str, groups))}",
        columns=(*columns, *totals),
        inputs=len(columns),
        kind=Kind.STORED,
        key=tuple(range(len(columns))),
        past=True,
        role=Role.KEPT,
        of=members.goal,
    )
    return Totals(relation, measures, members, groups, present)


def _private(literal: Aggregation) -> list[Variable]:
    groups = set(literal.groups)
    return [
        term for term in literal.atom.terms if isinstance(term, Variable) and term not in groups
    ]


def _reader(totals: Totals) -> Definition:
    """An aggregate ranges over a derived relation: here it is another name for the totals."""
    name = f"kept {totals.relation.name}"
    relation = totals.relation.variant(Role.AUXILIARY, name, kind=Kind.DERIVED)
    terms = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(relation.columns))
    clause = Clause(Atom(relation, terms), (Atom(totals.relation, terms),))
    return Definition(relation, (clause,))


def _listed(
    clause: Clause, kept: Mapping[int, Totals], program: Program
) -> dict[int, tuple[Literal, Totals]]:
    """Groups and aggregates of each that are read together from totals, with these; by their places
    in the body.

    All aggregates of the groups must be kept, or they are computed with the groups anyway, and
    those that are read must have a total whatever the values of the members are.
    """
    found: dict[int, tuple[Literal, Totals]] = {}
    for place, groups in enumerate(clause.body):
        if not isinstance(groups, Atom) or groups.negated:
            continue
        definition = program.definitions.get(groups.relation.id)
        members = definition.groups if definition is not None else frozenset()
        over = {
            position: each
            for position, each in enumerate(clause.body)
            if isinstance(each, Aggregation) and each.atom.relation.id in members
        }
        if len(members) != 1 or not over.keys() <= kept.keys():
            continue
        direct = [
            position
            for position, each in over.items()
            if each.aggregate in DIRECT
            and kept[position].present is None
            and each.groups == groups.terms
        ]
        added = [position for position in direct if over[position].aggregate in ADDED]
        if direct:
            found |= _read_together(place, groups, added or direct[:1], kept, clause)
    return found


def _read_together(
    place: int,
    groups: Atom,
    positions: list[int],
    kept: Mapping[int, Totals],
    clause: Clause,
) -> dict[int, tuple[Literal, Totals]]:
    """The groups as an atom of the totals of all these aggregates, which are its last columns."""
    columns: dict[Measure, Type] = {}
    for position in positions:
        columns[kept[position].measures[0]] = kept[position].relation.columns[-1].type
    first = kept[positions[0]]
    totals = _totals(first.members, first.groups, tuple(columns), tuple(columns.values()))
    variables = {
        measure: Variable(f"TOTAL#{place}.{i}", type_)
        for i, (measure, type_) in enumerate(columns.items())
    }
    atom = Atom(totals.relation, (*groups.terms, *variables.values()), span=groups.span)
    found: dict[int, tuple[Literal, Totals]] = {place: (atom, totals)}
    for position in positions:
        literal = clause.body[position]
        assert isinstance(literal, Aggregation)
        total = variables[kept[position].measures[0]]
        found[position] = Comparison("=", literal.result, total), totals
    return found


def _reading(literal: Aggregation, totals: Totals, reader: Relation) -> Aggregation:
    total = Variable("TOTAL#", reader.columns[-1].type)
    groups = tuple(literal.atom.terms[i] for i in totals.groups)
    return replace(
        literal,
        aggregate=OVER_TOTALS[literal.aggregate],
        value=None if literal.aggregate in ("some", "notany") else total,
        atom=Atom(reader, (*groups, total), span=literal.atom.span),
    )
