"""Rules of AMOSQL: from text to a watched view and an action."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from harken.consumers.rules.definition import AFTER_TRANSACTION, CompiledRule, Rule, TimeEvent
from harken.consumers.rules.rules import Rules
from harken.database.catalog import Catalog
from harken.database.dependency_order import dependents_in_order
from harken.database.function_tables import asked_below
from harken.database.runtime import Runtime
from harken.database.schema_cache import Dependencies
from harken.database.system import relation_of, time_key
from harken.engines.protocol import Engine
from harken.errors import IntegrityError, NameFault, SafetyFault, TypeFault
from harken.ir.assemble import assemble
from harken.ir.clauses import (
    Atom,
    Clause,
    Definition,
    Program,
    canonical,
    rename_relations,
)
from harken.ir.event_trees import Leaf, OneOf, Tree, spans_checks, waits
from harken.ir.past_relations import STATEMENT, before, made_of, reads_past, since_statement
from harken.ir.relations import Column, Kind, Relation, Role
from harken.ir.schema import Function, FunctionKind
from harken.lang.amosql import syntax
from harken.lang.amosql.parser import parse_statement
from harken.lang.amosql.past_values import NAMED as PAST_VALUES
from harken.lang.amosql.program_draft import Declared, Draft
from harken.lang.amosql.scope import Local, Scope
from harken.lang.amosql.translate import Translator
from harken.maintenance.watched import CompiledEvent
from harken.planner.prepare import prepare
from harken.statements.amosql import steps
from harken.statements.amosql.build import Builder
from harken.statements.amosql.definitions import columns
from harken.statements.amosql.rule_events import compile_event, happening
from harken.values.types import BOOLEAN, INTEGER


@dataclass(frozen=True, slots=True)
class AmosqlRules:
    """The front end of rules (`consumers.rules.definition.RuleCompiler`)."""

    runtime: Runtime

    def read(self, text: str, oid: int) -> Rule:
        return read_rule(text, oid, self.runtime.catalog)

    def compile(self, rule: Rule) -> CompiledRule:
        return compile_rule(rule, self.runtime.engine, self.runtime.catalog)


# --- statements --------------------------------------------------------------------------------


def create_rule(runtime: Runtime, rules: Rules, node: syntax.CreateRule, text: str) -> None:
    catalog = runtime.catalog
    if node.name in catalog.rules:
        raise NameFault(
            f"there is already a rule {node.name}",
            code="exists",
            span=node.span,
            hint=f"delete it first: delete rule {node.name}",
        )
    rule = rule_of(node, text, 0, catalog)
    compiled = compile_rule(rule, runtime.engine, catalog, node)
    asked = asked_below(catalog, compiled.dependencies.functions)
    if asked is not None:
        raise SafetyFault(
            f"{asked} has no mirror, so nobody learns when it changes",
            code="unsafe",
            span=node.span,
            hint="create the source without MIRROR none",
        )
    if rule.patient and not node.events:
        raise SafetyFault(
            "a patient rule waits for an event, and this one has none",
            code="syntax",
            span=node.span,
            hint="write an event, as in on updated(f), or leave `patient` out",
        )
    rules.composed.make_room(compiled, [event.is_of_data for event in node.events])
    if rule.coupling in AFTER_TRANSACTION:
        rules.detached.declare()
    runtime.engine.create(rule.activations)
    oid = catalog.add_rule(rule.name, text, rule.parameters, compiled.dependencies)
    # Only now, because an action may name its own rule, for example to deactivate it.
    _, needed = compile_action(rule, node.action, runtime.engine, catalog)
    catalog.add_rule_dependencies(rule.name, oid, needed)
    rules.follow(catalog.epoch)


def delete_rule(runtime: Runtime, rules: Rules, node: syntax.DeleteRule) -> None:
    rule = rules.find(node.name, node.span)
    catalog = runtime.catalog
    names = (
        f"rule {rule.name}",
        f"{rule.name}_activations",
        *(f"{start}{rule.name}" for start in RULE_FUNCTIONS),
    )
    users = {function.id for name in names for function in catalog.dependents(name)}
    users |= {f"rule {each}" for name in names for each in catalog.rules_that_call(name)}
    users.discard(f"rule {rule.name}")
    if users:
        raise IntegrityError(
            f"the rule {rule.name} cannot be deleted: it is used by {', '.join(sorted(users))}",
            code="in-use",
            span=node.span,
            hint="delete those first",
        )
    rules.remove(rule)


RULE_FUNCTIONS = {"cnd_": FunctionKind.DERIVED, "act_": FunctionKind.PROCEDURE}
"""The condition of the rule r can be called as the function cnd_r, its action as the procedure
act_r."""


def function_of_rule(name: str, catalog: Catalog) -> tuple[Function, Dependencies] | None:
    """`cnd_r` or `act_r`, if there is a rule r."""
    kind = RULE_FUNCTIONS.get(name[:4])
    if kind is None or name[4:] not in catalog.rules:
        return None
    oid, text = catalog.rules[name[4:]]
    rule = read_rule(text, oid, catalog)
    is_condition = kind is FunctionKind.DERIVED
    inputs = rule.parameters if is_condition else (*rule.parameters, *rule.variables)
    results = (rule.variables or (Column("holds", BOOLEAN),)) if is_condition else ()
    function = Function(
        name=name,
        parameters=inputs,
        results=results,
        kind=kind,
        text=text,
        system=True,
        of_rule=rule.name,
    )
    if is_condition:
        function = replace(function, relation=relation_of(function))
    return function, catalog.rule_dependencies(rule.name)


# --- from text to programs ---------------------------------------------------------------------


def read_rule(text: str, oid: int, catalog: Catalog) -> Rule:
    node = parse_statement(text)
    assert isinstance(node, syntax.CreateRule)
    return rule_of(node, text, oid, catalog)


def rule_of(node: syntax.CreateRule, text: str, oid: int, catalog: Catalog) -> Rule:
    draft = Draft(catalog)
    parameters = columns(node.parameters, draft)
    variables = columns(node.variables, draft)
    taken = {column.name for column in parameters}
    for column, declaration in zip(variables, node.variables, strict=True):
        if column.name in taken:
            raise TypeFault(
                f"{column.name} is already a parameter of the rule",
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
        nervous=node.sensitivity == "nervous",
        patient=_is_patient(node),
        coupling=node.coupling,
        has_condition=node.condition is not None,
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
    if rule.since == STATEMENT:
        program = since_statement(program)
    of_data = [event for event in node.events if event.is_of_data]
    called = translator.draft.called | {event.function for event in of_data}
    mentioned = set(translator.draft.mentioned)
    mentioned |= {column.type.name for column in (*rule.parameters, *rule.variables)}
    surrogates = frozenset(name for name in mentioned if name in catalog.hierarchy)
    statement = node.action
    return CompiledRule(
        rule=rule,
        program=program,
        build_action=lambda: compile_action(rule, statement, engine, catalog)[0],
        keep_histories=lambda: _keep_histories(rule, statement, engine, catalog),
        strategy="external" if reads_past(program) else "auto",
        dependencies=Dependencies(frozenset(called), surrogates),
        events=_events(rule, node, program, catalog),
        tree=tree_of(node),
        times=_times(node),
    )


def _events(
    rule: Rule, node: syntax.CreateRule, program: Program, catalog: Catalog
) -> tuple[CompiledEvent, ...]:
    """The events of a rule; the last is for what is due after a time."""
    found = [
        compile_event(event, number, rule.name, program, catalog)
        for number, event in enumerate(node.events)
    ]
    if found and waits(tree_of(node)):
        found.append(happening(time_key(rule.name, len(found)), catalog))
    return tuple(found)


def _times(node: syntax.CreateRule) -> tuple[TimeEvent, ...]:
    return tuple(
        TimeEvent(number, event.kind, event.length, event.moment, event.time)
        for number, event in enumerate(node.events)
        if event.kind in ("every", "at", "after")
    )


def tree_of(node: syntax.CreateRule) -> Tree:
    return node.tree or OneOf(tuple(Leaf(number) for number in range(len(node.events))))


def _is_patient(node: syntax.CreateRule) -> bool:
    """A condition does not become true because time passes or a signal comes: unless a rule says
    otherwise, it then acts on what has become true since it last acted."""
    if node.sensitivity is not None or node.condition is None or not node.events:
        return node.sensitivity == "patient"
    return spans_checks(tree_of(node)) or not all(event.is_of_data for event in node.events)


def compile_action(
    rule: Rule, node: syntax.Statement, engine: Engine, catalog: Catalog
) -> tuple[steps.CompiledStep, Dependencies]:
    """The steps of the action, with the condition's variables as its locals."""
    builder, scope = _builder_of(rule, engine, catalog)
    return builder.statement(node, scope), builder.dependencies


