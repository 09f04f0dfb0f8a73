"""Output token relations: the net change that firing a production rule would make.

Fabret, Regnier and Simon, section 5.1. For a set-oriented rule r and a literal l = (¬)P(x) of its
head, OT(r, l) holds the facts of P in effect(r, I) that are a net change of I(P) (definition 5.1):

    OT(r,  P) = { h : h ∈ effect(r),  ¬h ∉ effect(r),  h ∉ P }
    OT(r, ¬P) = { h : ¬h ∈ effect(r),  h ∉ effect(r),  h ∈ P }

Literals of a head with the same sign and predicate share one relation. The paper leaves out the
opposite effect: a head with P and ¬P needs an anti-join with it (definition 2.2). For an
instance-oriented rule a row of the body is firable if one of its own facts is a net change
(definition 5.2); a literal is opposed only by the facts of the same instance.

Where the body of a rule says already that a literal is a net change, nothing has to be tested.

Law: a rule is firable if and only if one of these relations is not empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from harken.ir.clauses import Atom, Clause, Comparison, Definition, Literal
from harken.ir.productions import HeadLiteral, ProductionRule, opposites
from harken.ir.relations import Kind, Relation, Role
from harken.ir.terms import Constant, Term, Variable


@dataclass(frozen=True, slots=True)
class OutputTokens:
    """The relation of what a set-oriented rule would insert into a relation, or delete from it."""

    relation: Relation
    deletes: bool
    definition: Definition
    effects: tuple[Definition, ...]


def output_tokens(rule: ProductionRule) -> tuple[OutputTokens, ...]:
    """OT(r, l) of a set-oriented rule, for each predicate and sign of its head."""
    effects = {
        (literal.relation.id, literal.deletes): _effect(rule, literal) for literal in rule.heads
    }
    found = []
    for (name, deletes), effect in effects.items():
        opposite = effects.get((name, not deletes)) if _may_cancel(rule, name) else None
        target = next(each.relation for each in rule.heads if each.relation.id == name)
        made = _made(rule, "OT", deletes, target)
        row = tuple(Variable(f"X{i}", c.type) for i, c in enumerate(target.columns))
        body: list[Literal] = [
            Atom(effect.relation, row),
            Atom(target, row, negated=not deletes),
        ]
        if opposite is not None:
            body.append(Atom(opposite.relation, row, negated=True))
        definition = Definition(made, (Clause(Atom(made, row), tuple(body)),))
        used = (effect,) if opposite is None else (effect, opposite)
        found.append(OutputTokens(target, deletes, definition, used))
    return tuple(found)


def firable_instances(rule: ProductionRule, written: ProductionRule | None = None) -> Definition:
    """The rows of an instance-oriented rule that are firable: OT(r, l) of all its literals. A rule
    that reads stored subexpressions was `written` with all its literals."""
    instances = rule.instances.relation
    goal = Relation(f"{rule.name} firable", instances.columns, 0, Kind.DERIVED, role=Role.CONDITION)
    row = rule.columns
    if any(_always_changes(literal, written or rule) for literal in rule.heads):
        return Definition(goal, (Clause(Atom(goal, row), (Atom(instances, row),)),))
    clauses = []
    for literal in rule.heads:
        change = Atom(literal.relation, literal.terms, negated=not literal.deletes)
        for apart in _apart(literal, rule):
            body = (Atom(instances, row), change, *apart)
            clauses.append(Clause(Atom(goal, row), body))
    return Definition(goal, tuple(clauses))


def _always_changes(literal: HeadLiteral, rule: ProductionRule) -> bool:
    """Whether the body says that a literal is a net change: it deletes a fact of the body, or
    inserts one that the body denies, and nothing in the head can take that back."""
    if any(may_meet(literal.terms, other.terms) for other in opposites(literal, rule.heads)):
        return False
    wanted = Atom(literal.relation, literal.terms, negated=not literal.deletes)
    return all(wanted in clause.body for clause in rule.instances.clauses)


def _may_cancel(rule: ProductionRule, name: str) -> bool:
    """Whether two instances of a rule may insert and delete the same fact of a relation."""
    of_relation = [each for each in rule.heads if each.relation.id == name]
    return any(
        may_meet(one.terms, other.terms)
        for one in of_relation
        for other in of_relation
        if one.deletes and not other.deletes
    )


def may_meet(one: Sequence[Term], other: Sequence[Term]) -> bool:
    """Whether a fact can match both: no constant of one contradicts one of the other, also where a
    variable is repeated. Variables of one and the other are different ones."""
    bound: dict[tuple[int, Variable], object] = {}
    for pair in zip(one, other, strict=True):
        values = []
        for side, term in enumerate(pair):
            if isinstance(term, Constant):
                values.append(term.value)
            elif isinstance(term, Variable) and (side, term) in bound:
                values.append(bound[side, term])  # type: ignore[arg-type]
        if len(values) == 2 and values[0] != values[1]:
            return False
        for side, term in enumerate(pair):
            if isinstance(term, Variable) and values:
                bound[side, term] = values[0]
    return True


def _apart(literal: HeadLiteral, rule: ProductionRule) -> Iterator[tuple[Literal, ...]]:
    """The ways in which no opposite literal of the instance is the same fact: each must differ in
    some column."""
    ways: list[list[Literal]] = []
    for other in opposites(literal, rule.heads):
        pairs = zip(literal.terms, other.terms, strict=True)
        ways.append([Comparison("!=", one, two) for one, two in pairs if one != two])
    for chosen in product(*ways):
        yield tuple(chosen)


def _effect(rule: ProductionRule, literal: HeadLiteral) -> Definition:
    """The facts of one predicate and sign in the effect of a rule."""
    same = [
        each
        for each in rule.heads
        if each.relation == literal.relation and each.deletes == literal.deletes
    ]
    made = _made(rule, "effect", literal.deletes, literal.relation)
    body = (Atom(rule.instances.relation, rule.columns),)
    return Definition(made, tuple(Clause(Atom(made, each.terms), body) for each in same))


def _made(rule: ProductionRule, what: str, deletes: bool, of: Relation) -> Relation:
    name = f"{what} {rule.name} {'¬' if deletes else ''}{of.name}"
    role = Role.CONDITION if what == "OT" else Role.PART
    return Relation(name, of.columns, 0, Kind.DERIVED, role=role)
