"""A program with what a policy stores for it: its rules over memories.

The analysis says what the program can do to its data, the statistics of the engine how many rows
its literals have, and `maintenance.materialisation` decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harken.calculus.rule_annotations import AnnotatedProgram, annotate_program
from harken.calculus.rule_formulas import Occurrence, formulas_of
from harken.calculus.rule_memories import with_memories
from harken.consumers.programs.compiled_programs import CompiledProgram, CompiledRule
from harken.database.runtime import Runtime
from harken.engines.protocol import Statistics
from harken.errors import NameFault
from harken.ir.relations import Kind
from harken.ir.terms import Constant
from harken.maintenance.materialisation import (
    AUTO,
    POLICIES,
    Estimates,
    Materialisation,
    Parts,
)
from harken.statements.datalog.production_checks import formulas_and_bases
from harken.statements.datalog.production_programs import compiled_rule

BYTES_PER_VALUE = 16
"""About how many bytes a stored value takes."""


def materialised(
    program: CompiledProgram, requested: str, runtime: Runtime, choices: Materialisation
) -> CompiledProgram:
    """The program as a policy wants it: one of `POLICIES`, or `auto`."""
    if requested not in (AUTO, *POLICIES):
        raise NameFault(
            f"there is no policy {requested}",
            code="bad-value",
            hint=f"use {AUTO}, {', '.join(POLICIES)}",
        )
    policy = choices.policy(program.digest, requested)
    estimates = estimates_of(runtime.engine.statistics)
    limit = int(runtime.settings["kept_bytes"])
    room = limit / BYTES_PER_VALUE if limit else float("inf")
    annotated = annotation_of(program, estimates)
    parts = choices.parts(policy, annotated, estimates, room)
    rules = tuple(_with_parts(each, parts[each.name], runtime) for each in program.rules)
    return replace(program, rules=rules, policy=policy, room=room)


def annotation_of(program: CompiledProgram, estimates: Estimates) -> AnnotatedProgram:
    formulas, bases = formulas_and_bases(program)
    return annotate_program(formulas, program.above, bases, estimates.literal)


def estimates_of(statistics: Statistics) -> Estimates:
    def whole(occurrence: Occurrence) -> float:
        if occurrence.relation.kind is not Kind.STORED:
            return 0.0
        return statistics.rows(occurrence.relation)

    def literal(occurrence: Occurrence) -> float:
        if occurrence.relation.kind is not Kind.STORED:
            return 0.0
        constant = [i for i, t in enumerate(occurrence.terms) if isinstance(t, Constant)]
        if not constant:
            return statistics.rows(occurrence.relation)
        return statistics.fanout(occurrence.relation, constant)

    return Estimates(literal, whole)


def _with_parts(rule: CompiledRule, parts: Sequence[Parts], runtime: Runtime) -> CompiledRule:
    if not any(parts):
        return rule
    wanted = dict(enumerate(parts))
    made = with_memories(rule.rule, formulas_of(rule.rule), wanted)
    return replace(compiled_rule(made.rule, rule.rule, made.memories, runtime), plain=rule)
