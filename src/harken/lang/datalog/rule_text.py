"""Rules and types as text. Law: parsing the text gives the same rules.

The catalog keeps relations as text, and the rules of a component instance have no source text.
"""

from __future__ import annotations

from collections.abc import Iterable

from harken.lang.datalog import syntax
from harken.lang.datalog.expressions import FUNCTORS
from harken.lang.datalog.tokens import ESCAPES

_PREFIXES = {"negate": "-", "bnot": "bnot ", "lnot": "lnot "}


def write(statement: syntax.Rule | syntax.TypeDeclaration) -> str:
    if isinstance(statement, syntax.TypeDeclaration):
        sign = "<:" if statement.is_subtype else "="
        return f".type {statement.name} {sign} {' | '.join(statement.bases)}"
    heads = ", ".join(map(_formula, statement.heads))
    return f"{heads}." if statement.body is None else f"{heads} :- {_formula(statement.body)}."


def _formula(formula: syntax.Formula) -> str:
    match formula:
        case syntax.Atom():
            return f"{formula.name}{_arguments(formula.arguments)}"
        case syntax.Constraint(operator="match" | "contains"):
            return f"{formula.operator}{_arguments((formula.left, formula.right))}"
        case syntax.Constraint():
            return f"{_expression(formula.left)} {formula.operator} {_expression(formula.right)}"
        case syntax.Truth():
            return "true" if formula.value else "false"
        case syntax.Not():
            return f"!{_grouped(formula.part)}"
        case syntax.And():
            return ", ".join(map(_grouped, formula.parts))
        case syntax.Or():
            return "; ".join(map(_grouped, formula.parts))


def _grouped(formula: syntax.Formula) -> str:
    written = _formula(formula)
    return f"({written})" if isinstance(formula, syntax.And | syntax.Or) else written


def _expression(expression: syntax.Expression) -> str:
    match expression:
        case syntax.Named():
            return expression.name
        case syntax.Unnamed():
            return "_"
        case syntax.Number():
            return _number(expression)
        case syntax.Text():
            return f'"{"".join(_ESCAPED.get(each, each) for each in expression.value)}"'
        case syntax.Functor():
            return _functor(expression)
        case syntax.Cast():
            return f"as({_expression(expression.value)}, {expression.type})"
        case syntax.Aggregate():
            value = "" if expression.value is None else f" {_expression(expression.value)}"
            return f"{expression.name}{value} : {{ {_formula(expression.body)} }}"


_ESCAPED = {value: f"\\{letter}" for letter, value in ESCAPES.items()}


def _number(number: syntax.Number) -> str:
    digits = str(number.value)
    if number.form == "float" and "." not in digits:
        digits = digits.replace("e", ".0e")
    if number.form == "unsigned":
        digits += "u"
    return f"({digits})" if digits.startswith("-") else digits


def _functor(functor: syntax.Functor) -> str:
    """Operators are in parentheses, so that none binds more strongly than it did."""
    given = [_expression(each) for each in functor.arguments]
    if functor.name in _PREFIXES:
        return f"({_PREFIXES[functor.name]}{given[0]})"
    if functor.name in FUNCTORS:
        return f"{functor.name}{_arguments(functor.arguments)}"
    return f"({given[0]} {functor.name} {given[1]})"


def _arguments(given: Iterable[syntax.Expression]) -> str:
    return f"({', '.join(map(_expression, given))})"
