"""Production rules of a text as the analysis sees them."""

from __future__ import annotations

from dataclasses import dataclass

import harken
from harken.calculus.rule_annotations import AnnotatedProgram, annotate_program
from harken.calculus.rule_formulas import Bases, RuleFormulas, bases_of, formulas_of
from harken.consumers.programs.compiled_programs import CompiledProgram
from harken.lang.datalog.parser import parse
from harken.statements.datalog.production_programs import WrittenProgram, compile_program


@dataclass(frozen=True)
class Analysed:
    compiled: CompiledProgram
    formulas: tuple[RuleFormulas, ...]
    bases: Bases

    def of(self, rule: str) -> RuleFormulas:
        return next(each for each in self.formulas if each.rule.name == rule)

    def annotated(self) -> AnnotatedProgram:
        return annotate_program(self.formulas, self.compiled.above, self.bases)


def analysed(text: str) -> Analysed:
    """The rules of a text whose relations it declares."""
    with harken.connect() as db:
        db.datalog(text)
        written = WrittenProgram().extended(parse(text).statements, text)
        compiled = compile_program(written, db.internals.runtime)
    definitions = {}
    for each in compiled.rules:
        definitions |= dict(each.instances.definitions)
    formulas = tuple(f for each in compiled.rules for f in formulas_of(each.rule))
    return Analysed(compiled, formulas, bases_of(definitions))
