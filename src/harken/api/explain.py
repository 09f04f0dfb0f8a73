"""The result of `db.explain`: the short explanation, or the verbose one of how a function is
evaluated, with its translated clauses, its rewritten clauses, and their SQL."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from harken.api.differential_report import InfluentExplanation, explain_influents
from harken.api.handles import plan_call
from harken.api.internals import Internals
from harken.api.network_drawing import draw
from harken.api.network_report import NodeExplanation, explain_preview, followed, network_text
from harken.api.recursions import strategies
from harken.api.rule_explanation import RuleExplanation, explain_rule
from harken.api.summary import Summary, summarise_function, summarise_rule, watched_view
from harken.calculus.rule_sets import all_rule_sets
from harken.database.language_names import DATALOG, SQL
from harken.database.results import to_json
from harken.database.runtime import Runtime
from harken.engines.access_paths import Reach, described
from harken.errors import TypeFault
from harken.ir.assemble import assemble
from harken.ir.printer import print_program
from harken.ir.relations import Kind, Relation
from harken.ir.schema import Function, FunctionKind
from harken.planner.clock_views import untold
from harken.planner.prepare import prepare
from harken.propagation.network import Network
from harken.statements.sql.materialized_views import kept_name


@dataclass(frozen=True, slots=True)
class Explanation:
    name: str
    kind: str
    definition: str
    clauses: str
    expanded: str
    sql: str
    lake: tuple[Reach, ...] = ()
    """How the rows of lake relations are reached."""
    measured: tuple[str, ...] = ()
    """The measured cost of keeping a materialized view up to date."""
    maintenance: tuple[str, ...] = ()
    """The rules that find the changes of its recursive relations."""
    strategies: tuple[str, ...] = ()
    """For recursive relations: the possible strategies, the ones in use, and why something is
    recomputed."""
    outboxes: tuple[str, ...] = ()
    """The fill level of its durable monitors' outboxes."""
    title: str = ""
    """What it is, in its author's terms."""
    warnings: tuple[str, ...] = ()
    """Changes that its watchers do not see."""
    influents: tuple[InfluentExplanation, ...] = ()
    """What a change of each relation below does to it."""
    network: tuple[NodeExplanation, ...] = ()
    """The nodes that a change passes, from the view down to the tables."""

    def __str__(self) -> str:
        parts = [self.title, self.definition]
        if self.clauses:
            parts += ["As ObjectLog:", self.clauses]
        if self.expanded and self.expanded != self.clauses:
            parts += ["Expanded:", self.expanded]
        parts += ["As SQL, for given arguments:", self.sql, *described(self.lake)]
        parts += ["\n".join(self.strategies)] if self.strategies else []
        parts += self.maintenance
        if self.influents:
            parts += network_text(self.network)
            parts += [line for each in self.influents for line in each.paragraphs()]
        if self.measured:
            parts += ["Kept up to date:", "\n".join(self.measured)]
        parts += ["\n".join(self.outboxes)] if self.outboxes else []
        parts += [f"Warning: {each}" for each in self.warnings]
        return "\n\n".join(parts)

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "kind": "function", "function_kind": self.kind}


Explained = Summary | Explanation | RuleExplanation
"""Short, or verbose for a function or a rule. Print it, or get its parts with `as_json()`."""
FORMATS = ("text", "json", "svg")


def explain(internals: Internals, name: str, verbose: bool, format: str) -> Explained | str:
    """An object to print, or the text of a JSON or SVG document."""
    if format not in FORMATS:
        raise TypeFault(
            f"there is no format {format}", code="bad-value", hint=f"use {' or '.join(FORMATS)}"
        )
    if format == "svg":
        return _drawn(internals, name)
    found = _explain_all(internals, name) if verbose else _summarise(internals, name)
    return to_json(found.as_json()) if format == "json" else found


def _summarise(internals: Internals, name: str) -> Summary:
    rules = internals.catalog.rules
    if name in rules:
        return summarise_rule(internals, name)
    function = internals.function(name, rules)
    _check_rows(function)
    return summarise_function(internals, function, _title(function))


def _drawn(internals: Internals, name: str) -> str:
    found = _explain_all(internals, name)
    network = found.network or _summarise(internals, name).network
    if not network:
        raise TypeFault(
            (
                f"{name} needs arguments, so no network finds its changes, and there is "
                "nothing to draw"
            ),
            code="unsupported",
            hint="use the format text or json",
        )
    carried = {each.relation: len(each.gains) + len(each.losses) for each in found.influents}
    return draw(network, carried)


def _explain_all(internals: Internals, name: str) -> Explanation | RuleExplanation:
    runtime, network = internals.runtime, internals.network
    if name in runtime.catalog.rules:
        return explain_rule(runtime, network, internals.rules.compiled(name))
    function = internals.function(name, runtime.catalog.rules)
    found = replace(
        explain_function(runtime, function, network),
        measured=followed(network, function.id),
        outboxes=tuple(internals.monitors.outboxes_of(function)),
    )
    is_table = _check_rows(function).kind is Kind.STORED and not function.materialized
    view = None if is_table else watched_view(internals, function)[0]
    if view is None:
        return found
    condition, derived = network.graph.preview(view)
    return replace(
        found,
        influents=explain_influents(runtime, condition),
        network=explain_preview(runtime, network, condition, derived),
    )


def explain_function(runtime: Runtime, function: Function, network: Network) -> Explanation:
    relation = _check_rows(function)
    clauses = expanded = ""
    maintenance: tuple[str, ...] = ()
    recursion: tuple[str, ...] = ()
    kept = network.graph.node(kept_name(function.id))
    program = None if kept is None else kept.view.program
    if relation.kind is Kind.DERIVED:
        program = assemble(relation, (), runtime.catalog)
    if program is not None:
        prepared = prepare(program, runtime.catalog.hierarchy, range(relation.inputs))
        clauses, expanded = print_program(program), print_program(prepared.program)
        maintenance = tuple(map(str, all_rule_sets(program)))
        recursion = strategies(runtime, program, network)
    plan = plan_call(runtime, relation)
    return Explanation(
        function.id,
        function.kind.value,
        function.text,
        clauses,
        expanded,
        runtime.engine.explain_sql(plan),
        runtime.engine.reaches(plan),
        maintenance=maintenance,
        strategies=recursion,
        title=_title(function),
        warnings=() if program is None else untold(program, runtime.catalog.hierarchy),
    )


def _check_rows(function: Function) -> Relation:
    if function.relation is None:
        raise TypeFault(
            f"{function.id} is a procedure: it has steps, not clauses", code="side-effect"
        )
    return function.relation


def _title(function: Function) -> str:
    if function.language == DATALOG:
        rules = " with rules" if function.kind is FunctionKind.DERIVED else ""
        return f"{function.name} is a relation{rules}"
    if function.language == SQL:
        what = "view" if function.kind is FunctionKind.DERIVED else "table"
        return f"{function.name} is a {'materialized view' if function.materialized else what}"
    return f"{function.id} is a {function.kind.value} function"