def _keep_histories(rule: Rule, node: syntax.Statement, engine: Engine, catalog: Catalog) -> None:
    """Make the plans of an action that asks for old values, itself or in a procedure: from then on
    the engine keeps the histories that they read."""
    known = catalog.rules_that_call
    asking = {each for name in PAST_VALUES for each in _asking(name, catalog)}
    if not any(rule.name in known(name) for name in asking):
        return
    builder, scope = _builder_of(rule, engine, catalog)
    builder.statement(node, scope)
    waiting, seen = set(builder.dependencies.functions), set[str]()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        for function in catalog.overloads(name):
            if function.kind is FunctionKind.PROCEDURE and function.language == "amosql":
                builder.procedure(function)
                waiting |= catalog.dependencies(function.id).functions - seen


def _asking(name: str, catalog: Catalog) -> set[str]:
    return {name, *(each.name for each in dependents_in_order(catalog, name))}


def _builder_of(rule: Rule, engine: Engine, catalog: Catalog) -> tuple[Builder, Scope]:
    """What builds the action, with the variables of the condition as its locals."""
    procedure = _as_procedure(rule)
    builder = Builder(engine, catalog, function=procedure, rule=True, since=rule.since)
    scope = Scope()
    for column in (*rule.parameters, *rule.variables):
        scope.names[column.name] = Local(column.name, column.type)
    return builder, scope


