"""A plan as lines for people, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harken.errors import counted
from harken.project.continual_documents import CHANGE, CREATE, DROP
from harken.project.plan import Action, Plan, PlannedChange, PlannedSeed
from harken.statements.declaration import FACT

SIGNS = {
    Action.CREATE: "+",
    Action.CHANGE: "~",
    Action.REMAKE: "±",
    Action.TAKE_OVER: "=",
    Action.DROP: "-",
}
SHOWN_FACTS = 3
"""Facts of each kind that are listed; beyond that only their number is shown."""


def lines(plan: Plan) -> Iterator[str]:
    """The changes, and at the end their number."""
    if plan.is_empty:
        yield f"{plan.project.name}: nothing to do; {_unchanged(plan)}"
        return
    yield f"{plan.project.name}:"
    for change in _few_facts(plan):
        yield from _change(change)
    for action in Action:
        more = len(_facts(plan, action)) - SHOWN_FACTS
        if more > 0:
            yield f"  {SIGNS[action]} {counted(more, 'more fact')}"
    for seed in plan.seeds:
        yield f"  {_sign(seed)} seed {seed.seed.table}: {seed.change.shown}"
    for query in plan.queries:
        sign = {CREATE: "+", CHANGE: "~", DROP: "-"}[query.action]
        yield f"  {sign} continual query {query.name}  ({query.place})"
    if plan.tests_changed and not (plan.changes or plan.seeds or plan.queries):
        yield "  the tests have changed"
    yield _summary(plan)


def _facts(plan: Plan, action: Action) -> list[PlannedChange]:
    return [each for each in plan.changes if each.kind == FACT and each.action is action]


def _few_facts(plan: Plan) -> Iterator[PlannedChange]:
    left = {action: _facts(plan, action)[SHOWN_FACTS:] for action in Action}
    hidden = {each.key for facts in left.values() for each in facts}
    return (each for each in plan.changes if each.key not in hidden)


def _sign(seed: PlannedSeed) -> str:
    return "-" if seed.is_gone else "~" if seed.change.leaving.rows else "+"


def _change(change: PlannedChange) -> Iterator[str]:
    place = change.declared.place if change.declared is not None else "no longer in the project"
    said = {Action.REMAKE: ", dropped and made again", Action.TAKE_OVER: ", is there already"}
    title = f"{change.kind} {change.name}{said.get(change.action, '')}"
    yield f"  {SIGNS[change.action]} {title}  ({place})"
    if change.recomputes:
        yield f"      computes again: {', '.join(change.recomputes)}"
    if change.loses:
        yield f"      loses {change.loses}"


def _summary(plan: Plan) -> str:
    counts = [(action, sum(each.action is action for each in plan.changes)) for action in Action]
    parts = [f"{number} to {action}" for action, number in counts if number]
    if plan.seeds:
        parts.append(counted(len(plan.seeds), "seed"))
    if plan.queries:
        parts.append(counted(len(plan.queries), "continual query"))
    done = ", ".join(parts) or "no definition changes"
    return f"{done}; {_unchanged(plan)}" if plan.unchanged else done


def _unchanged(plan: Plan) -> str:
    if plan.unchanged == 1:
        return "1 definition is as the project says"
    return f"{plan.unchanged} definitions are as the project says"


def as_json(plan: Plan) -> Iterator[dict[str, Any]]:
    for change in plan.changes:
        yield {
            "kind": "plan",
            "action": str(change.action),
            "object": change.kind,
            "name": change.name,
            "place": None if change.declared is None else change.declared.place,
            "recomputes": change.recomputes,
            "loses": change.loses or None,
        }
    for query in plan.queries:
        yield {
            "kind": "plan",
            "action": query.action,
            "object": "query",
            "name": query.name,
            "place": None if query.query is None else query.place,
        }
    for seed in plan.seeds:
        yield {
            "kind": "plan",
            "action": "drop" if seed.is_gone else "seed",
            "object": "seed",
            "name": seed.seed.table,
            "rows_in": len(seed.change.coming.rows),
            "rows_out": len(seed.change.leaving.rows),
        }
