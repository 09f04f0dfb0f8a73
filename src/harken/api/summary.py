"""The short explanation of a view, rule, relation or function.

It says what it reads, how its changes are found and why, what is stored for it and how large that
is, and what its last changes cost. Clauses, differentials and SQL are in the verbose one
(`api.explain`).

Law: it reports what the network has and the chooser knows; nothing is worked out again here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from harken.api.internals import Internals
from harken.api.network_report import NodeExplanation, explain_network
from harken.consumers.monitors.view import Watched
from harken.errors import HarkenError
from harken.ir.assemble import assemble
from harken.ir.clauses import stored_relations
from harken.ir.relations import Kind, Relation
from harken.ir.schema import Function
from harken.maintenance.watched import WatchedView
from harken.planner.clock_views import untold
from harken.statements.sql.materialized_views import kept_name

MOST_LINES = 20
"""The longest text in lines, unless a view has more warnings."""
STORED_TABLE = "its rows are changed by statements, and recorded as they change"
LAKE_TABLE = "its rows are in a lake; each step, as of `harken pipeline run`, finds what changed"
MOST_LISTED = 4
"""The most lines for each part of the text; JSON has all."""


@dataclass(frozen=True, slots=True)
class Read:
    """A stored relation that is read."""

    relation: str
    rows: int


@dataclass(frozen=True, slots=True)
class Summary:
    kind: str
    """`rule` or `function`."""
    name: str
    title: str
    """What it is, in its author's terms."""
    reads: tuple[Read, ...]
    changes: tuple[str, ...]
    """How its changes are found, and why."""
    stored: tuple[str, ...]
    """What is stored for it, and how large that is."""
    costs: tuple[str, ...]
    """The measured cost of computing it and its changes."""
    outboxes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """The changes that are not reported."""
    network: tuple[NodeExplanation, ...] = ()
    """The nodes that a change passes, from the view down to the tables."""

    def __str__(self) -> str:
        reads = [f"{each.relation}, {_rows(each.rows)}" for each in self.reads]
        parts = {
            "reads": reads or ["nothing stored"],
            "changes": self.changes,
            "stored": self.stored or ["nothing"],
            "costs": self.costs or ["nothing measured in this session"],
            "outboxes": self.outboxes,
        }
        lines = [self.title]
        for heading, found in parts.items():
            lines += _part(heading, list(found))
        lines += [f"warning: {each}" for each in self.warnings]
        return "\n".join(lines)

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def _part(heading: str, found: list[str]) -> Iterator[str]:
    shown = found[:MOST_LISTED] if len(found) <= MOST_LISTED else found[: MOST_LISTED - 1]
    if len(found) > len(shown):
        shown = [*shown, f"and {len(found) - len(shown)} more"]
    for number, each in enumerate(shown):
        yield f"{heading if number == 0 else '':<9}{each}"


def summarise_rule(internals: Internals, name: str) -> Summary:
    compiled = internals.rules.compiled(name)
    rule, network = compiled.rule, internals.network
    is_active = rule.name in network.graph
    nodes = explain_network(internals.runtime, network, compiled)
    state = "active" if is_active else "not active"
    return Summary(
        "rule",
        rule.name,
        f"{rule.name} is a {rule.semantics}, {rule.coupling} rule, {state}",
        _reads(nodes),
        (*_compiled(internals, compiled), *_changes(nodes))
        if is_active
        else ("the rule is not active: its condition is not watched",),
        (*_kept(nodes), *_budget(internals, nodes)),
        _costs(nodes),
        warnings=untold(compiled.program, internals.runtime.catalog.hierarchy),
        network=nodes,
    )


def summarise_function(internals: Internals, function: Function, title: str) -> Summary:
    relation = function.relation
    assert relation is not None
    view, is_followed = watched_view(internals, function)
    own = _own_rows(internals, function, relation)
    outboxes = tuple(internals.monitors.outboxes_of(function))
    changes: tuple[str, ...]
    if view is None:
        reads = _read_by(internals, relation) if relation.kind is Kind.DERIVED else ()
        changes = ("it needs arguments, so it cannot be followed as a whole",)
        nodes: tuple[NodeExplanation, ...] = ()
        warnings: tuple[str, ...] = ()
    else:
        nodes = explain_network(internals.runtime, internals.network, view)
        reads, changes = _reads(nodes), (*_compiled(internals, view), *_changes(nodes))
        if not is_followed:
            changes = ("nobody follows it here: its rows are computed when they are read",)
        warnings = untold(view.program, internals.runtime.catalog.hierarchy)
    if relation.kind is Kind.STORED and not function.materialized:
        is_lake = internals.runtime.engine.is_in_lake(relation)
        reads, changes = (), (LAKE_TABLE if is_lake else STORED_TABLE,)
    stored = (*own, *_kept(nodes), *_budget(internals, nodes))
    return Summary(
        "function",
        function.id,
        title,
        reads,
        changes,
        stored,
        _costs(nodes),
        outboxes,
        warnings,
        nodes,
    )


