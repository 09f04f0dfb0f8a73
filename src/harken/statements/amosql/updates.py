"""`set`, `add` and `remove`: finds the stored relation that holds a function's rows, and changes
it.

A stored function is its own target. A derived function has a target if its definition is one stored
function with columns renamed or fixed; then its rows are exactly rows of that function
(`employee.grossincome` is `income`). All others are rejected, with the reason.

Law: after `set f(a) = v`, the values of f(a) are exactly those of v; `add` and `remove` change at
most one row; a change that changes nothing is no event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harken.database.catalog import Catalog
from harken.engines.protocol import Engine
from harken.errors import SafetyFault, Span, ValueFault
from harken.ir.assemble import assemble
from harken.ir.clauses import Atom, Clause, literal_variables
from harken.ir.relations import Kind, Relation, is_extent
from harken.ir.schema import Function, FunctionKind
from harken.ir.terms import Constant, Parameter, Variable
from harken.planner.prepare import prepare
from harken.statements.records import refuse_deletion, refuse_rows
from harken.values.encoding import encode


@dataclass(frozen=True, slots=True)
class Target:
    """Where the rows of a function are stored: for each stored column a column of the function, or
    a fixed value."""

    function: Function
    relation: Relation
    columns: tuple[int | Constant, ...]

    @property
    def is_direct(self) -> bool:
        return self.columns == tuple(range(self.relation.arity))

    def row(self, given: Sequence[Any]) -> tuple[Any, ...]:
        """The stored row for a row of the function; both hold stored values."""
        if self.is_direct:
            return tuple(given)
        return tuple(
            given[column] if isinstance(column, int) else encode(column.value, column.type)
            for column in self.columns
        )

    @property
    def inputs_are_key(self) -> bool:
        """Whether the function's arguments and the fixed values include the key of the relation."""
        inputs = len(self.function.parameters)
        positions = {
            position
            for position, column in enumerate(self.columns)
            if isinstance(column, Constant) or column < inputs
        }
        return self.relation.key is not None and set(self.relation.key) == positions


def find_target(function: Function, catalog: Catalog, span: Span | None) -> Target:
    if function.system:
        raise _refused(function, "it belongs to the catalog", span)
    if function.kind is FunctionKind.STORED:
        assert function.relation is not None
        return Target(function, function.relation, tuple(range(function.relation.arity)))
    if function.kind is not FunctionKind.DERIVED:
        raise _refused(function, f"it is a {function.kind.value} function", span)
    assert function.relation is not None
    program = assemble(function.relation, (), catalog)
    plan = prepare(program, catalog.hierarchy, range(function.relation.inputs))
    definition = plan.program.definition(function.relation)
    if definition is None or len(definition.clauses) != 1:
        raise _refused(function, "it has several alternatives", span)
    return _map_columns(function, definition.clauses[0], span)


def _map_columns(function: Function, clause: Clause, span: Span | None) -> Target:
    atoms = [lit for lit in clause.body if isinstance(lit, Atom) and not lit.negated]
    others = [lit for lit in clause.body if lit not in atoms]
    bases = [atom for atom in atoms if not is_extent(atom.relation)]
    if others:
        raise _refused(function, "it computes its value or sets a condition", span)
    if len(bases) != 1:
        raise _refused(function, f"it combines {len(bases)} stored functions", span)
    base = bases[0]
    if base.relation.kind is not Kind.STORED:
        raise _refused(function, "its condition can hold in several ways", span)
    head = clause.head.terms
    if len(set(head)) != len(head) or not all(isinstance(term, Variable) for term in head):
        raise _refused(function, "its columns are not independent of each other", span)
    if sorted(map(str, literal_variables(base))) != sorted(map(str, head)):
        raise _refused(function, f"it hides a column of {base.relation.name}", span)
    columns = []
    for term in base.terms:
        if isinstance(term, Parameter):
            raise _refused(function, "it depends on a parameter", span)
        columns.append(term if isinstance(term, Constant) else head.index(term))
    return Target(function, base.relation, tuple(columns))


def _refused(function: Function, reason: str, span: Span | None) -> SafetyFault:
    return SafetyFault(
        f"{function.id} cannot be updated: {reason}",
        code="not-updatable",
        span=span,
        hint="update the stored functions it is made of",
    )


def apply(
    engine: Engine,
    verb: str,
    target: Target,
    arguments: tuple[Any, ...],
    values: list[tuple[Any, ...]],
) -> None:
    """Change the stored rows of f(arguments); all values are stored values."""
    refuse_deletion(target.function)
    if verb != "remove" and values:
        refuse_rows(target.function)
    match verb:
        case "set":
            _set(engine, target, arguments, values)
        case "add":
            for value in values:
                _add(engine, target, (*arguments, *value))
        case "remove":
            for value in values:
                _remove(engine, target, target.row((*arguments, *value)))


def _set(
    engine: Engine,
    target: Target,
    arguments: tuple[Any, ...],
    values: list[tuple[Any, ...]],
) -> None:
    if len(values) == 1 and target.inputs_are_key:
        engine.set_row(target.relation, target.row((*arguments, *values[0])))
        return
    if target.inputs_are_key and len(set(values)) > 1:
        raise ValueFault(
            f"{target.function.name} holds one value for each argument, but this gives "
            f"{len(set(values))}",
            code="many-values",
            hint="declare it `-> set of` or `-> bag of`, or use an aggregate",
        )
    wanted = [target.row((*arguments, *value)) for value in values]
    if target.relation.is_set:
        wanted = list(dict.fromkeys(wanted))
    for row in _current(engine, target, arguments):
        if row in wanted:
            wanted.remove(row)
        else:
            engine.remove_row(target.relation, row)
    for row in wanted:
        engine.set_row(target.relation, row)


def _current(engine: Engine, target: Target, arguments: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The present stored rows of f(arguments)."""
    known = {
        position: arguments[column]
        if isinstance(column, int)
        else encode(column.value, column.type)
        for position, column in enumerate(target.columns)
        if isinstance(column, Constant) or column < len(arguments)
    }
    return engine.matching(target.relation, known)


def _remove(engine: Engine, target: Target, stored: tuple[Any, ...]) -> None:
    """Remove one copy from a bag; from a set that is stored as a bag, every copy."""
    engine.remove_row(target.relation, stored)
    if not target.relation.is_set and not target.function.bag:
        while engine.contains(target.relation, stored):
            engine.remove_row(target.relation, stored)


def _add(engine: Engine, target: Target, row: tuple[Any, ...]) -> None:
    stored = target.row(row)
    relation = target.relation
    if relation.key is None:
        if target.function.bag or not engine.contains(relation, stored):
            engine.insert_many(relation, [stored])
        return
    known = {position: stored[position] for position in relation.key}
    present = engine.matching(relation, known)
    if present and present[0] != stored:
        raise ValueFault(
            f"{target.function.name} already has a value for this argument, and holds only one",
            code="many-values",
            hint="use `set` to replace it, or declare the function `-> set of` or `-> bag of`",
        )
    if not present:
        engine.set_row(relation, stored)
