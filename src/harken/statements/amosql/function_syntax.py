"""The definitions of functions, parsed from their texts."""

from __future__ import annotations

from harken.ir.schema import Function, FunctionKind
from harken.lang.amosql import syntax
from harken.lang.amosql.parser import parse_statement
from harken.values.types import BOOLEAN


def syntax_of(function: Function) -> syntax.CreateFunction:
    """The definition of a function, parsed again from its text."""
    node = parse_statement(function.text)
    if isinstance(node, syntax.CreateRule):
        return _part_of_rule(node, function)
    assert isinstance(node, syntax.CreateFunction)
    return node


def _part_of_rule(node: syntax.CreateRule, function: Function) -> syntax.CreateFunction:
    """The condition of a rule, or its action, as the definition of a function."""
    if function.kind is FunctionKind.PROCEDURE:
        parameters = (*node.parameters, *node.variables)
        return syntax.CreateFunction(
            function.name, parameters, (), False, node.action, span=node.span
        )
    items: tuple[syntax.Expression, ...] = tuple(
        syntax.Name(each.name or "", span=each.span) for each in node.variables
    ) or (syntax.Literal(True, span=node.span),)
    query = syntax.Query(items, node.variables, node.condition, span=node.span)
    types = [each.type for each in node.variables] or [BOOLEAN.name]
    results = tuple(syntax.Declaration(each, span=node.span) for each in types)
    return syntax.CreateFunction(
        function.name, node.parameters, results, False, query, span=node.span
    )


def as_statement_query(node: syntax.Expression) -> syntax.Query:
    return node if isinstance(node, syntax.Query) else syntax.Query((node,), span=node.span)
