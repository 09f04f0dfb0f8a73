"""The catalog: types and functions, kept in the database as objects with stored functions.

`name(type)`, `supertypes(type)`, `arguments(function)` and the rest are ordinary relations, so
queries over the schema need nothing special. The catalog in memory is a cache of them, and is read
again after a rollback.

Law: for every user function the cache and the relations agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from harken.database.identity import home_of
from harken.database.schema_cache import NO_DEPENDENCIES, Dependencies, Memory, read_memory
from harken.database.system import (
    ACTIVATED,
    ARGUMENTS,
    CALLS,
    DECLARED_ORDER,
    DEFINITION,
    FACTS_OF,
    FIRED,
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
    SYSTEM_RELATIONS,
    TYPE_NAME,
    TYPES_OF,
    relation_of,
    system_functions,
    with_relation,
)
from harken.database.system_definitions import activated, activation_arguments, types_of
from harken.engines.protocol import Engine, damaged
from harken.ir.clauses import Definition
from harken.ir.relations import (
    Column,
    Relation,
    extent_relation,
)
from harken.ir.schema import Function, FunctionKind
from harken.values.types import (
    ALIASES,
    FUNCTION,
    LITERAL_TYPES,
    OBJECT,
    RULE,
    SYSTEM_TYPES,
    TYPE,
    Hierarchy,
    Type,
    is_decimal,
)

Compile = Callable[[Function], tuple[Definition, ...]]


class Catalog:
    """Implements `harken.ir.schema.Schema` over the relations above."""

    def __init__(self, engine: Engine, compile_function: Compile) -> None:
        self._engine = engine
        self._compile = compile_function
        self.home = home_of(engine.connection)
        """The database that object handles belong to."""
        self._memory = Memory()
        self._compiled: dict[str, tuple[Definition, ...]] = {}
        self._session: dict[str, Function] = {}
        """Python functions known to this session only, by id."""
        self._session_overloads: dict[str, dict[str, Function]] = {}
        """The same by name, then by id: names are looked up in every statement."""
        self._next_oid = FIRST_USER_OID
        self._saved_oid = FIRST_USER_OID
        self.hierarchy = Hierarchy({})
        self.version = 0
        self.epoch = 0
        """Increases with every change of the schema in memory; plans are cached per epoch."""
        self.translations: dict[tuple[str, str], Any] = {}
        """Compiled definitions, by owner and text. The language that compiled them knows whether
        they are still valid."""
        self.changed = False
        """Whether the open transaction has changed the schema."""
        self.when_reloaded: Callable[[], None] = lambda: None
        """Called whenever the schema was read again."""
        self.rule_function: Callable[[str], tuple[Function, Dependencies] | None] = lambda _: None
        """The function of that name that belongs to a rule."""

    # --- Schema ----------------------------------------------------------------------------

    def overloads(self, name: str) -> tuple[Function, ...]:
        stored = self._memory.functions.get(name, {})
        session = self._session_overloads.get(name)
        if not session:
            return tuple(stored.values()) or self._of_rule(name)
        return (*stored.values(), *(f for f in session.values() if f.id not in stored))

    def _of_rule(self, name: str) -> tuple[Function, ...]:
        if made := self.rule_function(name) if self._memory.rules else None:
            self._remember(*made)
        return made[:1] if made else ()

    def function_names(self) -> tuple[str, ...]:
        return (*self._memory.functions, *(f.name for f in self._session.values()))

    def type_named(self, name: str) -> Type | None:
        name = ALIASES.get(name, name)
        if name in LITERAL_TYPES:
            return LITERAL_TYPES[name]
        return Type(name) if name in self.hierarchy else None

    def type_names(self) -> tuple[str, ...]:
        return (*LITERAL_TYPES, *self.hierarchy)

    def extent(self, type_: Type) -> Relation:
        return extent_relation(type_)

    def definitions(self, relation: Relation) -> tuple[Definition, ...]:
        if relation == TYPES_OF:
            return (types_of(self.hierarchy, self.type_oid),)
        if relation == ACTIVATED:
            rules = {name: self.rule_parameters(name) for name in self.rules}
            return (activated({name: oid for name, (oid, _) in self.rules.items()}, rules),)
        if relation.id in self._memory.activation_functions:
            rule = self._memory.activation_functions[relation.id]
            return (activation_arguments(relation, rule, self.rule_parameters(rule)),)
        known = self._compiled.get(relation.id)
        if known is None:
            known = self._compile(self.function(relation.id))
            self._compiled[relation.id] = known
        return known

    def named(self, name: str) -> tuple[Function, ...]:
        """The functions that `name` or `type.name` refers to: user functions before built-in ones.
        A relation in an instance of a component has a dot in its name."""
        qualifier, _, plain = name.rpartition(".")
        found = self.overloads(plain)
        if qualifier:
            if whole := self.overloads(name):
                return whole
            return tuple(
                f for f in found if f.parameters and f.parameters[0].type.name == qualifier
            )
        return tuple(f for f in found if not f.system) or found

    # --- reading ---------------------------------------------------------------------------

    def function(self, function_id: str) -> Function:
        return self._stored(function_id) or self._session[function_id]

    def functions(self) -> Iterator[Function]:
        for overloads in self._memory.functions.values():
            yield from overloads.values()
        yield from self._session.values()

    def has_function(self, function_id: str) -> bool:
        return self._stored(function_id) is not None or function_id in self._session

    def _stored(self, function_id: str) -> Function | None:
        """The name ends at a parenthesis, and may hold others itself."""
        at = function_id.find("(")
        while at >= 0:
            found = self._memory.functions.get(function_id[:at], {}).get(function_id)
            if found is not None:
                return found
            at = function_id.find("(", at + 1)
        return None

    def stored_relations(self) -> Iterator[Relation]:
        for function in self.functions():
            if function.kind is FunctionKind.STORED and function.relation is not None:
                yield function.relation

    def type_oid(self, name: str) -> int:
        return self._memory.type_oids[name]

    def dependencies(self, function_id: str) -> Dependencies:
        return self._memory.dependencies.get(function_id, NO_DEPENDENCIES)

    def dependents(self, name: str) -> list[Function]:
        """The functions whose text calls a function of that name."""
        return [
            function
            for function in self.functions()
            if name in self.dependencies(function.id).functions
        ]

    @property
    def rules(self) -> dict[str, tuple[int, str]]:
        """The rules by name: the object that stands for each, and its text."""
        return self._memory.rules

    def rule_dependencies(self, name: str) -> Dependencies:
        return self._memory.rule_dependencies.get(name, NO_DEPENDENCIES)

    def rule_parameters(self, name: str) -> tuple[Column, ...]:
        return self._memory.rule_parameters[name]

    def rules_that_call(self, name: str) -> list[str]:
        known = self._memory.rule_dependencies.items()
        return [rule for rule, dependencies in known if name in dependencies.functions]

    def properties_of(self, type_name: str) -> list[Function]:
        """The functions declared by `create type ... properties`."""
        owners = self._memory.properties.items()
        return [self.function(function_id) for function_id, owner in owners if owner == type_name]

    def users_of_type(self, type_name: str) -> list[Function]:
        return [
            each
            for each in (each for each in self.functions() if not each.system)
            if type_name in self.dependencies(each.id).types
            or any(c.type.name == type_name for c in (*each.parameters, *each.results))
        ]

    def rules_that_mention(self, type_name: str) -> list[str]:
        return [each for each in self.rules if type_name in self.rule_dependencies(each).types]

    # --- loading ---------------------------------------------------------------------------

    def initialise(self) -> None:
        """Create the catalog's relations in a new database."""
        self._engine.numbers.create({"version": 0, "next_oid": FIRST_USER_OID})
        self._engine.create(extent_relation(OBJECT))
        self._engine.create(extent_relation(TYPE), (OBJECT.name,))
        self._engine.create(extent_relation(FUNCTION), (OBJECT.name,))
        self._engine.create(extent_relation(RULE), (OBJECT.name,))
        for relation in SYSTEM_RELATIONS:
            self._engine.create(relation)
        for oid, name in enumerate((*SYSTEM_TYPES, *LITERAL_TYPES), start=1):
            above = (OBJECT.name,) if name in SYSTEM_TYPES and name != OBJECT.name else ()
            self._write_type(oid, name, above)
        for number, function in enumerate(system_functions(), start=20):
            self._write_function(replace(function, oid=number), single_valued=False)

    def reload(self) -> None:
        """Read the catalog from its relations, all in one snapshot: another process may be changing
        the schema."""
        try:
            with self._engine.connection.snapshot():
                memory = read_memory(self._engine)
                version, next_oid = self._meta("version"), self._meta("next_oid")
        except (KeyError, ValueError, TypeError) as error:
            raise damaged("its catalog contradicts itself") from error
        self._memory = memory
        self.hierarchy = memory.hierarchy
        self._compiled.clear()
        self.version = version
        self._saved_oid = next_oid
        self._next_oid = max(self._next_oid, self._saved_oid)
        self.changed = False
        self.epoch += 1
        self.when_reloaded()

    def _meta(self, key: str) -> int:
        found = self._engine.numbers.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def is_stale(self) -> bool:
        """Whether another process changed the schema since it was read."""
        return self._meta("version") != self.version

    # --- changing --------------------------------------------------------------------------

    def allocate(self, how_many: int) -> int:
        """Reserve object numbers; returns the first."""
        first = self._next_oid
        self._next_oid += how_many
        return first

    def save_counter(self) -> None:
        """Called before a commit: a number once given to an object is never used again."""
        if self._next_oid != self._saved_oid:
            self._engine.numbers.raise_to("next_oid", self._next_oid)
            self._saved_oid = self._next_oid

    def refresh_counter(self) -> None:
        """Called at the start of a transaction: another process may have used numbers."""
        self._saved_oid = self._meta("next_oid")
        self._next_oid = max(self._next_oid, self._saved_oid)

    def touch(self) -> None:
        """The schema changed: drop everything compiled against the old one."""
        self.changed = True
        self.epoch += 1
        self._compiled.clear()
        self._write_version()

    def _write_version(self) -> None:
        self.version += 1
        self._engine.numbers.set("version", self.version)

    def add_type(self, name: str, supertypes: tuple[str, ...]) -> Type:
        oid = self.allocate(1)
        self._engine.create(extent_relation(Type(name)), supertypes)
        self._write_type(oid, name, supertypes)
        self._memory.type_oids[name] = oid
        self.hierarchy = Hierarchy({**self.hierarchy.supertypes, name: supertypes})
        self.touch()
        return Type(name)

    def remove_type(self, name: str) -> None:
        self._engine.drop(extent_relation(Type(name)))
        self._engine.remove_row(extent_relation(OBJECT), (self.type_oid(name),))
        del self._memory.type_oids[name]
        rest = {sub: sup for sub, sup in self.hierarchy.supertypes.items() if sub != name}
        self.hierarchy = Hierarchy(rest)
        self.touch()

    def add_function(
        self,
        function: Function,
        dependencies: Dependencies = NO_DEPENDENCIES,
        single_valued: bool | None = None,
        property_of: str | None = None,
    ) -> Function:
        """Store a function, replacing one with the same signature. Unless this says otherwise, a
        stored one has one value for each argument."""
        if known := self._stored(function.id):
            self._erase(known)
        function = replace(function, oid=self.allocate(1))
        function = self._write_function(function, single_valued, dependencies)
        if property_of is not None:
            self._engine.set_row(PROPERTY_OF, (function.oid, self.type_oid(property_of)))
            self._memory.properties[function.id] = property_of
        self._remember(function, dependencies)
        self.touch()
        return function

    def revise_function(self, function: Function, dependencies: Dependencies) -> None:
        """Give a function other columns; it remains the same object."""
        single = False if self.function(function.id).is_set_valued else None
        self._erase(self.function(function.id))
        self._remember(self._write_function(function, single, dependencies), dependencies)
        self.touch()

    def mark_single_valued(self, function: Function, single: bool) -> None:
        """Record whether the arguments of a derived function determine its results."""
        self._engine.set_row(SINGLE_VALUED, (function.oid, int(single)))
        changed = replace(function, relation=relation_of(function, single))
        self._memory.functions[function.name][function.id] = changed
        self.touch()

    def remove_function(self, function: Function) -> None:
        if self._stored(function.id) is None:
            self._remove_session_function(function)
            self.epoch += 1
            return
        # The table goes last: deleting an object looks at everything watched, and a screener may
        # still mention the table.
        self._erase(function)
        if function.kind is FunctionKind.STORED:
            assert function.relation is not None
            self._engine.drop(function.relation)
        self.touch()

    def add_rule(
        self,
        name: str,
        text: str,
        parameters: tuple[Column, ...],
        dependencies: Dependencies,
    ) -> int:
        oid = self.allocate(1)
        for extent in (extent_relation(OBJECT), extent_relation(RULE)):
            self._engine.set_row(extent, (oid,))
        self._engine.set_row(RULE_NAME, (oid, name))
        self._engine.set_row(RULE_DEFINITION, (oid, text))
        self._engine.set_row(FIRED, (oid, 0))
        self._write_columns(RULE_ARGUMENTS, oid, parameters)
        self._memory.rules[name] = (oid, text)
        self._memory.add_rule_parameters(name, parameters)
        self.add_rule_dependencies(name, oid, dependencies)
        self.epoch += 1
        self.touch_rules()
        return oid

    def add_rule_dependencies(self, name: str, oid: int, more: Dependencies) -> None:
        for function in more.functions:
            self._engine.set_row(RULE_CALLS, (oid, function))
        for type_name in more.types:
            self._engine.set_row(RULE_MENTIONS, (oid, self.type_oid(type_name)))
        self._memory.rule_dependencies[name] = self.rule_dependencies(name) | more

    def remove_rule(self, name: str) -> None:
        oid, _ = self._memory.rules.pop(name)
        self._memory.forget_rule(name)
        self._engine.remove_row(extent_relation(OBJECT), (oid,))
        self.epoch += 1
        self.touch_rules()

    def touch_rules(self) -> None:
        """Rules changed, so every session rebuilds its network; plans stay valid."""
        self.changed = True
        self._write_version()

    def _remove_session_function(self, function: Function) -> None:
        del self._session[function.id]
        del self._session_overloads[function.name][function.id]

    def add_session_function(self, function: Function) -> None:
        """Add a Python function known to this session only."""
        overloads = self._session_overloads.get(function.name, {})
        for known in [each for each in overloads.values() if each.variadic]:
            self._remove_session_function(known)
        self._session[function.id] = function
        self._session_overloads.setdefault(function.name, {})[function.id] = function
        self.epoch += 1
        self._compiled.clear()

    def provisional(self, function: Function, dependencies: Dependencies) -> None:
        """Make a function visible in memory before it is stored, because its own body may call it.
        It takes over the object of the function it replaces, which is removed when the new one is
        stored."""
        known = self._memory.functions.get(function.name, {}).get(function.id)
        self._remember(replace(function, oid=known.oid if known else 0), dependencies)
        self._compiled.clear()
        self.epoch += 1
        self.changed = True

    def _remember(self, function: Function, dependencies: Dependencies) -> None:
        self._memory.functions.setdefault(function.name, {})[function.id] = function
        self._memory.dependencies[function.id] = dependencies

    def _erase(self, function: Function) -> None:
        """The function's rows in the catalog's relations go with the object."""
        self._engine.remove_row(extent_relation(OBJECT), (function.oid,))
        overloads = self._memory.functions[function.name]
        overloads.pop(function.id, None)
        if not overloads:
            del self._memory.functions[function.name]
        self._memory.dependencies.pop(function.id, None)
        self._memory.properties.pop(function.id, None)

    def _write_type(self, oid: int, name: str, supertypes: Iterable[str]) -> None:
        self._engine.set_row(extent_relation(OBJECT), (oid,))
        self._engine.set_row(extent_relation(TYPE), (oid,))
        self._engine.set_row(TYPE_NAME, (oid, name))
        self._memory.type_oids[name] = oid
        for above in supertypes:
            self._engine.set_row(SUPERTYPES, (oid, self.type_oid(above)))

    def _write_function(
        self,
        function: Function,
        single_valued: bool | None,
        dependencies: Dependencies = NO_DEPENDENCIES,
    ) -> Function:
        oid = function.oid
        for extent in (extent_relation(OBJECT), extent_relation(FUNCTION)):
            self._engine.set_row(extent, (oid,))
        self._engine.set_row(FUNCTION_NAME, (oid, function.name))
        self._engine.set_row(FUNCTION_KIND, (oid, function.kind.value))
        self._engine.set_row(RETURNS_BAG, (oid, int(function.bag)))
        is_single = function.kind is FunctionKind.STORED and not function.bag
        single_valued = is_single if single_valued is None else single_valued
        self._engine.set_row(SINGLE_VALUED, (oid, int(single_valued)))
        self._engine.set_row(DEFINITION, (oid, function.text))
        self._engine.set_row(LANGUAGE, (oid, function.language))
        self._engine.set_row(MATERIALIZED, (oid, int(function.materialized)))
        if function.facts_of:
            self._engine.set_row(FACTS_OF, (oid, function.facts_of))
        for place, number in enumerate(function.order):
            self._engine.set_row(DECLARED_ORDER, (oid, place, number))
        self._write_columns(ARGUMENTS, oid, function.parameters)
        self._write_columns(RESULTS, oid, function.results)
        for position, column in enumerate((*function.parameters, *function.results)):
            if column.type.nullable:
                self._engine.set_row(NULLABLE, (oid, position))
        for name in dependencies.functions:
            self._engine.set_row(CALLS, (oid, name))
        for type_name in dependencies.types:
            self._engine.set_row(MENTIONS, (oid, self.type_oid(type_name)))
        return with_relation(function, single_valued)

    def _write_columns(self, relation: Relation, oid: int, columns: tuple[Column, ...]) -> None:
        for position, column in enumerate(columns, start=1):
            name = column.type.name
            if is_decimal(column.type) and name not in self._memory.type_oids:
                self._write_type(self.allocate(1), name, ())
            row = (oid, position, column.name, self.type_oid(name))
            self._engine.set_row(relation, row)
