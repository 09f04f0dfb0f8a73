"""How a function is evaluated: its clauses as they were translated, as they were rewritten, and
the SQL they become."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from harken.calculus.rule_sets import all_rule_sets
from harken.database.handles import plan_call
from harken.database.runtime import Runtime
from harken.engines.lake.reach import Reach, described, reaches
from harken.errors import TypeFault
from harken.ir.assemble import assemble
from harken.ir.printer import print_program
from harken.ir.relations import Kind
from harken.ir.schema import Function
from harken.planner.maintenance import in_rounds
from harken.planner.prepare import prepare


@dataclass(frozen=True, slots=True)
class Explanation:
    name: str
    kind: str
    definition: str
    clauses: str
    expanded: str
    sql: str
    lake: tuple[Reach, ...] = ()
    """How the rows of relations in the lake are reached."""
    measured: tuple[str, ...] = ()
    """What it has taken to keep a materialized view up to date."""
    maintenance: tuple[str, ...] = ()
    """The rules by which the changes of its recursive relations are found, or why there are none.
    """

    def __str__(self) -> str:
        parts = [f"{self.name} is a {self.kind} function", self.definition]
        if self.clauses:
            parts += ["As ObjectLog:", self.clauses]
        if self.expanded and self.expanded != self.clauses:
            parts += ["Expanded:", self.expanded]
        parts += ["As SQL, for given arguments:", self.sql, *described(self.lake)]
        parts += self.maintenance
        if self.measured:
            parts += ["Kept up to date:", "\n".join(self.measured)]
        return "\n\n".join(parts)

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "kind": "function", "function_kind": self.kind}


def explain_function(
    runtime: Runtime, function: Function, measured: tuple[str, ...] = ()
) -> Explanation:
    relation = function.relation
    if relation is None:
        raise TypeFault(
            f"{function.id} is a procedure: it has steps, not clauses", code="side-effect"
        )
    clauses = expanded = ""
    maintenance: tuple[str, ...] = ()
    if relation.kind is Kind.DERIVED:
        program = assemble(relation, (), runtime.catalog)
        plan = prepare(program, runtime.catalog.hierarchy, range(relation.inputs))
        clauses, expanded = print_program(program), print_program(plan.program)
        again = (f"At each change: {each}" for each in in_rounds(program))
        maintenance = (*map(str, all_rule_sets(program)), *again)
    plan = plan_call(runtime, relation)
    return Explanation(
        function.id,
        function.kind.value,
        function.text,
        clauses,
        expanded,
        runtime.engine.explain_sql(plan),
        reaches(runtime.engine, plan),
        measured,
        maintenance,
    )
