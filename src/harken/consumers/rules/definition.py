"""What a rule is: a condition, which is a relation to monitor, and an action, which is a procedure.

    create rule r(P) as when for each V where condition do action

becomes the relation of the tuples for which the rule is activated and its condition holds,

    cnd_r(P, V) ← activations of r(P, ...) ∧ condition(P, V)

and steps that run once for each tuple that the relation gains (thesis, sections 4.1 and 4.3). The
activations are a stored relation like any other: activating a rule is a change that the calculus
propagates, so a rule that is activated late catches up by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from harken.consumers.rules.event_bindings import bindings
from harken.database.catalog import Catalog
from harken.database.schema_cache import Dependencies
from harken.database.system import activations_relation
from harken.engines.protocol import Engine
from harken.errors import SafetyFault, TypeFault
from harken.ir.assemble import assemble
from harken.ir.clauses import (
    Atom,
    Clause,
    Definition,
    Program,
    canonical,
    rename_relations,
)
from harken.ir.relations import Column, Kind, Relation
from harken.ir.safety import required_inputs
from harken.ir.schema import Function, FunctionKind
from harken.ir.terms import Variable
from harken.lang.amosql import syntax
from harken.lang.amosql.draft import Declared
from harken.lang.amosql.parser import parse_statement
from harken.lang.amosql.scope import Local, Scope
from harken.lang.amosql.translate import Translator
from harken.planner.expand import expand
from harken.planner.prepare import prepare
from harken.propagation.watched import CompiledEvent, Condition
from harken.statements.amosql import steps
from harken.statements.amosql.build import Builder
from harken.statements.complaints import cannot_be_watched, not_one_to_watch
from harken.statements.definitions import columns
from harken.values.types import INTEGER


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as it was created; `variables` are those its condition binds for its action."""

    name: str
    oid: int
    text: str
    parameters: tuple[Column, ...]
    variables: tuple[Column, ...]
    nervous: bool
    coupling: str
    has_condition: bool
    events: tuple[syntax.Event, ...]

    @property
    def activations(self) -> Relation:
        return activations_relation(self.name, self.parameters)

    @property
    def condition(self) -> Relation:
        names = (*self.parameters, *self.variables)
        return Relation(f"cnd_{self.name}", names, len(self.parameters), Kind.DERIVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRule(Condition):
    rule: Rule
    build_action: Callable[[], steps.Step]
    """The action, compiled when it first runs: what only a session knows may be in it."""
    dependencies: Dependencies

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def title(self) -> str:
        return f"the condition of rule {self.rule.name}"

    @property
    def strict(self) -> bool:
        return not self.rule.nervous

    @property
    def only_events(self) -> bool:
        return bool(self.events) and not self.rule.has_condition

    def says_the_same(self, other: Condition) -> bool:
        return (
            isinstance(other, CompiledRule)
            and self.rule == other.rule
            and Condition.says_the_same(self, other)
        )


def read_rule(text: str, oid: int, catalog: Catalog) -> Rule:
    node = parse_statement(text)
    assert isinstance(node, syntax.CreateRule)
    return rule_of(node, text, oid, catalog)


def rule_of(node: syntax.CreateRule, text: str, oid: int, catalog: Catalog) -> Rule:
    translator = Translator(catalog)
    parameters = columns(node.parameters, translator)
    variables = columns(node.variables, translator)
    taken = {column.name for column in parameters}
    for column, declaration in zip(variables, node.variables, strict=True):
        if column.name in taken:
            raise TypeFault(
                f"{column.name} is a parameter of the rule already",
                code="exists",
                span=declaration.span,
                hint="give the variable another name",
            )
    return Rule(
        name=node.name,
        oid=oid,
        text=text,
        parameters=parameters,
        variables=variables,
        nervous=node.nervous,
        coupling=node.coupling,
        has_condition=node.condition is not None,
        events=node.events,
    )


def compile_rule(
    rule: Rule,
    engine: Engine,
    catalog: Catalog,
    node: syntax.CreateRule | None = None,
) -> CompiledRule:
    if node is None:
        parsed = parse_statement(rule.text)
        assert isinstance(parsed, syntax.CreateRule)
        node = parsed
    program, translator = _condition_program(rule, node, catalog)
    called = translator.called | {event.function for event in rule.events}
    mentioned = set(translator.mentioned)
    mentioned |= {column.type.name for column in (*rule.parameters, *rule.variables)}
    surrogates = frozenset(name for name in mentioned if name in catalog.hierarchy)
    statement = node.action
    return CompiledRule(
        rule=rule,
        program=program,
        build_action=lambda: compile_action(rule, statement, engine, catalog)[0],
        dependencies=Dependencies(frozenset(called), surrogates),
        events=tuple(_event(event, program, catalog) for event in rule.events),
    )


def compile_action(
    rule: Rule, node: syntax.Statement, engine: Engine, catalog: Catalog
) -> tuple[steps.Step, Dependencies]:
    """The steps of the action, with the condition's variables as its locals."""
    builder = Builder(engine, catalog, function=_as_procedure(rule), rule=True)
    scope = Scope()
    for column in (*rule.parameters, *rule.variables):
        scope.names[column.name] = Local(column.name, column.type)
    return builder.statement(node, scope), builder.dependencies


def _event(event: syntax.Event, condition: Program, catalog: Catalog) -> CompiledEvent:
    name = f"{event.qualifier}.{event.function}" if event.qualifier else event.function
    named = catalog.named(name)
    functions = [f for f in named if f.relation is not None]
    if len(functions) != 1:
        raise not_one_to_watch(name, named, event.span, catalog)
    watched = functions[0].relation
    assert watched is not None
    terms = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(watched.columns))
    goal = Relation(f"event {watched.id}", watched.columns, watched.inputs, Kind.DERIVED)
    clause = Clause(Atom(goal, terms), (Atom(watched, terms),))
    program = assemble(goal, [Definition(goal, (clause,))], catalog)
    try:
        prepare(program, catalog.hierarchy)
    except SafetyFault as error:
        unlisted = error.code == "unsafe"
        raise cannot_be_watched(functions[0], event.span) if unlisted else error from error
    expanded = expand(program, catalog.hierarchy, required_inputs(program))
    bound = bindings(condition, watched, catalog.hierarchy)
    return CompiledEvent(event.kind, expanded, bound)


