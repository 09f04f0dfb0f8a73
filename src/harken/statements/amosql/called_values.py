"""The results of procedures as values inside the expressions of a statement.

    print(order(:e) + 1);      set f(:x) = next() * next();

The calls run before anything else of the statement: each once, from left to right, those among the
arguments of a call before the call. What they give is kept in local variables that no text can
name, and the expressions are evaluated in the state that the calls left.

A query has no effects: no call is taken out of one, nor out of an aggregate, which is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from harken.database.catalog import Catalog
from harken.database.evaluation import Frame
from harken.database.runtime import Runtime
from harken.errors import TypeFault, ValueFault
from harken.ir.operations import NAMED_AGGREGATES
from harken.ir.schema import Function
from harken.lang.amosql import syntax
from harken.lang.amosql.past_values import NAMED as PAST_VALUES
from harken.lang.amosql.scope import Local, Scope
from harken.lang.amosql.tree_walk import descendants
from harken.statements.amosql.steps import CallProcedure, CompiledStep
from harken.values.types import Type

NEVER_TAKEN_OUT = {*NAMED_AGGREGATES, *PAST_VALUES, "tclose"}
WITH_EXPRESSIONS = (
    syntax.ExpressionStatement
    | syntax.Update
    | syntax.Assign
    | syntax.CreateInstances
    | syntax.AddType
    | syntax.RemoveType
    | syntax.DeleteObjects
    | syntax.Print
    | syntax.If
    | syntax.Return
    | syntax.Activate
    | syntax.Deactivate
)

Compile = Callable[[syntax.Call, Scope], CallProcedure | None]


@dataclass(frozen=True, slots=True)
class CalledValue:
    """A call, and the variables that hold the one row that it must give."""

    call: CallProcedure
    names: tuple[str, ...]

    def run(self, runtime: Runtime, frame: Frame) -> None:
        rows = self.call.rows(runtime, frame)
        if len(rows) != 1:
            raise ValueFault(
                f"one value of {self.call.name} is needed here, but it gave {len(rows) or 'none'}",
                code="many-values" if rows else "no-value",
                hint="let the procedure `return` one value, and call it for one argument",
            )
        frame.locals.update(zip(self.names, rows[0], strict=True))


@dataclass(frozen=True, slots=True)
class AfterCalls:
    """A statement, and the calls that give the values in it."""

    calls: tuple[CalledValue, ...]
    step: CompiledStep

    def run(self, runtime: Runtime, frame: Frame) -> None:
        for call in self.calls:
            call.run(runtime, frame)
        self.step.run(runtime, frame)


class CalledValues:
    """Takes the calls out of statements, numbering them within one procedure."""

    def __init__(self, catalog: Catalog, compile_call: Compile) -> None:
        self._catalog = catalog
        self._compile = compile_call
        self._count = 0

    def taken_out(self, node: Any, scope: Scope) -> tuple[Any, tuple[CalledValue, ...]]:
        """The statement with variables for calls of procedures, and these calls in their order."""
        if not isinstance(node, WITH_EXPRESSIONS) or not self._has_calls(node):
            return node, ()
        calls: list[CalledValue] = []
        return self._inside(node, scope, calls), tuple(calls)

    def _has_calls(self, node: syntax.Node) -> bool:
        return any(
            self._is_procedure(found)
            for expression in _expressions(node)
            for found, _ in descendants(expression)
        )

    def _is_procedure(self, node: syntax.Node) -> bool:
        return isinstance(node, syntax.Call) and any(
            each.has_effects for each in self._catalog.overloads(node.function)
        )

    def _inside(self, node: Any, scope: Scope, calls: list[CalledValue]) -> Any:
        """The node with the calls below it taken out. A statement of its own calls its procedure
        itself, so that it may give several rows, or none."""
        own = _own_call(node)
        changes: dict[str, Any] = {}
        for field in fields(node):
            value = getattr(node, field.name)
            if value is own and own is not None:
                changes[field.name] = self._inside(value, scope, calls)
            elif isinstance(value, syntax.Expression | syntax.Instance):
                changes[field.name] = self._replaced(value, scope, calls)
            elif isinstance(value, tuple):
                changes[field.name] = tuple(
                    self._replaced(each, scope, calls)
                    if isinstance(each, syntax.Expression | syntax.Instance)
                    else each
                    for each in value
                )
        return replace(node, **changes)

    def _replaced(self, node: Any, scope: Scope, calls: list[CalledValue]) -> Any:
        if isinstance(node, syntax.Query):
            return node
        if isinstance(node, syntax.Call) and node.function in NEVER_TAKEN_OUT:
            return node
        inner = self._inside(node, scope, calls)
        if not self._is_procedure(inner):
            return inner
        call = self._compile(inner, scope)
        if call is None or not all(each.has_effects for each in call.candidates):
            return inner
        names = []
        for type_ in self._types(call.candidates, inner):
            self._count += 1
            name = f"{inner.function}() {self._count}"
            scope.names[name] = Local(name, type_)
            names.append(name)
        calls.append(CalledValue(call, tuple(names)))
        held = tuple(syntax.Name(name, span=node.span) for name in names)
        return held[0] if len(held) == 1 else syntax.Tuple(held, span=node.span)

    def _types(self, candidates: tuple[Function, ...], node: syntax.Call) -> list[Type]:
        """The types of what a call gives, whichever candidate it calls."""
        first, *rest = candidates
        types = [column.type for column in first.results]
        for other in rest:
            merged = [
                self._catalog.hierarchy.common(mine, column.type)
                for mine, column in zip(types, other.results, strict=False)
            ]
            if len(other.results) != len(types) or None in merged:
                raise TypeFault(
                    f"{first.id} and {other.id} give results of different types, and only the "
                    "object decides which one is called",
                    code="type-mismatch",
                    span=node.span,
                    hint="choose one with a dot, or give both the same result type",
                )
            types = [each for each in merged if each is not None]
        return types


def _expressions(node: syntax.Node) -> Iterator[syntax.Node]:
    """The expressions directly in a statement; not those of the statements in it."""
    for field in fields(node):
        value = getattr(node, field.name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, syntax.Expression | syntax.Instance):
                yield each


def _own_call(node: syntax.Node) -> syntax.Call | None:
    """The call that a statement makes itself, or whose value it sets."""
    match node:
        case (
            syntax.ExpressionStatement(expression=syntax.Call() as call)
            | syntax.Assign(value=syntax.Call() as call)
            | syntax.Return(value=syntax.Call() as call)
            | syntax.Update(target=call)
        ):
            return call
    return None
