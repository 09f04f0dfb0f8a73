"""Programs of production rules: from the statements of texts to what their cycle runs.

A session collects rules, priorities and options from its texts, as a shell reads them one by one. A
later text may define a rule anew. Numbers and `.priority` are one partial order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from harken.calculus.output_tokens import firable_instances, output_tokens
from harken.calculus.rule_memories import Memory
from harken.consumers.programs.compiled_programs import (
    DEFAULT_LIMIT,
    CompiledProgram,
    CompiledRule,
    ProgramOptions,
    StoredMemory,
)
from harken.consumers.programs.priorities import priority_order
from harken.database.runtime import Runtime
from harken.errors import NameFault, Span, SyntaxFault, TypeFault, nearest
from harken.ir.assemble import assemble
from harken.ir.clauses import Definition, Program
from harken.ir.productions import Firing, HeadCall, ProductionRule
from harken.ir.relations import Kind, Relation
from harken.ir.schema import FunctionKind
from harken.lang.datalog import syntax
from harken.lang.datalog.parser import parse
from harken.lang.datalog.production_translation import ProductionTranslator
from harken.lang.datalog.translate import Translator
from harken.planner.prepare import prepare
from harken.statements.datalog.function_relations import CatalogRelations, types_of
from harken.statements.language_registry import check_rows
from harken.statements.procedure_calls import call_procedure, is_procedure
from harken.values.rows import Row

MOST_RULES = 2_000
"""The most rules of one program."""


@dataclass(slots=True)
class WrittenRule:
    node: syntax.ProductionRule
    text: str


@dataclass(slots=True)
class WrittenProgram:
    """The rules of a session as they are written, in the order of their first definition."""

    rules: dict[str, WrittenRule] = field(default_factory=dict)
    priorities: list[syntax.Priority] = field(default_factory=list)
    semantics: str = "set"
    of_rules: dict[str, str] = field(default_factory=dict)
    options: ProgramOptions = field(default_factory=ProgramOptions)

    def extended(self, statements: Iterable[syntax.Statement], text: str) -> WrittenProgram:
        """This program with the parts in a text."""
        made = WrittenProgram(
            dict(self.rules),
            list(self.priorities),
            self.semantics,
            dict(self.of_rules),
            self.options,
        )
        own: set[str] = set()
        named: list[tuple[str, Span]] = []
        for each in statements:
            match each:
                case syntax.ProductionRule():
                    if each.name in own:
                        raise NameFault(
                            f"there are two rules {each.name}", code="exists", span=each.span
                        )
                    own.add(each.name)
                    made.rules[each.name] = WrittenRule(each, text[each.span.start : each.span.end])
                case syntax.Priority():
                    made.priorities.append(each)
                    named += [pair for group in each.groups for pair in group]
                case syntax.ProgramOption():
                    made.note_option(each)
                    named += each.rules
        if len(made.rules) > MOST_RULES:
            raise SyntaxFault(f"a program has at most {MOST_RULES:,} rules", code="too-complex")
        for name, span in named:
            if name not in made.rules:
                near = nearest(name, made.rules)
                raise NameFault(
                    f"there is no rule {name}",
                    code="unknown-rule",
                    span=span,
                    hint=f"did you mean {near}?" if near else None,
                )
        return made

    def note_option(self, node: syntax.ProgramOption) -> None:
        match node.kind:
            case "semantics" if node.rules:
                self.of_rules |= {name: node.value for name, _ in node.rules}
            case "semantics":
                self.semantics = node.value
            case "timestamps":
                self.options = replace(self.options, timestamps=True)
            case "refraction":
                self.options = replace(self.options, refraction=True)
            case "resolution":
                self.options = replace(self.options, resolution=node.value)

    def text(self, limit: int | None) -> str:
        """The whole program as one text, to be active with this limit."""
        lines = [each.text for each in self.rules.values()]
        for each in self.priorities:
            groups = (", ".join(name for name, _ in group) for group in each.groups)
            lines.append(f".priority {' > '.join(groups)}")
        lines.append(f".semantics {self.semantics}")
        lines += [f".semantics {value} {name}" for name, value in self.of_rules.items()]
        if self.options.resolution != "text":
            lines.append(f".resolution {self.options.resolution}")
        lines.append(f".activate limit {limit or DEFAULT_LIMIT}")
        return "\n".join(lines)

    def check_activation(self) -> None:
        if self.options.timestamps or self.options.refraction:
            raise SyntaxFault(
                "a program with .timestamps or .refraction is run, and not activated: what has "
                "fired is known for one run only",
                code="unsupported",
                hint="start it with .run",
            )

    def firing_of(self, name: str) -> Firing:
        own = self.rules[name].node.semantics or self.of_rules.get(name) or self.semantics
        return Firing(own)

    def check_options(self) -> None:
        """Facts have times for the sake of instances."""
        options = self.options
        if not (options.timestamps or options.refraction or options.resolution != "text"):
            return
        for name, rule in self.rules.items():
            if self.firing_of(name) is Firing.SET:
                raise SyntaxFault(
                    f"the rule {name} fires for all its instances at once, and .timestamps, "
                    ".refraction and .resolution choose among instances",
                    code="unsupported",
                    span=rule.node.span,
                    hint="write .semantics instance",
                )


def compile_program(
    written: WrittenProgram,
    runtime: Runtime,
    limit: int | None = None,
    stated: Sequence[tuple[Relation, Row]] = (),
) -> CompiledProgram:
    if not written.rules:
        raise SyntaxFault(
            "there is no production rule to run",
            code="unknown-rule",
            hint="write one: rule name: body -> head.",
        )
    written.check_options()
    rules = tuple(
        _compiled(rule, number, written, runtime)
        for number, rule in enumerate(written.rules.values())
    )
    numbers = {name: each.node.priority for name, each in written.rules.items()}
    return CompiledProgram(
        rules=rules,
        above=priority_order(numbers, pairs_of(written.priorities)),
        options=written.options,
        limit=limit or DEFAULT_LIMIT,
        check_rows=lambda relation, rows: _check_rows(runtime, relation, rows),
        call=_caller(rules, runtime),
        initial=tuple(stated) if written.options.timestamps else (),
        digest=hashlib.sha256(
            repr([each.text for each in written.rules.values()]).encode()
        ).hexdigest()[:16],
    )


def compile_text(text: str, runtime: Runtime) -> CompiledProgram:
    """A program that is kept as text, with its limit."""
    statements = parse(text).statements
    limits = [each.limit for each in statements if isinstance(each, syntax.Activation)]
    written = WrittenProgram().extended(statements, text)
    return compile_program(written, runtime, limits[-1] if limits else None)


def pairs_of(priorities: Iterable[syntax.Priority]) -> list[tuple[str, str, Span]]:
    """Of each two neighbouring groups every pair, the one that goes first first."""
    return [
        (one, other, each.span)
        for each in priorities
        for before, after in pairwise(each.groups)
        for one, _ in before
        for other, _ in after
    ]


def production_rule(
    node: WrittenRule, number: int, written: WrittenProgram, runtime: Runtime
) -> ProductionRule:
    """A rule in the intermediate language, with heads that can be changed."""
    catalog = runtime.catalog
    types = types_of(catalog)
    relations = CatalogRelations(catalog, types)
    translator = Translator(relations, types, owner=f"rule {node.node.name}")
    options = written.options
    productions = ProductionTranslator(
        translator,
        lambda name: relations.find(name) is None and is_procedure(runtime, name),
        options.timestamps or options.resolution != "text",
    )
    rule = productions.rule(node.node, number, written.firing_of(node.node.name), node.text)
    for literal, head in zip(rule.heads, _stored_heads(node.node, rule), strict=True):
        _refuse_derived(literal.relation, head, relations)
    return rule


def _stored_heads(node: syntax.ProductionRule, rule: ProductionRule) -> list[syntax.Atom]:
    calls = {each.name for each in rule.calls}
    return [each.atom for each in node.heads if each.atom.name not in calls]


def _refuse_derived(relation: Relation, head: syntax.Atom, relations: CatalogRelations) -> None:
    function = relations.function(head.name)
    stored = function is not None and function.kind is FunctionKind.STORED
    if relation.kind is not Kind.STORED or not stored or (function and function.materialized):
        raise TypeFault(
            f"{head.name} is derived, and a production rule changes stored facts only",
            code="not-updatable",
            span=head.span,
            hint="change what it is derived from",
        )
    if function is not None and function.system:
        raise TypeFault(f"{head.name} belongs to the system", code="not-updatable", span=head.span)


def _compiled(
    node: WrittenRule, number: int, written: WrittenProgram, runtime: Runtime
) -> CompiledRule:
    rule = production_rule(node, number, written, runtime)
    return compiled_rule(rule, rule, (), runtime)


def compiled_rule(
    rule: ProductionRule, written: ProductionRule, memories: Sequence[Memory], runtime: Runtime
) -> CompiledRule:
    """The programs of a rule that reads memories, and was written without them."""
    own = (rule.instances, *rule.auxiliaries)

    def program(goal: Definition, *others: Definition) -> Program:
        made = assemble(goal.relation, (goal, *others, *own), runtime.catalog)
        prepare(made, runtime.catalog.hierarchy)
        return made

    tokens: list[tuple[Program, Relation | None, bool]] = []
    if rule.firing is Firing.SET:
        tokens += [
            (program(each.definition, *each.effects), each.relation, each.deletes)
            for each in output_tokens(rule)
        ]
    elif rule.heads:
        tokens.append((program(firable_instances(rule, written)), None, False))
    stored = tuple(StoredMemory(e.relation, program(e.definition), str(e)) for e in memories)
    return CompiledRule(rule, tuple(tokens), program(rule.instances), stored)


def _check_rows(runtime: Runtime, relation: Relation, rows: Sequence[Row]) -> None:
    catalog = runtime.catalog
    if catalog.has_function(relation.id):
        check_rows(catalog.function(relation.id), rows)


def _caller(rules: Iterable[CompiledRule], runtime: Runtime) -> Callable[[HeadCall, Row], None]:
    def call(head: HeadCall, values: Row) -> None:
        call_procedure(runtime, head.name, values, [term.type for term in head.terms])

    return call
