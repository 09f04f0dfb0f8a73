"""`tclose(f, x)`: everything reached from x by applying f once or more (thesis, section 8.5).

    tclose_f(X, Y) ← f(X, Y)
    tclose_f(X, Y) ← tclose_f(X, Z) ∧ f(Z, Y)

`tclose(f, x, n)` is f applied exactly n times. The first argument names the function: `parent`,
`"parent"` or `#'person.parent'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harken.errors import TypeFault, counted
from harken.ir.clauses import Atom, Clause, Comparison, Computation, Definition, Literal
from harken.ir.relations import Column, Kind, Relation, Role
from harken.ir.terms import Constant, Term, Variable
from harken.lang.amosql import syntax
from harken.lang.amosql.scope import Scope
from harken.values.types import INTEGER, Type

if TYPE_CHECKING:
    from harken.lang.amosql.translate import Translator

ONE = Constant(1, INTEGER)
ZERO = Constant(0, INTEGER)


def translate(
    translator: Translator, node: syntax.Call, scope: Scope
) -> tuple[list[Literal], tuple[Term, ...]]:
    if len(node.arguments) not in (2, 3):
        raise TypeFault(
            "tclose takes a function, an object and perhaps a count, not "
            f"{counted(len(node.arguments), 'argument')}",
            code="arity",
            span=node.span,
            hint="write tclose(f, x) or tclose(f, x, n)",
        )
    name, qualifier = _function_name(node.arguments[0])
    literals, start = translator.single(node.arguments[1], scope)
    step = _Step(translator, name, qualifier, node, start.type)
    if len(node.arguments) == 2:
        relation = _closure(step)
        given = translator.draft.coerce(start, relation.columns[0].type, literals, node.span)
        result = translator.draft.fresh(relation.columns[1].type)
        return [*literals, Atom(relation, (given, result), span=node.span)], (result,)
    more, count = translator.single(node.arguments[2], scope)
    if count.type != INTEGER or isinstance(count, Variable):
        raise TypeFault(
            "the count of tclose is an integer that is known before the query runs",
            code="type-mismatch",
            span=node.arguments[2].span,
            hint="give a number, an interface variable or a local variable",
        )
    relation = _power(step, count)
    given = translator.draft.coerce(start, relation.columns[0].type, literals, node.span)
    result = translator.draft.fresh(relation.columns[2].type)
    return [*literals, *more, Atom(relation, (given, count, result), span=node.span)], (result,)


def _function_name(node: syntax.Expression) -> tuple[str, str | None]:
    match node:
        case syntax.Name():
            return node.name, None
        case syntax.Literal(value=str() as text):
            qualifier, _, name = text.rpartition(".")
            return name, qualifier or None
        case syntax.FunctionReference():
            qualifier, _, name = node.name.rpartition(".")
            return name, qualifier or None
    raise TypeFault(
        "the first argument of tclose is the name of a function",
        code="type-mismatch",
        span=node.span,
        hint="for example tclose(parent, :x)",
    )


class _Step:
    """One application of the function: the literals of f(from, to)."""

    def __init__(
        self,
        translator: Translator,
        name: str,
        qualifier: str | None,
        node: syntax.Call,
        start: Type,
    ) -> None:
        self.translator = translator
        self.name = name
        self.qualifier = qualifier
        self.node = node
        origin = translator.draft.fresh(start)
        literals, result = self.apply(origin)
        if not translator.draft.schema.hierarchy.related(result.type, start):
            raise TypeFault(
                f"tclose needs a function from a type to the same type; {name} gives {result.type} "
                f"for {start}",
                code="type-mismatch",
                span=node.span,
                hint="for example parent(person) -> person",
            )
        self.origin = _column_of(origin, literals)
        self.result = result.type

    def apply(self, origin: Term) -> tuple[list[Literal], Term]:
        literals, results = self.translator.apply(
            self.name, (origin,), [], self.node.span, self.qualifier
        )
        if len(results) != 1:
            raise TypeFault(
                f"tclose needs a function with one result; {self.name} has {len(results)}",
                code="arity",
                span=self.node.span,
                hint="define a derived function that selects the one column",
            )
        return literals, results[0]


def _column_of(origin: Variable, literals: list[Literal]) -> Type:
    """The type of what the function really takes: the column its argument stands in."""
    for literal in literals:
        if isinstance(literal, Atom) and origin in literal.terms:
            return literal.relation.columns[literal.terms.index(origin)].type
    return origin.type


def _closure(step: _Step) -> Relation:
    translator = step.translator
    columns = (Column("from", step.origin), Column("to", step.result))
    relation = Relation(
        translator.draft.auxiliary_name(f"tclose_{step.name}"),
        columns,
        1,
        Kind.DERIVED,
        role=Role.PART,
    )
    start, middle = translator.draft.fresh(step.origin), translator.draft.fresh(step.result)
    first, reached = step.apply(start)
    again, further = step.apply(middle)
    clauses = (
        Clause(Atom(relation, (start, reached)), tuple(first)),
        Clause(
            Atom(relation, (start, further)),
            (Atom(relation, (start, middle), span=step.node.span), *again),
        ),
    )
    translator.draft.auxiliaries[relation.id] = Definition(relation, clauses)
    return relation


def _power(step: _Step, count: Term) -> Relation:
    """f applied 0, 1, ... `count` times; the count bounds the recursion, so cycles are no harm."""
    translator = step.translator
    common = translator.draft.schema.hierarchy.common(step.origin, step.result)
    assert common is not None, "the function leads from a type to a related one"
    columns = (Column("from", step.origin), Column("n", INTEGER), Column("to", common))
    relation = Relation(
        translator.draft.auxiliary_name(f"power_{step.name}"),
        columns,
        2,
        Kind.DERIVED,
        role=Role.PART,
    )
    start, middle = translator.draft.fresh(step.origin), translator.draft.fresh(common)
    before, now = translator.draft.fresh(INTEGER), translator.draft.fresh(INTEGER)
    first, reached = step.apply(start)
    again, further = step.apply(middle)
    clauses = [
        Clause(Atom(relation, (start, ONE, reached)), tuple(first)),
        Clause(
            Atom(relation, (start, now, further)),
            (
                Atom(relation, (start, before, middle), span=step.node.span),
                Comparison("<", before, count),
                Comparison(">=", before, ONE),
                *again,
                Computation(now, "+", (before, ONE)),
            ),
        ),
    ]
    if step.origin.surrogate:
        own = Atom(translator.draft.schema.extent(step.origin), (start,))
        clauses.append(Clause(Atom(relation, (start, ZERO, start)), (own,)))
    translator.draft.auxiliaries[relation.id] = Definition(relation, tuple(clauses))
    return relation