def _condition_program(
    rule: Rule, node: syntax.CreateRule, catalog: Catalog
) -> tuple[Program, Translator]:
    translator = Translator(catalog, owner=NAMELESS)
    scope = Scope()
    declared: Declared = [
        (translator.declare(scope, column.name, column.type), column.type)
        for column in (*rule.parameters, *rule.variables)
    ]
    head = tuple(variable for variable, _ in declared)
    inputs = len(rule.parameters)
    details = (translator.fresh(INTEGER), translator.fresh(INTEGER))
    active = Atom(rule.activations, (*head[:inputs], *details))
    alternatives = [[]] if node.condition is None else translator.predicate(node.condition, scope)
    columns = tuple(Column(f"c{i}", variable.type) for i, variable in enumerate(head))
    body = Relation(NAMELESS, columns, inputs, Kind.DERIVED)
    clauses = tuple(translator.clause(body, head, each, declared) for each in alternatives)
    own = name_condition(body, (Definition(body, clauses), *translator.auxiliaries.values()))
    when = Atom(own[0].relation, head)
    top = Definition(rule.condition, (Clause(Atom(rule.condition, head), (active, when)),))
    program = assemble(rule.condition, (top, *own), catalog)
    prepare(program, catalog.hierarchy)
    return program, translator


NAMELESS = "condition"
"""What a condition is called until it is known which one it is."""


def name_condition(body: Relation, definitions: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Name a condition, and what was made for it, after what it says: two rules that say the same
    have the same condition."""
    text = repr([canonical(clause) for each in definitions for clause in each.clauses])
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    made = {each.relation.id for each in definitions if each.relation.name.startswith(NAMELESS)}

    def named(relation: Relation) -> Relation:
        if relation.id not in made:
            return relation
        return replace(relation, name=f"{NAMELESS} {digest}{relation.name[len(NAMELESS) :]}")

    return tuple(rename_relations(each, named) for each in definitions)


def _as_procedure(rule: Rule) -> Function:
    """The action sees the rule's parameters and the condition's variables as its locals."""
    return Function(
        name=f"act_{rule.name}",
        parameters=(*rule.parameters, *rule.variables),
        results=(),
        kind=FunctionKind.PROCEDURE,
    )
