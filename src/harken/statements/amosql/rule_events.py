"""The events of rules: from syntax to what the network watches.

All events are changes of relations. `created(t)` and `deleted(t)` are changes of the extent of t
together with that of all objects. An event of a bag counts copies: each is a row with its number.
Signals and moments of time are changes of `happenings`, which counts them.
"""

from __future__ import annotations

from harken.database.catalog import Catalog
from harken.database.shared_errors import cannot_be_watched
from harken.database.system import HAPPENINGS, signal_key, time_key
from harken.errors import SafetyFault, TypeFault
from harken.ir.assemble import assemble
from harken.ir.clauses import Aggregation, Atom, Clause, Definition, Literal, Program
from harken.ir.relations import (
    COPIES,
    Column,
    Kind,
    Relation,
    Role,
    Semantics,
    extent_relation,
)
from harken.ir.safety import required_inputs
from harken.ir.schema import Function
from harken.ir.terms import Constant, Variable
from harken.lang.amosql import syntax
from harken.lang.amosql.overload_resolution import unknown_type
from harken.maintenance.event_bindings import bindings, bindings_by_type
from harken.maintenance.watched import CompiledEvent
from harken.planner.expand import expand
from harken.planner.prepare import prepare
from harken.statements.statement_errors import not_one_to_watch
from harken.values.types import INTEGER, OBJECT, TEXT, Type

EVERYTHING = ((),)
"""The bindings of an event that concerns every tuple."""


def compile_event(
    event: syntax.Event, number: int, rule: str, condition: Program, catalog: Catalog
) -> CompiledEvent:
    if event.kind == "signal":
        return happening(signal_key(event.function), catalog)
    if not event.is_of_data:
        return happening(time_key(rule, number), catalog)
    type_ = _type_of(event, catalog)
    if type_ is not None:
        return _of_type(event.kind, type_, condition, catalog)
    return _of_function(event, condition, catalog)


def happening(key: str, catalog: Catalog) -> CompiledEvent:
    """A signal, or a moment that has come: it is counted under its key."""
    goal = Relation(
        "event", (Column("times", INTEGER),), 0, Kind.DERIVED, role=Role.CONDITION, of=HAPPENINGS
    )
    times = Variable("TIMES", INTEGER)
    clause = Clause(Atom(goal, (times,)), (Atom(HAPPENINGS, (Constant(key, TEXT), times)),))
    program = assemble(goal, [Definition(goal, (clause,))], catalog)
    return CompiledEvent("added", program, EVERYTHING)


def _type_of(event: syntax.Event, catalog: Catalog) -> Type | None:
    """The type that an event is about, unless it is about a function."""
    named = catalog.type_named(event.function)
    is_function = bool(catalog.overloads(event.function)) or event.qualifier is not None
    if event.kind in ("created", "deleted"):
        if named is None or not named.surrogate:
            raise _needs_type(event, is_function, catalog)
        return named
    return named if named is not None and named.surrogate and not is_function else None


def _needs_type(event: syntax.Event, is_function: bool, catalog: Catalog) -> TypeFault | Exception:
    if not is_function:
        return unknown_type(catalog, event.function, event.span)
    other = "added" if event.kind == "created" else "removed"
    return TypeFault(
        f"{event.kind} is an event of objects, but {event.function} is a function",
        code="type-mismatch",
        span=event.span,
        hint=f"name a type, or write {other}({event.function})",
    )


def _of_type(kind: str, type_: Type, condition: Program, catalog: Catalog) -> CompiledEvent:
    """`created` and `deleted` happen with objects that came or went altogether; `added` and
    `removed` also with those that only got or lost the type."""
    extent = extent_relation(type_)
    object_, column = Variable("X", type_), Column("object", type_)
    goal = Relation(
        f"event {type_.name}",
        (column, Column("of", INTEGER)),
        1,
        Kind.DERIVED,
        role=Role.CONDITION,
        of=extent,
    )
    every = Variable("X", OBJECT)
    of_type, of_all = (Constant(number, INTEGER) for number in (0, 1))
    clauses = [Clause(Atom(goal, (object_, of_type)), (Atom(extent, (object_,)),))]
    if kind in ("created", "deleted"):
        body = (Atom(extent_relation(OBJECT), (every,)),)
        clauses.append(Clause(Atom(goal, (every, of_all)), body))
        goal_columns = (Column("object", OBJECT), goal.columns[1])
        renamed = goal.variant(Role.CONDITION, f"{kind} {type_.name}", columns=goal_columns)
        clauses = [Clause(Atom(renamed, each.head.terms), each.body) for each in clauses]
        goal = renamed
    program = assemble(goal, [Definition(goal, tuple(clauses))], catalog)
    prepare(program, catalog.hierarchy)
    watched = Relation("objects", (column,), 1, Kind.STORED)
    bound = bindings_by_type(condition, watched, catalog.hierarchy)
    return CompiledEvent(kind, program, bound)


def _of_function(event: syntax.Event, condition: Program, catalog: Catalog) -> CompiledEvent:
    name = f"{event.qualifier}.{event.function}" if event.qualifier else event.function
    named = catalog.named(name)
    functions = [f for f in named if f.relation is not None]
    if len(functions) != 1:
        raise not_one_to_watch(name, named, event.span, catalog)
    watched = functions[0].relation
    assert watched is not None
    program = _rows_of(watched, functions[0], catalog)
    try:
        prepare(program, catalog.hierarchy)
    except SafetyFault as error:
        unlisted = error.code == "unsafe"
        raise cannot_be_watched(functions[0], event.span) if unlisted else error from error
    expanded = expand(program, catalog.hierarchy, required_inputs(program))
    return CompiledEvent(event.kind, expanded, bindings(condition, watched, catalog.hierarchy))


def _rows_of(watched: Relation, function: Function, catalog: Catalog) -> Program:
    """The rows of a function as a set: of a bag each copy, with its number."""
    terms = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(watched.columns))
    counts = not watched.is_set and function.bag
    goal = watched.variant(
        Role.CONDITION,
        f"event {watched.name}",
        columns=(*watched.columns, Column("copy", INTEGER)) if counts else watched.columns,
        kind=Kind.DERIVED,
        semantics=Semantics.SET,
        key=None,
    )
    if not counts:
        clause = Clause(Atom(goal, terms), (Atom(watched, terms),))
        return assemble(goal, [Definition(goal, (clause,))], catalog)
    rows = goal.variant(Role.PART, f"rows of {watched.name}", columns=watched.columns)
    copies = rows.variant(Role.PART, f"copies of {watched.name}", semantics=Semantics.BAG)
    number, copy = Variable("COPIES", INTEGER), Variable("COPY", INTEGER)
    body: tuple[Literal, ...] = (
        Atom(rows, terms),
        Aggregation(number, "count", None, Atom(copies, terms), terms),
        Atom(COPIES, (number, copy)),
    )
    own = [
        Definition(goal, (Clause(Atom(goal, (*terms, copy)), body),)),
        Definition(rows, (Clause(Atom(rows, terms), (Atom(watched, terms),)),)),
        Definition(copies, (Clause(Atom(copies, terms), (Atom(watched, terms),)),)),
    ]
    return assemble(goal, own, catalog)
