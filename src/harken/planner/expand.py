"""Expand derived relations into the clauses that mention them (thesis, section 4.2).

A body without derived atoms leaves the engine free to order its joins. A definition is expanded
if that keeps multiplicities: into a set always, into a bag only if it is itself a bag or makes no
duplicates. Recursive relations stay, and so does a disjunction that would multiply too far.

Law: the expanded program gives its goal the same rows with the same multiplicities.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from itertools import count

from harken.errors import SafetyFault
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    Literal,
    Program,
    atoms,
    clause_variables,
    substitute,
    substitute_term,
)
from harken.ir.dependencies import determined, is_duplicate_free
from harken.ir.relations import Relation
from harken.ir.safety import Needs
from harken.ir.strata import reachable, stratify
from harken.ir.terms import Term, Variable
from harken.planner.simplify import simplify
from harken.values.types import Hierarchy

CLAUSE_LIMIT = 32
"""A definition that would give its user more clauses than this is kept as a relation: SQL is
written out for each of them, wherever the relation occurs."""

COMPOUND_LIMIT = 400
"""So many alternatives are too many for one SELECT of any engine."""

FACT_LIMIT = 4
"""More rows than this that are written out stay a relation: joined with others of their kind, each
with each would be a clause."""

LOOSE_LIMIT = 4
"""A called set is reduced to a set after each call. An expanded one is reduced only at the very
end, and each variable that its head does not determine multiplies the rows in between. With more
such variables than this, it stays a relation."""


def expand(
    program: Program,
    hierarchy: Hierarchy,
    needs: Needs,
    kept: Collection[str] = (),
    limit: int = CLAUSE_LIMIT,
) -> Program:
    """Expand bottom-up, so what is expanded into a clause is itself already expanded.

    Relations that are `kept` stay as they are where others mention them; so does one that would
    give a definition more than `limit` clauses.
    """
    done: dict[str, Definition] = {}
    barred = set(kept)
    numbers = count(1 + _highest_number(program))
    asked = _only_asked(program)
    for stratum in stratify(program):
        if stratum.recursive:
            barred |= stratum.names
        for definition in stratum.definitions:
            name = definition.relation.id
            expander = _Expander(done, barred, hierarchy, needs, numbers, name in asked, limit)
            done[name] = expander.definition(definition)
    return Program(program.goal, reachable(program.goal, done))


def _only_asked(program: Program) -> frozenset[str]:
    """The relations that only occur negated: for each row it is asked whether they hold."""
    positive: set[str] = {program.goal.id}
    negative: set[str] = set()
    for definition in program.definitions.values():
        for clause in definition.clauses:
            for literal in clause.body:
                if isinstance(literal, Atom):
                    (negative if literal.negated else positive).add(literal.relation.id)
                elif isinstance(literal, Aggregation):
                    positive.add(literal.atom.relation.id)
    return frozenset(negative - positive)


_NUMBERED = re.compile(r"_G(\d+)x")


def _highest_number(program: Program) -> int:
    """The largest number among the variables that an earlier expansion made."""
    terms = (
        term
        for definition in program.definitions.values()
        for clause in definition.clauses
        for term in (
            *clause_variables(clause),
            *(term for atom in atoms(clause.body) for term in atom.terms),
        )
    )
    names = (_NUMBERED.fullmatch(term.name) for term in terms if isinstance(term, Variable))
    return max((int(name.group(1)) for name in names if name), default=0)


class _Expander:
    def __init__(
        self,
        done: dict[str, Definition],
        kept: set[str],
        hierarchy: Hierarchy,
        needs: Needs,
        numbers: count[int],
        asked: bool,
        limit: int,
    ) -> None:
        self.limit = limit
        self.done = done
        self.kept = kept
        self.hierarchy = hierarchy
        self.needs = needs
        self.numbers = numbers
        self.asked = asked

    def definition(self, definition: Definition) -> Definition:
        clauses: list[Clause] = []
        exclusive = definition.exclusive or len(definition.clauses) == 1
        share = max(1, self.limit // max(1, len(definition.clauses)))
        for clause in definition.clauses:
            expanded = self._clause(clause, definition.relation, share)
            if len(expanded) > 1 and not self._expansion_is_exclusive(clause):
                exclusive = False
            clauses += expanded
        return replace(definition, clauses=tuple(clauses), exclusive=exclusive)

    def _expansion_is_exclusive(self, clause: Clause) -> bool:
        """Expanding exclusive keyed definitions in a clause gives exclusive clauses."""
        several = [
            found
            for literal in clause.body
            if (found := self._expandable(literal, clause.head.relation)) is not None
            and len(found.clauses) != 1
        ]
        return all(d.exclusive for d in several) and is_duplicate_free(clause)

    def _clause(self, clause: Clause, owner: Relation, share: int) -> list[Clause]:
        bodies: list[tuple[Literal, ...]] = [()]
        loose = 0
        for literal in clause.body:
            found = self._expandable(literal, owner)
            if found is None or self._can_be_asked(literal, found, clause):
                bodies = [(*body, literal) for body in bodies]
                continue
            assert isinstance(literal, Atom)
            loose += _looseness(found)
            size = len(bodies) * len(found.clauses)
            if (size > share and len(found.clauses) > 1) or loose > LOOSE_LIMIT:
                if not self.needs.get(found.relation.id):
                    bodies = [(*body, literal) for body in bodies]
                    continue
                if size > COMPOUND_LIMIT:
                    raise _too_complex(literal)
            bodies = [
                (*body, *self._inlined(literal, inner))
                for body in bodies
                for inner in found.clauses
            ]
        simplified = (simplify(Clause(clause.head, body), self.hierarchy) for body in bodies)
        return [result for result in simplified if result is not None]

    def _can_be_asked(self, literal: Literal, found: Definition, clause: Clause) -> bool:
        """Can an old state be looked up as it is, by a value that the question brings?

        Expanded, each of several old states would double the clauses.
        """
        assert isinstance(literal, Atom)
        given = set(clause.head.terms)
        return (
            self.asked
            and literal.relation.past
            and found.exclusive
            and any(term in given or not isinstance(term, Variable) for term in literal.terms)
        )

    def _expandable(self, literal: Literal, owner: Relation) -> Definition | None:
        if not isinstance(literal, Atom) or literal.negated:
            return None
        if literal.relation.id in self.kept:
            return None
        found = self.done.get(literal.relation.id)
        if found is None or found.groups or found.first or found.numbered:
            return None
        if len(found.clauses) > FACT_LIMIT and all(map(_is_written_out, found.clauses)):
            return None
        if owner.is_set or not found.relation.is_set:
            return found
        exact = (len(found.clauses) == 1 or found.exclusive) and all(
            is_duplicate_free(clause) for clause in found.clauses
        )
        return found if exact else None

    def _inlined(self, atom: Atom, clause: Clause) -> list[Literal]:
        """The body of a clause, its variables renamed apart and its head equated to the atom."""
        mapping: dict[Variable, Term] = {
            variable: Variable(f"_G{next(self.numbers)}x", variable.type)
            for variable in sorted(clause_variables(clause), key=lambda v: v.name)
        }
        equations: list[Literal] = []
        seen: set[Variable] = set()
        for term, given in zip(clause.head.terms, atom.terms, strict=True):
            if isinstance(term, Variable) and term not in seen:
                seen.add(term)
                mapping[term] = given
            else:
                equations.append(Comparison("=", substitute_term(term, mapping), given))
        private = self._private(clause, mapping)
        body = [substitute(literal, {**mapping, **private}) for literal in clause.body]
        located = [_located(literal, atom) for literal in body]
        return [*located, *equations]

    def _private(self, clause: Clause, mapping: dict[Variable, Term]) -> dict[Variable, Term]:
        """New names for the variables that only an aggregate knows."""
        private: dict[Variable, Term] = {}
        for literal in clause.body:
            if isinstance(literal, Aggregation):
                for term in literal.atom.terms:
                    if isinstance(term, Variable) and term not in mapping:
                        name = f"_G{next(self.numbers)}x"
                        private.setdefault(term, Variable(name, term.type))
        return private


def _is_written_out(clause: Clause) -> bool:
    """Is it one row, of constants and what is computed of them?"""
    return all(isinstance(each, Computation) for each in clause.body)


def _too_complex(literal: Literal) -> SafetyFault:
    return SafetyFault(
        f"this has more than {COMPOUND_LIMIT} alternatives",
        code="too-complex",
        span=literal.span,
        hint="store an intermediate result in a function of its own",
    )


def _looseness(definition: Definition) -> int:
    """How many variables of its clauses the head leaves undetermined."""
    if not definition.relation.is_set:
        return 0
    return max((_loose_variables(clause) for clause in definition.clauses), default=0)


def _loose_variables(clause: Clause) -> int:
    head = [term for term in clause.head.terms if isinstance(term, Variable)]
    return len(clause_variables(clause) - determined(clause.body, head))


def _located(literal: Literal, atom: Atom) -> Literal:
    """Errors in an expanded body point at the call, which is in the text at hand."""
    return replace(literal, span=atom.span)