def watched_view(internals: Internals, function: Function) -> tuple[WatchedView | None, bool]:
    """The view as the network watches it, or would for a monitor; and whether it does."""
    graph = internals.network.graph
    for name in (kept_name(function.id), Watched(function.id).node):
        node = graph.node(name)
        if node is not None:
            return node.view, True
    try:
        return internals.monitors.select(Watched(function.id)).view, False
    except HarkenError:
        return None, False


def _own_rows(internals: Internals, function: Function, relation: Relation) -> tuple[str, ...]:
    if relation.kind is not Kind.STORED:
        return ()
    what = "its rows, kept up to date" if function.materialized else "its rows"
    return (f"{what}: {internals.engine.count(relation):,}",)


def _read_by(internals: Internals, relation: Relation) -> tuple[Read, ...]:
    program = assemble(relation, (), internals.catalog)
    found = stored_relations(program)
    return tuple(Read(name, internals.engine.count(each)) for name, each in found.items())


def _reads(nodes: tuple[NodeExplanation, ...]) -> tuple[Read, ...]:
    """Without the activations of a rule, which are an internal matter."""
    return tuple(
        Read(each.id, each.rows) for each in nodes if each.rows is not None and not each.is_internal
    )


def _changes(nodes: tuple[NodeExplanation, ...]) -> tuple[str, ...]:
    """The last decision about each node, and the next one if it differs."""
    found: dict[str, list[str]] = {}
    for each in nodes:
        last = each.decisions[-1] if each.decisions else None
        if last is not None:
            found.setdefault(str(last), []).append(_of(each))
        if each.next is not None and (last is None or each.next.strategy != last.strategy):
            found.setdefault(f"for one changed row, {each.next}", []).append(_of(each))
    return tuple(f"{_together(of)}{line}" for line, of in found.items())


def _together(labels: list[str]) -> str:
    """The nodes that a line is about.

    >>> _together(["count: ", "sum: "]), _together([""])
    ('count, sum: ', '')
    """
    named = [each.removesuffix(": ") for each in dict.fromkeys(labels) if each]
    return f"{', '.join(named)}: " if named else ""


def _compiled(internals: Internals, view: WatchedView) -> Iterator[str]:
    """The compiled waves that bring it up to date."""
    for changed, size, runs in internals.network.compiled.programs_of(f"condition {view.name}"):
        yield (
            f"after a small change of {', '.join(sorted(changed))}, compiled: {size} steps in one "
            f"statement, run {runs:,} times"
        )


def _kept(nodes: tuple[NodeExplanation, ...]) -> tuple[str, ...]:
    return tuple(f"{_of(each)}{each.kept}" for each in nodes if each.kept)


def _budget(internals: Internals, nodes: tuple[NodeExplanation, ...]) -> tuple[str, ...]:
    """All that the session keeps, where this view has a part in it."""
    if not any(each.kept for each in nodes):
        return ()
    report = internals.network.kept.report()
    of = f" of {report.limit:,}" if report.limit else ""
    return (f"all that this session keeps: {report.bytes:,}{of} bytes",)


def _costs(nodes: tuple[NodeExplanation, ...]) -> tuple[str, ...]:
    """The cost of the last changes, and earlier measurements."""
    last = []
    for each in nodes:
        timed = [taken for taken in each.decisions if taken.seconds is not None]
        for taken in reversed(timed):
            when = "for the last change" if taken is timed[-1] else "for one before"
            last.append(
                f"{_of(each)}{1e3 * (taken.seconds or 0.0):.2f} ms {when}, by {taken.strategy}"
            )
    return (*last, *(f"{_of(each)}{line}" for each in nodes for line in each.measured))


def _of(node: NodeExplanation) -> str:
    """The node that a line is about, unless it is the view or condition itself."""
    return "" if node.kind == "condition" else f"{node.label or node.id}: "


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"