def _condition_program(
    rule: Rule, node: syntax.CreateRule, catalog: Catalog
) -> tuple[Program, Translator]:
    translator = Translator.for_schema(catalog, owner=NAMELESS)
    scope = Scope()
    declared: Declared = [
        (translator.draft.declare(scope, column.name, column.type), column.type)
        for column in (*rule.parameters, *rule.variables)
    ]
    head = tuple(variable for variable, _ in declared)
    inputs = len(rule.parameters)
    details = (translator.draft.fresh(INTEGER), translator.draft.fresh(INTEGER))
    active = Atom(rule.activations, (*head[:inputs], *details))
    alternatives = [[]] if node.condition is None else translator.predicate(node.condition, scope)
    columns = tuple(Column(f"c{i}", variable.type) for i, variable in enumerate(head))
    body = Relation(NAMELESS, columns, inputs, Kind.DERIVED, role=Role.PART)
    clauses = tuple(translator.draft.clause(body, head, each, declared) for each in alternatives)
    own = name_condition(body, (Definition(body, clauses), *translator.draft.auxiliaries.values()))
    when = Atom(own[0].relation, head)
    top = Definition(rule.condition, (Clause(Atom(rule.condition, head), (active, when)),))
    program = assemble(rule.condition, (top, *own), catalog)
    prepare(program, catalog.hierarchy)
    return program, translator


NAMELESS = "condition"
"""The name of a condition until its own is known."""


def name_condition(body: Relation, definitions: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Name a condition and its auxiliary relations after a digest of what it says: rules that say
    the same share one condition."""
    text = repr([canonical(clause) for each in definitions for clause in each.clauses])
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    made = {each.relation.id for each in definitions if each.relation.role is Role.PART}

    def named(relation: Relation) -> Relation:
        if relation.id not in made:
            is_past = relation.role is Role.BEFORE and made_of(relation).id in made
            return before(named(made_of(relation))) if is_past else relation
        return replace(relation, name=f"{relation.name} {digest}")

    return tuple(rename_relations(each, named) for each in definitions)


def _as_procedure(rule: Rule) -> Function:
    """The action sees the rule's parameters and the condition's variables as its locals."""
    return Function(
        name=f"act_{rule.name}",
        parameters=(*rule.parameters, *rule.variables),
        results=(),
        kind=FunctionKind.PROCEDURE,
    )
