"""DROP of tables and views: refused while something else reads them, unless CASCADE says so."""

from __future__ import annotations

from sqlglot import exp

from harken.database.function_tables import SqlTables
from harken.database.language_names import SQL
from harken.database.runtime import Runtime
from harken.errors import IntegrityError, NameFault
from harken.ir.schema import Function
from harken.lang.sql.parser import Statement
from harken.lang.sql.program_draft import unknown_table
from harken.statements.dependents import recheck
from harken.statements.records import refuse_redefinition
from harken.statements.sql.view_clauses import (
    is_view,
    kind_of,
)


def drop(runtime: Runtime, statement: Statement) -> None:
    node = statement.node
    assert isinstance(node, exp.Drop)
    kind = str(node.args.get("kind", "")).upper()
    tables = node.args.get("tables") or [node.this]
    for each in tables:
        name = each.name
        known = SqlTables(runtime.catalog).function(name)
        if known is None or kind not in ("TABLE", "VIEW"):
            if node.args.get("exists"):
                continue
            there = SqlTables(runtime.catalog)
            raise unknown_table(there, name, statement.place(each), kind.lower())
        refuse_redefinition(known)
        if is_view(known) != (kind == "VIEW"):
            raise NameFault(
                f"{name} is a {kind_of(known)}",
                code="type-mismatch",
                span=statement.place(each),
                hint=f"DROP {kind_of(known).upper()} {name}",
            )
        drop_function(runtime, known, bool(node.args.get("cascade")), statement)


def drop_named(runtime: Runtime, name: str) -> None:
    known = SqlTables(runtime.catalog).function(name)
    if known is not None:
        drop_function(runtime, known, False, None)


def drop_with_readers(runtime: Runtime, function: Function, statement: Statement) -> None:
    """DROP ... CASCADE."""
    drop_function(runtime, function, True, statement)


def _staying(runtime: Runtime, function: Function, others: list[Function]) -> dict[str, str]:
    """Dependents of a table that are not dropped with it, and how to remove each."""
    found = {
        f.name: f"DROP TABLE {f.name}"
        if f.language == SQL
        else f"`delete function {f.name};` in AMOSQL"
        for f in others
    }
    rules = runtime.catalog.rules_that_call(function.name)
    found |= {f"rule {rule}": f"`delete rule {rule};` in AMOSQL" for rule in rules}
    watchers = runtime.monitors.users_of(function)
    return found | {each.title: each.ending for each in watchers}


def drop_function(
    runtime: Runtime,
    function: Function,
    cascade: bool,
    statement: Statement | None,
    doomed: frozenset[str] = frozenset(),
) -> None:
    """`doomed` are those that are being dropped already: relations may depend on each other."""
    catalog = runtime.catalog
    runtime.reactions.before_schema_change({function.name})
    doomed |= {function.id}
    dependents = [f for f in catalog.dependents(function.name) if f.id not in doomed]
    views = [f for f in dependents if is_view(f)]
    if runtime.redefined is not None:  # what is left broken in the end is refused then
        runtime.rules.before_remaking(function)
        runtime.reactions.note_dropped(function)
        catalog.remove_function(function)
        recheck(runtime, function.name)
        return
    staying = _staying(runtime, function, [f for f in dependents if not is_view(f)])
    users = ([] if cascade else sorted(f.name for f in views)) + list(staying)
    if users:
        ways = [f"first {', '.join(staying.values())}"] if staying else []
        ways += ["add CASCADE, or drop the views first"] if views and not cascade else []
        raise IntegrityError(
            f"{function.name} cannot be dropped: {', '.join(users)} would no longer work",
            code="in-use",
            span=statement.span if statement is not None else None,
            hint="; then ".join(ways),
        )
    for view in views:
        if catalog.has_function(view.id):
            drop_function(runtime, view, cascade, statement, doomed)
    catalog.remove_function(function)
