"""Make a body smaller: solve equations, merge atoms that must be the same row, drop what holds
anyway.

Law: the simplified clause has the same answers, and if it is one of a bag, with the same
multiplicities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Computation,
    Literal,
    literal_terms,
    substitute_term,
)
from harken.ir.operations import AGGREGATES
from harken.ir.relations import Kind, Relation, is_extent
from harken.ir.terms import Constant, Term, Variable
from harken.ir.unify import unify
from harken.values.types import Hierarchy


def simplify(clause: Clause, hierarchy: Hierarchy) -> Clause | None:
    """The simplified clause, or None if its body can never hold."""
    head, body = clause.head.terms, clause.body
    while True:
        literals, solved = unify(body, hierarchy)
        head = tuple(substitute_term(term, solved) for term in head)
        merged = _merge(literals)
        if merged == literals:
            break
        body = merged
    kept = tuple(
        literal
        for position, literal in enumerate(literals)
        if not _is_implied(literal, position, literals, hierarchy)
    )
    if clause.head.relation.is_set:
        kept = _without_echoes(kept, head)
    decided = [_truth(literal) for literal in kept]
    if False in decided:
        return None
    remaining = without_unread_results(
        [literal for literal, truth in zip(kept, decided, strict=True) if truth is None], head
    )
    missing = _not_null(head, clause.head.relation, remaining)
    return Clause(replace(clause.head, terms=head), (*remaining, *missing))


def _not_null(
    head: Sequence[Term], relation: Relation, body: Sequence[Literal]
) -> Iterator[Literal]:
    """A variable of a column that has no NULL may be solved by one that may be NULL. Where nothing
    else says that it is not, as when the column was an argument, the head does."""
    for term, column in zip(head, relation.columns, strict=True):
        if isinstance(term, Variable) and term.type.nullable and not column.type.nullable:
            not_null = Comparison("!=", term, Constant(None, term.type))
            if not_null not in body and not any(_has_value(term, each) for each in body):
                yield not_null


def _has_value(variable: Variable, literal: Literal) -> bool:
    return (
        isinstance(literal, Atom)
        and not literal.negated
        and any(
            term == variable and not column.type.nullable
            for term, column in zip(literal.terms, literal.relation.columns, strict=True)
        )
    )


def _merge(body: Sequence[Literal]) -> tuple[Literal, ...]:
    """One pass: of two atoms with the same key, or two equal computations, keep the first and
    equate what they give."""
    kept: list[Literal] = []
    equations: list[Literal] = []
    # A view over a thousand others has a body of a thousand literals.
    alike: dict[tuple[str, ...], list[Literal]] = {}
    for literal in body:
        others = alike.setdefault(_likeness(literal), [])
        twin = next((other for other in others if _same_row(other, literal)), None)
        if twin is None:
            kept.append(literal)
            if not isinstance(literal, Comparison):
                others.append(literal)
        else:
            equations += _equations(twin, literal)
    return (*kept, *equations)


def _likeness(literal: Literal) -> tuple[str, ...]:
    """Equal for literals that may give the same row."""
    match literal:
        case Atom():
            return ("not" if literal.negated else "", literal.relation.id)
        case Computation():
            return (literal.operation,)
    return ()


def _without_echoes(body: tuple[Literal, ...], head: Sequence[Term]) -> tuple[Literal, ...]:
    """Of `group(I, G) ∧ group(J, G)`, where nothing else reads J, the second asks nothing new: it
    would only multiply what is found."""
    uses = Counter([*head, *(term for literal in body for term in _terms(literal))])
    kept = list(body)
    for literal in body:
        if isinstance(literal, Atom) and not literal.negated:
            others = (each for each in kept if each is not literal)
            if any(_echoes(literal, other, uses) for other in others):
                kept = [each for each in kept if each is not literal]
    return tuple(kept)


def without_unread_results(body: Sequence[Literal], head: Sequence[Term]) -> tuple[Literal, ...]:
    """What is computed and then read by nobody is not computed: a row stays the row that it is, and
    does not fail over a value that no one asked for."""
    kept = list(body)
    while True:
        uses = Counter([*head, *(term for literal in kept for term in _terms(literal))])
        read = [literal for literal in kept if not _is_unread(literal, uses)]
        if len(read) == len(kept):
            return tuple(kept)
        kept = read


def _is_unread(literal: Literal, uses: Counter[Term]) -> bool:
    if isinstance(literal, Aggregation):
        always = literal.or_null or AGGREGATES[literal.aggregate].on_nothing is not None
    else:
        always = isinstance(literal, Computation) and literal.operation != "ambiguous"
    return (
        always
        and isinstance(literal, Computation | Aggregation)
        and isinstance(literal.result, Variable)
        and uses[literal.result] == 1
    )


def _echoes(atom: Atom, other: Literal, uses: Counter[Term]) -> bool:
    return (
        isinstance(other, Atom)
        and not other.negated
        and other.relation == atom.relation
        and (atom.relation.kind is Kind.STORED or atom.relation.past)
        and all(
            mine == its or (isinstance(mine, Variable) and uses[mine] == 1)
            for mine, its in zip(atom.terms, other.terms, strict=True)
        )
    )


def _terms(literal: Literal) -> tuple[Term, ...]:
    inside = literal.atom.terms if isinstance(literal, Aggregation) else ()
    return (*literal_terms(literal), *inside)


def _same_row(one: Literal, other: Literal) -> bool:
    match one, other:
        case Atom(negated=False), Atom(negated=False):
            if one.relation != other.relation or not one.relation.is_set:
                return False
            if one.relation.kind is Kind.FOREIGN:
                return False
            key = one.relation.key
            positions = range(one.relation.arity) if key is None else key
            return all(one.terms[i] == other.terms[i] for i in positions)
        case Atom(negated=True), Atom(negated=True):
            return one == other
        case Computation(), Computation():
            same_type = one.result.type == other.result.type
            same = (one.operation, one.arguments) == (other.operation, other.arguments)
            return same_type and same
    return False


def _equations(one: Literal, other: Literal) -> list[Literal]:
    match one, other:
        case Atom(), Atom():
            pairs: list[tuple[Term, Term]] = list(zip(one.terms, other.terms, strict=True))
        case Computation(), Computation():
            pairs = [(one.result, other.result)]
        case _:
            return []
    return [Comparison("=", a, b, span=other.span) for a, b in pairs if a != b]


def _is_implied(
    literal: Literal, position: int, body: Sequence[Literal], hierarchy: Hierarchy
) -> bool:
    """An extent atom is implied by any other atom that confines its variable to the type."""
    if not isinstance(literal, Atom) or literal.negated or not is_extent(literal.relation):
        return False
    wanted = literal.relation.columns[0].type
    return any(
        other_position != position
        and isinstance(other, Atom)
        and not other.negated
        and other.relation.kind is not Kind.FOREIGN
        and not other.relation.past
        and any(
            term == literal.terms[0]
            and hierarchy.is_subtype(column.type, wanted)
            and (not is_extent(other.relation) or column.type != wanted)
            for term, column in zip(other.terms, other.relation.columns, strict=True)
        )
        for other_position, other in enumerate(body)
    )


def _truth(literal: Literal) -> bool | None:
    """Whether a comparison is decided by its text alone: None if it is not."""
    if not isinstance(literal, Comparison):
        return None
    left, right = literal.left, literal.right
    if left == right and (
        literal.operator == "=" or (literal.operator in ("<=", ">=") and not left.type.nullable)
    ):
        return True
    if left == right and literal.operator in ("!=", "<", ">"):
        return False
    if literal.operator in ("<", "<=", ">", ">=") and (_is_null(left) or _is_null(right)):
        return False
    if not (isinstance(left, Constant) and isinstance(right, Constant)):
        return None
    if literal.operator == "=":
        return left.value == right.value
    if literal.operator == "!=":
        return left.value != right.value
    return None


def _is_null(term: Term) -> bool:
    return isinstance(term, Constant) and term.value is None
