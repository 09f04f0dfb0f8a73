"""The cached catalog: types, functions and rules, read from the relations that hold them.

Law: reading the same relations gives the same cache; it knows nothing that is not stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from harken.database.system import (
    ARGUMENTS,
    CALLS,
    DECLARED_ORDER,
    DEFINITION,
    FACTS_OF,
    FIRST_USER_OID,
    FUNCTION_KIND,
    FUNCTION_NAME,
    LANGUAGE,
    MATERIALIZED,
    MENTIONS,
    NULLABLE,
    PROPERTY_OF,
    RESULTS,
    RETURNS_BAG,
    RULE_ARGUMENTS,
    RULE_CALLS,
    RULE_DEFINITION,
    RULE_MENTIONS,
    RULE_NAME,
    SINGLE_VALUED,
    SUPERTYPES,
    TYPE_NAME,
    activation_function,
    with_relation,
)
from harken.engines.protocol import Engine
from harken.ir.relations import Column, Relation
from harken.ir.schema import Function, FunctionKind
from harken.values.types import OBJECT, Hierarchy, Type, literal_type_named

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What the text of a function refers to, by name."""

    functions: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()

    def __or__(self, more: Dependencies) -> Dependencies:
        return Dependencies(self.functions | more.functions, self.types | more.types)


NO_DEPENDENCIES = Dependencies()


@dataclass(slots=True)
class Memory:
    """The schema by name."""

    hierarchy: Hierarchy = field(default_factory=lambda: Hierarchy({}))
    type_oids: dict[str, int] = field(default_factory=dict)
    functions: dict[str, dict[str, Function]] = field(default_factory=dict)
    dependencies: dict[str, Dependencies] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    rules: dict[str, tuple[int, str]] = field(default_factory=dict)
    rule_parameters: dict[str, tuple[Column, ...]] = field(default_factory=dict)
    rule_dependencies: dict[str, Dependencies] = field(default_factory=dict)
    activation_functions: dict[str, str] = field(default_factory=dict)

    def add_rule_parameters(self, rule: str, parameters: tuple[Column, ...]) -> None:
        """A rule has a function of its activations."""
        self.rule_parameters[rule] = parameters
        function = activation_function(rule, parameters)
        self.activation_functions[function.id] = rule
        self.functions.setdefault(function.name, {}).setdefault(function.id, function)

    def forget_rule(self, rule: str) -> None:
        """Everything but its name: its activations, and its condition and action as functions."""
        self.rule_dependencies.pop(rule, None)
        activations = activation_function(rule, self.rule_parameters.pop(rule))
        self.activation_functions.pop(activations.id, None)
        self.functions.pop(activations.name, None)
        made = [each for known in self.functions.values() for each in known.values()]
        for each in (each for each in made if each.of_rule == rule):
            self.functions.pop(each.name, None)
            self.dependencies.pop(each.id, None)


def read_memory(engine: Engine) -> Memory:
    """Raises KeyError, ValueError or TypeError if the relations contradict each other."""
    memory = Memory()
    names = _map(engine, TYPE_NAME)
    memory.type_oids = {name: oid for oid, name in names.items()}
    above: dict[str, list[str]] = {}
    for sub, sup in _all(engine, SUPERTYPES):
        above.setdefault(names[sub], []).append(names[sup])
    memory.hierarchy = Hierarchy(
        {
            name: tuple(sorted(above.get(name, ())))
            for name in sorted(memory.type_oids, key=memory.type_oids.__getitem__)
            if literal_type_named(name) is None and name != OBJECT.name
        }
    )
    types = {oid: _type(name) for oid, name in names.items()}
    _read_functions(engine, memory, types)
    _read_rules(engine, memory, types)
    return memory


def _read_rules(engine: Engine, memory: Memory, types: dict[int, Type]) -> None:
    texts = _map(engine, RULE_DEFINITION)
    parameters = _columns(_all(engine, RULE_ARGUMENTS), types)
    calls = _grouped(_all(engine, RULE_CALLS))
    mentions = _grouped(_all(engine, RULE_MENTIONS))
    for oid, name in sorted(_all(engine, RULE_NAME)):
        memory.rules[name] = (oid, texts[oid])
        memory.add_rule_parameters(name, parameters.get(oid, ()))
        memory.rule_dependencies[name] = Dependencies(
            frozenset(calls.get(oid, ())),
            frozenset(types[each].name for each in mentions.get(oid, ())),
        )


def _type(name: str) -> Type:
    return literal_type_named(name) or Type(name)


def _read_functions(engine: Engine, memory: Memory, types: dict[int, Type]) -> None:
    kinds = _map(engine, FUNCTION_KIND)
    bags = _map(engine, RETURNS_BAG)
    singles = _map(engine, SINGLE_VALUED)
    texts = _map(engine, DEFINITION)
    languages = _map(engine, LANGUAGE)
    materialized = _map(engine, MATERIALIZED)
    facts_of = _map(engine, FACTS_OF)
    order = _order(_all(engine, DECLARED_ORDER))
    parameters = _columns(_all(engine, ARGUMENTS), types)
    results = _columns(_all(engine, RESULTS), types)
    calls = _grouped(_all(engine, CALLS))
    mentions = _grouped(_all(engine, MENTIONS))
    owners = _map(engine, PROPERTY_OF)
    nullable = _grouped(_all(engine, NULLABLE))
    for oid, name in sorted(_all(engine, FUNCTION_NAME)):
        inputs = len(parameters.get(oid, ()))
        columns = tuple(
            replace(column, type=column.type.or_null(position in nullable.get(oid, ())))
            for position, column in enumerate((*parameters.get(oid, ()), *results.get(oid, ())))
        )
        function = Function(
            name=name,
            parameters=columns[:inputs],
            results=columns[inputs:],
            kind=FunctionKind(kinds[oid]),
            bag=bool(bags[oid]),
            oid=oid,
            text=texts[oid],
            system=oid < FIRST_USER_OID,
            language=languages[oid],
            materialized=bool(materialized[oid]),
            facts_of=facts_of.get(oid, ""),
            order=order.get(oid, ()),
        )
        function = with_relation(function, bool(singles[oid]))
        memory.functions.setdefault(name, {})[function.id] = function
        memory.dependencies[function.id] = Dependencies(
            frozenset(calls.get(oid, ())),
            frozenset(types[type_oid].name for type_oid in mentions.get(oid, ())),
        )
        if oid in owners:
            memory.properties[function.id] = types[owners[oid]].name


def _map(engine: Engine, relation: Relation) -> dict[int, Any]:
    """A relation of two columns as a dictionary."""
    return dict(_all(engine, relation))


def _all(engine: Engine, relation: Relation) -> Rows:
    return engine.rows(relation)


def _columns(rows: Rows, types: dict[int, Type]) -> dict[int, tuple[Column, ...]]:
    found: dict[int, tuple[Column, ...]] = {}
    for oid, _, name, type_oid in sorted(rows):
        found[oid] = (*found.get(oid, ()), Column(name, types[type_oid]))
    return found


def _order(rows: Rows) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for oid, _, column in sorted(rows):
        found[oid] = (*found.get(oid, ()), column)
    return found


def _grouped(rows: Rows) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for oid, value in rows:
        found.setdefault(oid, []).append(value)
    return found
