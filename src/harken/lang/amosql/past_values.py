"""`old(e)`: the value of an expression when the transaction, or the statement, began; and
`delta_plus(f)`, `delta_minus(f)`: the rows that a function gained and lost since then.

    quantity(i) < old(quantity(i))
    for each item i, integer q where delta_plus(quantity) = <i, q>

All calls inside `old` are of that time: `old(threshold(i))` follows the suppliers that an item had.
A user's function of one of these names comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harken.errors import SafetyFault, TypeFault, counted
from harken.ir.clauses import Atom, Literal
from harken.ir.past_relations import in_the_past, net_change
from harken.ir.schema import example
from harken.ir.terms import Term
from harken.lang.amosql import syntax
from harken.lang.amosql.overload_resolution import unknown_function
from harken.lang.amosql.scope import Scope

if TYPE_CHECKING:
    from harken.ir.schema import Function
    from harken.lang.amosql.translate import Translator

Values = tuple[list[Literal], tuple[Term, ...]]


def find(
    translator: Translator, node: syntax.Call
) -> Callable[[Translator, syntax.Call, Scope], Values] | None:
    """What translates a call of one of these, unless the user has a function of that name."""
    made = NAMED.get(node.function)
    if made is None or node.qualifier or translator.draft.schema.overloads(node.function):
        return None
    if len(node.arguments) != 1:
        what = "an expression" if node.function == "old" else "the name of a function"
        raise TypeFault(
            f"{node.function} takes {what}, not {counted(len(node.arguments), 'argument')}",
            code="arity",
            span=node.span,
            hint=EXAMPLES[node.function],
        )
    translator.draft.called.add(node.function)
    return made


def _old(translator: Translator, node: syntax.Call, scope: Scope) -> Values:
    literals, terms = translator.value(node.arguments[0], scope)
    return [in_the_past(each) for each in literals], terms


def _plus(translator: Translator, node: syntax.Call, scope: Scope) -> Values:
    return _net_change(translator, node, 1)


def _minus(translator: Translator, node: syntax.Call, scope: Scope) -> Values:
    return _net_change(translator, node, -1)


def _net_change(translator: Translator, node: syntax.Call, sign: int) -> Values:
    function = _function(translator, node)
    translator.draft.called.add(function.name)
    if function.relation is None:
        raise SafetyFault(
            f"{function.name} has effects and no rows, so it has no changes",
            code="side-effect",
            span=node.span,
            hint="name a stored or a derived function",
        )
    change = net_change(function.relation, sign)
    terms = tuple(translator.draft.fresh(column.type) for column in change.columns)
    return [Atom(change, terms, span=node.span)], terms


def _function(translator: Translator, node: syntax.Call) -> Function:
    match node.arguments[0]:
        case syntax.Name(name=name):
            qualifier = ""
        case syntax.Literal(value=str() as text):
            qualifier, _, name = text.rpartition(".")
        case syntax.FunctionReference() as reference:
            return translator.function_named(reference)
        case _:
            raise TypeFault(
                f"the argument of {node.function} is the name of a function",
                code="type-mismatch",
                span=node.arguments[0].span,
                hint=EXAMPLES[node.function],
            )
    found = translator.draft.schema.overloads(name)
    if qualifier:
        found = tuple(f for f in found if f.parameters and f.parameters[0].type.name == qualifier)
    if not found:
        raise unknown_function(translator.draft.schema, name, node.span)
    if len(found) > 1:
        raise TypeFault(
            f"{name} means {' or '.join(sorted(f.id for f in found))}",
            code="ambiguous",
            span=node.span,
            hint=f"choose one: {node.function}(#'{example(found)}')",
        )
    return found[0]


NAMED = {"old": _old, "delta_plus": _plus, "delta_minus": _minus}
EXAMPLES = {
    "old": "for example old(quantity(i))",
    "delta_plus": "for example delta_plus(quantity)",
    "delta_minus": "for example delta_minus(quantity)",
}
