"""Rules over stored subexpressions: the memories of a discrimination network.

A memory holds the relation of a safe sub-conjunction of rule bodies: an alpha node if it is one
literal, a beta node if it is more. The bodies are rewritten to read memories in place of the
literals that they stand for, and memories read smaller ones. Two rules with the same subexpression
share one.

Law: the rewritten rule has the instances that the rule has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harken.calculus.rule_formulas import Formula, Occurrence, RuleFormulas, tests_within
from harken.ir.clauses import Atom, Clause, Definition, Literal, canonical, literal_variables
from harken.ir.productions import Firing, ProductionRule
from harken.ir.relations import Column, Kind, Relation, Role
from harken.ir.terms import Variable


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored subexpression: the relation that holds it, how it is defined, and its literals."""

    relation: Relation
    definition: Definition
    literals: frozenset[Occurrence]

    @property
    def columns(self) -> tuple[Variable, ...]:
        """The variables of the body that its columns hold."""
        (clause,) = self.definition.clauses
        return tuple(term for term in clause.head.terms if isinstance(term, Variable))

    def __str__(self) -> str:
        names = " ⋈ ".join(f"{o.sign}{o.name}" for o in sorted(self.literals, key=_name))
        return f"{self.relation.name} = {names}"


def _name(occurrence: Occurrence) -> tuple[bool, str]:
    return occurrence.negated, occurrence.name


@dataclass(frozen=True, slots=True)
class RuleWithMemories:
    """A rule whose bodies read memories; smaller memories come first."""

    rule: ProductionRule
    memories: tuple[Memory, ...]


def with_memories(
    rule: ProductionRule,
    alternatives: Sequence[RuleFormulas],
    wanted: Mapping[int, Sequence[Formula]],
) -> RuleWithMemories:
    """Store these subexpressions of each alternative of the rule, by its number."""
    needed = _needed_columns(rule)
    clauses, memories = [], dict[str, Memory]()
    for number, (clause, formulas) in enumerate(
        zip(rule.instances.clauses, alternatives, strict=True)
    ):
        own: list[Memory] = []
        for part in sorted(wanted.get(number, ()), key=lambda each: len(each.literals)):
            made = _memory(part, formulas.body, needed, own)
            if made is not None:
                own.append(made)
        memories |= {each.relation.id: each for each in own}
        body = _rewritten(formulas.body.literals, formulas.body.tests, own)
        clauses.append((clause, body))
    kept = [each for each in rule.columns if each in needed]
    relation = rule.instances.relation
    if len(kept) < len(rule.columns):
        columns = tuple(Column(f"c{i}", each.type) for i, each in enumerate(kept))
        relation = replace(relation, columns=columns)
    made_clauses = tuple(Clause(Atom(relation, tuple(kept)), body) for _, body in clauses)
    made_rule = replace(
        rule,
        instances=Definition(relation, made_clauses),
        variables=tuple(each for each in rule.variables if each in kept),
        computed=tuple(each for each in rule.computed if each in kept),
    )
    return RuleWithMemories(made_rule, tuple(memories.values()))


def _needed_columns(rule: ProductionRule) -> frozenset[Variable]:
    """All of an instance-oriented rule, which tells instances apart; those of the heads else, and
    one if there is none."""
    if rule.firing is Firing.INSTANCE or rule.calls:
        return frozenset(rule.columns)
    read = frozenset(t for head in rule.heads for t in head.terms if isinstance(t, Variable))
    return read or frozenset(rule.columns[:1])


def _memory(
    part: Formula, body: Formula, needed: frozenset[Variable], smaller: Sequence[Memory]
) -> Memory | None:
    """None for what has no variables that anyone reads."""
    outside = [each for each in body.literals if each not in part.literals]
    read = needed.union(
        *(each.variables for each in outside),
        *(literal_variables(each) for each in body.tests),
    )
    columns = [each for each in _in_order(part) if each in read]
    if not columns:
        return None
    tests = tests_within(Formula(part.literals, body.tests), part.variables)
    literals = _rewritten(part.literals, tests, smaller)
    shape = Relation(
        "memory",
        tuple(Column(f"c{i}", each.type) for i, each in enumerate(columns)),
        0,
        Kind.DERIVED,
        role=Role.PART,
    )
    clause = Clause(Atom(shape, tuple(columns)), literals)
    digest = hashlib.sha256(repr(canonical(clause)).encode()).hexdigest()[:12]
    view = replace(shape, name=f"memory of {digest}", role=Role.CONDITION)
    stored = replace(
        shape,
        name=digest,
        kind=Kind.STORED,
        role=Role.MEMORY,
        key=tuple(range(len(columns))),
    )
    definition = Definition(view, (replace(clause, head=Atom(view, tuple(columns))),))
    return Memory(stored, definition, frozenset(part.literals))


def _in_order(part: Formula) -> list[Variable]:
    found: dict[Variable, None] = {}
    for each in part.positive:
        found |= dict.fromkeys(t for t in each.terms if t in each.variables)
    return list(found)


def _rewritten(
    literals: Sequence[Occurrence], tests: Iterable[Literal], memories: Sequence[Memory]
) -> tuple[Literal, ...]:
    """The literals, as many of them as possible by memories that do not overlap."""
    left = set(literals)
    body: list[Literal] = []
    for memory in sorted(memories, key=lambda each: -len(each.literals)):
        if memory.literals <= left:
            left -= memory.literals
            body.append(Atom(memory.relation, memory.columns))
    for each in literals:
        if each in left:
            assert each.source is not None
            body.append(each.source)
    return (*body, *tests)
