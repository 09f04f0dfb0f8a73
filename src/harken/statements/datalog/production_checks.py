"""What the analysis says of a program of production rules before it runs."""

from __future__ import annotations

from collections.abc import Collection

from harken.calculus.influence import influence_graph, simplified
from harken.calculus.rule_findings import (
    Finding,
    cycles,
    dead_rules,
    influences_of,
    unordered,
    writes_of,
)
from harken.calculus.rule_formulas import Bases, RuleFormulas, bases_of, formulas_of
from harken.consumers.programs.compiled_programs import CompiledProgram
from harken.database.runtime import Runtime
from harken.ir.clauses import Definition
from harken.statements.datalog.production_programs import WrittenProgram, compile_program


def formulas_and_bases(program: CompiledProgram) -> tuple[tuple[RuleFormulas, ...], Bases]:
    """The formulas of all rules, and what their derived relations depend on."""
    definitions: dict[str, Definition] = {}
    for each in program.rules:
        definitions |= each.instances.definitions
    formulas = tuple(each for rule in program.rules for each in formulas_of(rule.rule))
    return formulas, bases_of(definitions)


def findings_of(
    written: WrittenProgram, runtime: Runtime, given: Collection[str] = ()
) -> list[Finding]:
    """`given` are relations that get rows from elsewhere."""
    if not written.rules:
        return []
    program = compile_program(written, runtime)
    formulas, bases = formulas_and_bases(program)
    graph = simplified(influence_graph(formulas, bases), program.above)
    names = [each.name for each in program.rules]
    writes = {each.rule.name: writes_of(each) for each in formulas}
    influences = influences_of(graph)
    empty = _empty(formulas, runtime, given)
    dead = dead_rules(formulas, empty)
    without = {each.rules[0] for each in dead}
    alive = [name for name in names if name not in without]
    acting = [each for each in influences if not without.intersection((each.source, each.target))]
    return [
        *cycles(alive, acting, writes),
        *dead,
        *unordered(alive, acting, writes, program.above),
    ]


def _empty(
    formulas: tuple[RuleFormulas, ...], runtime: Runtime, given: Collection[str]
) -> dict[str, str]:
    """The relations that nothing gives rows to, by id. A program without any facts gets them from
    elsewhere, and says nothing about that."""
    read = {
        each.relation.id: each.relation
        for rule in formulas
        for each in rule.body.positive
        if not each.opaque
    }
    empty = {
        name: relation.name
        for name, relation in read.items()
        if relation.name not in given and runtime.engine.is_empty(relation)
    }
    return empty if len(empty) < len(read) else {}
