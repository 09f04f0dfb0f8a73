"""The bodies of production rules as conjunctions of literals, each occurrence with a name.

The analysis of Fabret, Regnier and Simon is about safe conjunctions in which a predicate occurs
once, which renaming achieves: the second D of a rule is D2. The formula of OT(r, l) is the body of
r and a literal that says that l would change something (section 5.1).

Comparisons and computations change nothing and are kept beside the literals. A literal over a
derived relation, or one under an aggregate, changes in any way when something below it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harken.ir.clauses import (
    Aggregation,
    Atom,
    Comparison,
    Computation,
    Definition,
    Literal,
    literal_variables,
)
from harken.ir.productions import HeadLiteral, ProductionRule
from harken.ir.relations import Kind, Relation
from harken.ir.terms import Constant, Term, Variable

Bases = Callable[[Relation], frozenset[str]]
"""The ids of the stored relations that a relation depends on; of a stored one its own."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A literal of a formula. `opaque` means that any change below it changes it in any way."""

    name: str
    relation: Relation
    terms: tuple[Term, ...]
    negated: bool
    opaque: bool = False
    local: frozenset[Variable] = frozenset()
    """Variables of this literal alone that stand for `_`."""
    source: Literal | None = field(default=None, compare=False, repr=False)

    @property
    def variables(self) -> frozenset[Variable]:
        found = {term for term in self.terms if isinstance(term, Variable)}
        return frozenset(found - self.local)

    @property
    def sign(self) -> str:
        return "¬" if self.negated else ""


@dataclass(frozen=True, slots=True)
class Formula:
    """A conjunction of literals, with the tests that go with it."""

    literals: tuple[Occurrence, ...]
    tests: tuple[Literal, ...] = ()

    @property
    def positive(self) -> tuple[Occurrence, ...]:
        return tuple(each for each in self.literals if not each.negated)

    @property
    def variables(self) -> frozenset[Variable]:
        return frozenset().union(*(each.variables for each in self.positive))

    def and_(self, *more: Occurrence) -> Formula:
        return Formula((*self.literals, *more), self.tests)

    def of(self, chosen: Iterable[Occurrence]) -> Formula:
        """The sub-formula of these literals, in the order of this one."""
        wanted = set(chosen)
        return Formula(tuple(each for each in self.literals if each in wanted), self.tests)


@dataclass(frozen=True, slots=True)
class TokenFormula:
    """The formula of OT(r, l): the body of r, and the literal that asks for a net change."""

    head: HeadLiteral
    formula: Formula
    target: Occurrence


@dataclass(frozen=True, slots=True)
class RuleFormulas:
    """One alternative of a rule's body, and the formulas of its output token relations."""

    rule: ProductionRule
    body: Formula
    tokens: tuple[TokenFormula, ...]


def formulas_of(rule: ProductionRule) -> tuple[RuleFormulas, ...]:
    """The formulas of each alternative. Occurrences are numbered over the body and the heads."""
    auxiliaries = {each.relation.id: each for each in rule.auxiliaries}
    found = []
    for clause in rule.instances.clauses:
        literals = [
            made
            for literal in clause.body
            if (made := _occurrence(literal, auxiliaries)) is not None
        ]
        tests = tuple(each for each in clause.body if _occurrence(each, auxiliaries) is None)
        targets = [
            Occurrence("", head.relation, head.terms, negated=not head.deletes)
            for head in rule.heads
        ]
        names = _names([*literals, *targets])
        named = [replace(o, name=n) for o, n in zip([*literals, *targets], names, strict=True)]
        body = Formula(tuple(named[: len(literals)]), tests)
        tokens = tuple(
            TokenFormula(head, body.and_(target), target)
            for head, target in zip(rule.heads, named[len(literals) :], strict=True)
        )
        found.append(RuleFormulas(rule, body, tokens))
    return tuple(found)


def _names(occurrences: Sequence[Occurrence]) -> list[str]:
    """A, or A1 and A2 where a predicate occurs twice."""
    total: dict[str, int] = {}
    for each in occurrences:
        total[each.relation.name] = total.get(each.relation.name, 0) + 1
    seen: dict[str, int] = {}
    found = []
    for each in occurrences:
        name = each.relation.name
        seen[name] = seen.get(name, 0) + 1
        found.append(name if total[name] == 1 else f"{name}{seen[name]}")
    return found


def _occurrence(literal: Literal, auxiliaries: Mapping[str, Definition]) -> Occurrence | None:
    match literal:
        case Atom(relation=relation) if relation.kind is Kind.FOREIGN:
            return None
        case Atom():
            projected = _projection(literal, auxiliaries)
            if projected is not None:
                return projected
            opaque = literal.relation.kind is Kind.DERIVED
            return Occurrence(
                "", literal.relation, literal.terms, literal.negated, opaque, source=literal
            )
        case Aggregation():
            terms = (literal.result, *literal.groups)
            relation = literal.atom.relation
            return Occurrence("", relation, terms, negated=False, opaque=True, source=literal)
    return None


def _projection(atom: Atom, auxiliaries: Mapping[str, Definition]) -> Occurrence | None:
    """`!d(x, _)` is translated as the negation of a projection; here it is one literal again."""
    made = auxiliaries.get(atom.relation.id)
    if made is None or len(made.clauses) != 1 or len(made.clauses[0].body) != 1:
        return None
    (inside,) = made.clauses[0].body
    if not isinstance(inside, Atom) or inside.negated or inside.relation.kind is not Kind.STORED:
        return None
    given = dict(zip(made.clauses[0].head.terms, atom.terms, strict=True))
    local = frozenset(t for t in inside.terms if isinstance(t, Variable) and t not in given)
    terms = tuple(given.get(term, term) for term in inside.terms)
    return Occurrence("", inside.relation, terms, atom.negated, local=local, source=atom)


def tests_within(formula: Formula, bound: frozenset[Variable]) -> tuple[Literal, ...]:
    """The tests of a formula that can be made where these variables have values."""
    known, found = set(bound), list[Literal]()
    waiting = list(formula.tests)
    while True:
        ready = [each for each in waiting if _needed(each) <= known]
        if not ready:
            return tuple(each for each in formula.tests if each in found)
        for each in ready:
            waiting.remove(each)
            found.append(each)
            known.update(literal_variables(each))


def _needed(literal: Literal) -> set[Variable]:
    match literal:
        case Computation():
            return {term for term in literal.arguments if isinstance(term, Variable)}
        case Comparison(operator="=", left=Variable(), right=Constant()):
            return set()
    return set(literal_variables(literal))


def bases_of(definitions: Mapping[str, Definition]) -> Bases:
    """What each relation depends on, by the definitions of a program."""
    known: dict[str, frozenset[str]] = {}

    def bases(relation: Relation) -> frozenset[str]:
        if relation.kind is not Kind.DERIVED:
            return frozenset({relation.id})
        if relation.id not in known:
            known[relation.id] = _reached(relation, definitions)
        return known[relation.id]

    return bases


def _reached(relation: Relation, definitions: Mapping[str, Definition]) -> frozenset[str]:
    found, seen, waiting = set[str](), {relation.id}, [relation]
    while waiting:
        definition = definitions.get(waiting.pop().id)
        for clause in definition.clauses if definition is not None else ():
            for literal in clause.body:
                if not isinstance(literal, Atom | Aggregation):
                    continue
                below = literal.relation if isinstance(literal, Atom) else literal.atom.relation
                if below.kind is not Kind.DERIVED:
                    found.add(below.id)
                elif below.id not in seen:
                    seen.add(below.id)
                    waiting.append(below)
    return frozenset(found)
