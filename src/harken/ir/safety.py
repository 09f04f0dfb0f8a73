"""Safety: every clause can be evaluated from left to right in some order, binding as it goes.

A positive atom binds its variables, a computation binds its result once its arguments are bound,
an equation binds the free side. A negated literal, a comparison and the groups of an aggregate
bind nothing. `order` finds such an order or names the variable that nothing binds.

Law: a clause is safe for a set of bound head variables iff `order` succeeds for it, and the order
it gives is a correct evaluation order for any engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harken.errors import SafetyFault, Span
from harken.ir.clauses import (
    Aggregation,
    Atom,
    Clause,
    Comparison,
    Computation,
    Definition,
    Literal,
    Program,
    literal_variables,
)
from harken.ir.relations import Kind, Relation
from harken.ir.terms import Term, Variable, is_generated
from harken.values.types import INTEGER

Needs = Mapping[str, frozenset[int]]
"""For a derived relation that cannot be evaluated alone: the columns its caller must bind."""

INVERSES = {"+": ("-", "-"), "-": ("+", "-")}
"""`R = X + Y` solved for X and for Y; `R = X - Y` likewise (X = R + Y, Y = X - R)."""


def order(
    body: Iterable[Literal],
    bound: Iterable[Variable] = (),
    needs: Needs | None = None,
    solving: bool = True,
) -> tuple[Literal, ...]:
    """The body in an order in which each literal has what it needs; SafetyFault if there is none.

    Cheap tests come as early as they can, generators in the order in which they were written.
    Without `solving`, a computation is never turned round to bind one of its arguments.
    """
    known = set(bound)
    waiting = list(body)
    ordered: list[Literal] = []
    while waiting:
        chosen = _next(waiting, known, needs or {}, solving)
        if chosen is None:
            raise _unsafe(waiting, known)
        literal = solve(chosen, known)
        waiting.remove(chosen)
        ordered.append(literal)
        known.update(literal_variables(literal))
    return tuple(ordered)


def evaluable(
    body: Iterable[Literal], needs: Needs | None = None, bound: Iterable[Variable] = ()
) -> tuple[Literal, ...]:
    """As much of a body as can be evaluated, in an order in which it can."""
    known = set(bound)
    waiting = list(body)
    ordered: list[Literal] = []
    while (chosen := _next(waiting, known, needs or {})) is not None:
        waiting.remove(chosen)
        ordered.append(solve(chosen, known))
        known.update(literal_variables(ordered[-1]))
    return tuple(ordered)


def check_clause(
    clause: Clause, bound: Iterable[Variable] = (), needs: Needs | None = None
) -> None:
    """SafetyFault unless the body can be ordered and binds every variable of the head."""
    known = set(bound)
    for literal in order(clause.body, known, needs):
        known.update(literal_variables(literal))
    for term in clause.head.terms:
        if isinstance(term, Variable) and term not in known:
            raise unbound(term, clause.head.span)


def check_program(program: Program, given: Iterable[int] = ()) -> dict[str, frozenset[int]]:
    """SafetyFault unless the goal can be evaluated with its `given` columns bound.

    Returns the inputs that its relations require of their callers.
    """
    needs = required_inputs(program)
    allowed = frozenset(given)
    for name, definition in program.definitions.items():
        for clause in definition.clauses:
            needed = needs.get(name, frozenset())
            if name == program.goal.id:
                needed = needed & allowed
            bound = [clause.head.terms[i] for i in needed]
            check_clause(clause, [term for term in bound if isinstance(term, Variable)], needs)
    return needs


def required_inputs(program: Program) -> dict[str, frozenset[int]]:
    """The columns that each derived relation of the program needs bound by its caller.

    A column is needed if some clause cannot produce it: `tax(number n)` has nothing to range over.
    """
    needs: dict[str, frozenset[int]] = {}
    changed = True
    while changed:
        changed = False
        for name, definition in program.definitions.items():
            found = _needed_columns(definition, needs)
            if found != needs.get(name, frozenset()):
                needs[name] = found
                changed = True
    return {name: columns for name, columns in needs.items() if columns}


def _needed_columns(definition: Definition, needs: Needs) -> frozenset[int]:
    needed: set[int] = set(needs.get(definition.relation.id, ()))
    for clause in definition.clauses:
        needed |= _needed_by(clause, needed, needs)
    return frozenset(needed)


def _needed_by(clause: Clause, given: set[int], needs: Needs) -> set[int]:
    """Bind one column after the other, arguments first, until the clause produces the rest."""
    head = [(i, term) for i, term in enumerate(clause.head.terms) if isinstance(term, Variable)]
    bound = {term for position, term in head if position in given}
    needed = set(given)
    while True:
        known = _producible(clause, bound, needs)
        missing = [(i, term) for i, term in head if term not in known and term not in bound]
        if not missing:
            return needed
        position, term = missing[0]
        needed.add(position)
        bound.add(term)


def _producible(clause: Clause, bound: set[Variable], needs: Needs) -> set[Variable]:
    """What the part of the body that can run binds, given some variables.

    In whichever order it runs: what is ready stays so when more is known.
    """
    known = set(bound)
    waiting = list(clause.body)
    while True:
        later = []
        for literal in waiting:
            if ready(literal, known, needs):
                known.update(literal_variables(literal))
            else:
                later.append(literal)
        if len(later) in (0, len(waiting)):
            return known
        waiting = later


def solve(literal: Literal, known: set[Variable]) -> Literal:
    """A computation whose one unknown is an argument, turned round: `5 = X + 1` is `X = 5 - 1`."""
    if not isinstance(literal, Computation) or not _has_inverse(literal):
        return literal
    free = [i for i, term in enumerate(literal.arguments) if not is_bound(term, known)]
    if len(free) != 1 or not is_bound(literal.result, known):
        return literal
    left, right = literal.arguments
    unknown = literal.arguments[free[0]]
    inverse = INVERSES[literal.operation][free[0]]
    if literal.operation == "-" and free[0] == 1:
        given: tuple[Term, Term] = (left, literal.result)
    else:
        given = (literal.result, right if free[0] == 0 else left)
    return Computation(unknown, inverse, given, span=literal.span)


def is_bound(term: Term, known: set[Variable]) -> bool:
    return not isinstance(term, Variable) or term in known


def _next(
    waiting: list[Literal], known: set[Variable], needs: Needs, solving: bool = True
) -> Literal | None:
    """The first test that is ready, or else the first generator."""
    generator = None
    for literal in waiting:
        generates = _generates(literal)
        if (not generates or generator is None) and ready(literal, known, needs, solving):
            if not generates:
                return literal
            generator = literal
    return generator


def _generates(literal: Literal) -> bool:
    return isinstance(literal, Atom) and not literal.negated


def ready(literal: Literal, known: set[Variable], needs: Needs, solving: bool = True) -> bool:
    """Can the literal be evaluated, given the variables known so far?"""
    match literal:
        case Atom(negated=True):
            return all(is_bound(term, known) for term in literal.terms)
        case Atom():
            inputs = input_columns(literal.relation, needs)
            return all(is_bound(literal.terms[position], known) for position in inputs)
        case Comparison(operator="="):
            return is_bound(literal.left, known) or is_bound(literal.right, known)
        case Comparison():
            return is_bound(literal.left, known) and is_bound(literal.right, known)
        case Computation():
            return _computable(literal, known, solving)
        case Aggregation():
            inputs = input_columns(literal.atom.relation, needs)
            wanted = (*literal.groups, *(literal.atom.terms[i] for i in inputs))
            return all(is_bound(term, known) for term in wanted)


def _computable(literal: Computation, known: set[Variable], solving: bool) -> bool:
    free = [term for term in literal.arguments if not is_bound(term, known)]
    if not free:
        return True
    invertible = (
        solving
        and _has_inverse(literal)
        and all(term.type == INTEGER for term in (*literal.arguments, literal.result))
    )
    return len(free) == 1 and invertible and is_bound(literal.result, known)


def _has_inverse(literal: Computation) -> bool:
    """NULL is the sum of NULL and whatever you like."""
    return literal.operation in INVERSES and not literal.result.type.nullable


def input_columns(relation: Relation, needs: Needs) -> frozenset[int]:
    """The columns of a relation that must be bound before it can be evaluated."""
    if relation.kind is Kind.FOREIGN:
        return frozenset(range(relation.inputs))
    return needs.get(relation.id, frozenset())


def unbound(variable: Variable, span: Span | None = None) -> SafetyFault:
    return SafetyFault(
        f"nothing binds {_spoken(variable)}, so the answer could be infinite",
        code="unsafe",
        span=span,
        hint="give it a value from a stored function or a type, for example with `=`",
    )


def _unsafe(waiting: list[Literal], known: set[Variable]) -> SafetyFault:
    for literal in waiting:
        for variable in literal_variables(literal):
            if variable not in known:
                return unbound(variable, literal.span)
    return SafetyFault("this cannot be evaluated: nothing in it can come first", code="unsafe")


def _spoken(variable: Variable) -> str:
    if is_generated(variable):
        return f"a value of type {variable.type} in this expression"
    return f"{variable.name.lower()} ({variable.type})"
