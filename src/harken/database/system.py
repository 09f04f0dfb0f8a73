"""The catalog's own relations, and the relations behind functions and rules.

Types, functions and rules are objects; `name(type)`, `arguments(function)` and the rest are stored
functions on them like any other, so queries over the schema need nothing special.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harken.ir.relations import Column, Kind, Relation, Role, Semantics
from harken.ir.schema import Function, FunctionKind
from harken.values.types import BOOLEAN, FUNCTION, INTEGER, OBJECT, RULE, TEXT, TYPE, Type

FIRST_USER_OID = 100
META = "harken_meta"


def _system(name: str, parameter: Type, *results: tuple[str, Type], many: bool = False) -> Relation:
    columns = (Column(parameter.name, parameter), *(Column(n, t) for n, t in results))
    key = tuple(range(len(columns))) if many else (0,)
    return Relation(name, columns, 1, Kind.STORED, Semantics.SET, key)


TYPE_NAME = _system("name", TYPE, ("name", TEXT))
SUPERTYPES = _system("supertypes", TYPE, ("supertype", TYPE), many=True)
FUNCTION_NAME = _system("name", FUNCTION, ("name", TEXT))
FUNCTION_KIND = _system("kind", FUNCTION, ("kind", TEXT))
RETURNS_BAG = _system("returns_bag", FUNCTION, ("bag", BOOLEAN))
SINGLE_VALUED = _system("single_valued", FUNCTION, ("single", BOOLEAN))
DEFINITION = _system("definition", FUNCTION, ("text", TEXT))
LANGUAGE = _system("language", FUNCTION, ("language", TEXT))
MATERIALIZED = _system("materialized", FUNCTION, ("materialized", BOOLEAN))
FACTS_OF = _system("facts_of", FUNCTION, ("relation", TEXT))
"""Has a value only for functions that hold the facts of a relation with rules."""
ARGUMENTS = _system(
    "arguments", FUNCTION, ("position", INTEGER), ("name", TEXT), ("type", TYPE), many=True
)
RESULTS = _system(
    "results", FUNCTION, ("position", INTEGER), ("name", TEXT), ("type", TYPE), many=True
)
CALLS = _system("calls", FUNCTION, ("name", TEXT), many=True)
MENTIONS = _system("mentions", FUNCTION, ("type", TYPE), many=True)
DECLARED_ORDER = _system(
    "declared_order", FUNCTION, ("position", INTEGER), ("column", INTEGER), many=True
)
"""The columns of a table in the order of declaration, where the key is not first."""
PROPERTY_OF = _system("property_of", FUNCTION, ("type", TYPE))
NULLABLE = _system("nullable", FUNCTION, ("position", INTEGER), many=True)
"""The columns that may be NULL; arguments and results are counted together from 0."""

RULE_NAME = _system("name", RULE, ("name", TEXT))
RULE_DEFINITION = _system("definition", RULE, ("text", TEXT))
RULE_ARGUMENTS = _system(
    "arguments", RULE, ("position", INTEGER), ("name", TEXT), ("type", TYPE), many=True
)
RULE_CALLS = _system("calls", RULE, ("name", TEXT), many=True)
RULE_MENTIONS = _system("mentions", RULE, ("type", TYPE), many=True)
FIRED = _system("fired", RULE, ("times", INTEGER))

SYSTEM_RELATIONS = (
    TYPE_NAME,
    SUPERTYPES,
    FUNCTION_NAME,
    FUNCTION_KIND,
    RETURNS_BAG,
    SINGLE_VALUED,
    DEFINITION,
    LANGUAGE,
    MATERIALIZED,
    FACTS_OF,
    DECLARED_ORDER,
    ARGUMENTS,
    RESULTS,
    CALLS,
    MENTIONS,
    PROPERTY_OF,
    NULLABLE,
    RULE_NAME,
    RULE_DEFINITION,
    RULE_ARGUMENTS,
    RULE_CALLS,
    RULE_MENTIONS,
    FIRED,
)

TYPES_OF = Relation(
    "typesof", (Column("object", OBJECT), Column("type", TYPE)), 1, Kind.DERIVED, Semantics.SET
)

ACTIVATED = Relation(
    "activated",
    (Column("rule", RULE), Column("priority", INTEGER), Column("sequence", INTEGER)),
    1,
    Kind.DERIVED,
)

GENERATED = (TYPES_OF, ACTIVATED)
"""Derived relations over the catalog, whose clauses follow the schema."""


def relation_of(function: Function, single_valued: bool | None = None) -> Relation:
    """The relation behind a stored, derived or foreign function. A stored function that is neither
    single-valued nor a bag holds a set of values for each argument; by default it is
    single-valued."""
    inputs = len(function.parameters)
    kind = Kind[function.kind.name]
    if single_valued is None:
        single_valued = kind is Kind.STORED
    key: tuple[int, ...] | None = None
    if single_valued and not function.bag:
        key = tuple(range(inputs))
    elif kind is Kind.STORED and not function.bag:
        key = tuple(range(inputs + len(function.results)))
    return Relation(
        name=function.name,
        columns=(*function.parameters, *function.results),
        inputs=inputs,
        kind=kind,
        semantics=Semantics.BAG if function.bag else Semantics.SET,
        key=key,
    )


def with_relation(function: Function, single_valued: bool) -> Function:
    if function.kind is FunctionKind.PROCEDURE:
        return function
    if function.system:
        known = {relation.id: relation for relation in (*SYSTEM_RELATIONS, *GENERATED)}
        return replace(function, relation=known[function.id])
    return replace(function, relation=relation_of(function, single_valued))


def system_functions() -> Iterator[Function]:
    for relation in (*SYSTEM_RELATIONS, *GENERATED):
        kind = FunctionKind.STORED if relation.kind is Kind.STORED else FunctionKind.DERIVED
        yield Function(
            name=relation.name,
            parameters=relation.columns[:1],
            results=relation.columns[1:],
            kind=kind,
            text="built in",
            system=True,
        )


def activations_relation(rule: str, parameters: tuple[Column, ...]) -> Relation:
    """The arguments for which a rule is active, with priority and order of activation."""
    inputs = len(parameters)
    return Relation(
        name=f"activations of {rule}",
        columns=(*parameters, Column("priority", INTEGER), Column("sequence", INTEGER)),
        inputs=inputs,
        kind=Kind.STORED,
        key=tuple(range(inputs)),
        role=Role.ACTIVATIONS,
    )


def activation_function(rule: str, parameters: tuple[Column, ...]) -> Function:
    """`r_activations()`; for a rule without parameters it is true while the rule is active."""
    results = parameters or (Column("active", BOOLEAN),)
    name = f"{rule}_activations"
    relation = Relation(name, results, 0, Kind.DERIVED)
    kind = FunctionKind.DERIVED
    return Function(name, (), results, kind, text="built in", relation=relation, system=True)


HAPPENINGS = Relation(
    "happenings",
    (Column("event", TEXT), Column("times", INTEGER)),
    1,
    Kind.STORED,
    key=(0,),
    role=Role.PREVIOUS,
)
"""How often each signal that rules wait for was raised, and each moment of theirs has come."""


def signal_key(name: str) -> str:
    return f"signal {name.lower()}"


def time_key(rule: str, number: int) -> str:
    """The key of an event of time, by its number among those of a rule."""
    return f"time {number} {rule}"


def rule_of_time(key: str) -> tuple[str, int]:
    """The rule, and the number of the event, that such a key is of."""
    _, number, rule = key.split(" ", 2)
    return rule, int(number)


def parameters_relation(label: str, types: Sequence[Type]) -> Relation:
    """The constants of all subscriptions that share a condition, keyed by the number of the
    subscription."""
    constants = (Column(f"constant_{i}", type_) for i, type_ in enumerate(types, start=1))
    columns = (Column("subscription", INTEGER), *constants)
    name = f"parameters of {label}"
    return Relation(name, columns, 1, Kind.STORED, key=(0,), role=Role.PARAMETERS)


def is_parameters(relation: Relation) -> bool:
    return relation.role is Role.PARAMETERS


def is_activations(relation: Relation) -> bool:
    return relation.role is Role.ACTIVATIONS
