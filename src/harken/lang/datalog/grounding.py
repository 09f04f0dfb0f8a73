"""Every variable has a value: from a positive atom, or from an equation with values on one side.

Law: a clause that passes has finitely many solutions over finite relations.
"""

from __future__ import annotations

from collections.abc import Iterable

from harken.errors import SafetyFault, Span, SyntaxFault
from harken.lang.datalog import syntax
from harken.lang.datalog.scopes import Scope


def check_grounded(scope: Scope, outer: Iterable[str] = ()) -> None:
    """SafetyFault for a variable without a value, SyntaxFault for a `_` that should have one."""
    grounded = _grounded(scope, set(outer))
    mentioned = syntax.direct_variables(scope.expressions)
    for name, span in mentioned.items():
        if name not in grounded:
            raise _ungrounded(name, span)
    _refuse_unnamed(scope)
    for aggregate in syntax.aggregates(scope.expressions):
        injected = scope.injected(aggregate)
        for name in injected:
            if name not in grounded:
                raise _ungrounded(name, syntax.deep_variables(aggregate)[name])
        check_grounded(scope.inner[id(aggregate)], injected)


def _grounded(scope: Scope, known: set[str]) -> set[str]:
    equations = []
    for literal in scope.conjunction:
        match literal:
            case syntax.Atom():
                values = map(syntax.without_cast, literal.arguments)
                known.update(each.name for each in values if isinstance(each, syntax.Named))
            case syntax.Constraint(operator="="):
                equations += [(literal.left, literal.right), (literal.right, literal.left)]
    size = -1
    while size != len(known):
        size = len(known)
        for written, other in equations:
            side = syntax.without_cast(written)
            if isinstance(side, syntax.Named) and _needs(other, scope) <= known:
                known.add(side.name)
    return known


def _needs(expression: syntax.Expression, scope: Scope) -> set[str]:
    """The variables that must have values before the expression has one."""
    inside = syntax.aggregates((expression,))
    direct = set(syntax.direct_variables((expression,)))
    return direct.union(*(scope.injected(aggregate) for aggregate in inside))


def _refuse_unnamed(scope: Scope) -> None:
    """`_` is an argument of an atom in a body, and nothing else."""
    allowed = {
        id(argument)
        for literal in scope.conjunction
        for atom in (literal.part if isinstance(literal, syntax.Not) else literal,)
        if isinstance(atom, syntax.Atom)
        for argument in atom.arguments
    }
    for expression in scope.expressions:
        for each in syntax.subexpressions(expression):
            if isinstance(each, syntax.Unnamed) and id(each) not in allowed:
                raise SyntaxFault(
                    "`_` has no value that could be used here",
                    span=each.span,
                    hint="give it a name, and let an atom of the body bind it",
                )


def _ungrounded(name: str, span: Span) -> SafetyFault:
    return SafetyFault(
        f"the variable {name} is not grounded: nothing gives it a value",
        code="unsafe",
        span=span,
        hint="let it be an argument of an atom that is not negated, or equal to something known",
    )
