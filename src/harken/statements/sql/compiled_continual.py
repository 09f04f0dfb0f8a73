"""The queries of continual queries, from SQL to programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sqlglot import exp

from harken.continual.compiled_queries import CompiledQuery, Compiler
from harken.continual.installed_queries import InstalledQuery
from harken.continual.triggered_rows import NAME
from harken.database.function_tables import SqlTables
from harken.database.runtime import Runtime
from harken.errors import HarkenError, Span, SyntaxFault
from harken.ir.assemble import assemble
from harken.ir.clauses import stored_relations
from harken.ir.relations import Relation
from harken.ir.schema import Table
from harken.lang.sql.parser import Statement, statements
from harken.lang.sql.program_draft import Draft
from harken.lang.sql.queries import new_translation
from harken.lang.sql.random_calls import has_random_call
from harken.planner import clock_views
from harken.planner.change_methods import moving
from harken.planner.prepare import prepare
from harken.statements.sql.source_hosts import with_sources
from harken.statements.sql.view_clauses import refuse_equal_names, translate_query

DRAWS = "it draws random numbers"
SHOWS_TIME = "it depends on now() in a way whose next change cannot be computed"


def query_compiler(runtime: Runtime) -> Compiler:
    def compile(
        text: str, owner: str, base: int = 0, triggered: Relation | None = None
    ) -> CompiledQuery:
        text = named_sources(runtime, text, base)
        statement = _query_of(text, base)
        if triggered is None or not _reads(statement.node, SqlTables(runtime.catalog)):
            return _compiled(runtime, statement, text, owner)
        return _of_triggered(runtime, statement, owner, triggered)

    return compile


def named_sources(runtime: Runtime, text: str, base: int) -> str:
    is_table = SqlTables(runtime.catalog).is_table
    with _placed(base):
        return with_sources(runtime.engine.connection.records, text, is_table)


@contextmanager
def _placed(base: int) -> Iterator[None]:
    """Errors of a text that starts here in its statement."""
    try:
        yield
    except HarkenError as error:
        if error.span is not None:
            error.span = Span(error.span.start + base, error.span.end + base)
        raise


def _query_of(text: str, base: int) -> Statement:
    with _placed(base):
        found = statements(text)
    span = Span(base, base + len(text))
    if not found:
        raise SyntaxFault(
            "a continual query needs a query",
            code="syntax",
            span=span,
            hint="CREATE CONTINUAL QUERY name AS SELECT ...",
        )
    statement = replace(found[0], offset=found[0].offset + base)
    if len(found) > 1 or statement.explained or not isinstance(statement.node, exp.Query):
        raise SyntaxFault(
            "a continual query is one SELECT",
            code="syntax",
            span=span,
            hint="rules change data: docs/rules.md",
        )
    return statement


def _compiled(runtime: Runtime, statement: Statement, text: str, owner: str) -> CompiledQuery:
    catalog, node = runtime.catalog, statement.node
    found = translate_query(statement, node, catalog, owner, stored=text)
    refuse_equal_names([name.lower() for name in found.rows.names], "query", statement)
    program = assemble(found.rows.relation, found.definitions.values(), catalog)
    prepare(program, catalog.hierarchy)
    by_chance = has_random_call(node) or moving(program)
    by_time = clock_views.untold(program, catalog.hierarchy)
    return CompiledQuery(
        program=program,
        columns=tuple(
            replace(column, name=name.lower())
            for name, column in zip(found.rows.names, found.rows.columns, strict=True)
        ),
        mentions=found.mentioned,
        sources=tuple(sorted({each.name for each in stored_relations(program).values()})),
        own=tuple(found.definitions.values()),
        key=found.rows.relation.key,
        untold=DRAWS if by_chance else SHOWS_TIME if by_time else "",
    )


def _reads(node: exp.Expr, tables: SqlTables) -> bool:
    """Whether a query reads `triggered`, and means no table of that name."""
    named = {each.name.lower() for each in node.find_all(exp.Table)}
    return NAME in named and tables.function(NAME) is None


def _of_triggered(
    runtime: Runtime, statement: Statement, owner: str, triggered: Relation
) -> CompiledQuery:
    catalog = runtime.catalog
    draft = Draft(statement, owner)
    translation = new_translation(draft, _WithTriggered(SqlTables(catalog), triggered))
    rows = translation.query(statement.node.copy())
    refuse_equal_names([name.lower() for name in rows.names], "query", statement)
    program = assemble(rows.relation, draft.definitions.values(), catalog)
    prepare(program, catalog.hierarchy)
    read = {each.name for each in stored_relations(program).values() if each.id != triggered.id}
    return CompiledQuery(
        program=program,
        columns=tuple(
            replace(column, name=name.lower())
            for name, column in zip(rows.names, rows.columns, strict=True)
        ),
        mentions=frozenset(translation.mentioned) - {NAME},
        sources=tuple(sorted(read)),
        key=rows.relation.key,
        triggered=triggered,
        untold="it reads triggered, which has other rows at each execution",
    )


@dataclass(frozen=True, slots=True)
class _WithTriggered:
    tables: SqlTables
    triggered: Relation

    def table(self, name: str) -> Table | None:
        if name.lower() != NAME:
            return self.tables.table(name)
        positions = tuple(range(self.triggered.arity))
        return Table(NAME, self.triggered, self.triggered.columns, positions)

    def table_names(self) -> Iterable[str]:
        return [*self.tables.table_names(), NAME]


def stop_tester(runtime: Runtime, compile: Compiler) -> Callable[[InstalledQuery], bool]:
    """Whether the condition of a STOP clause is true of any row of the tables that it names; if it
    names none, of those of the query."""

    def holds(query: InstalledQuery) -> bool:
        condition = query.clauses.stop.condition
        assert condition is not None
        owner = f"stop of continual query {query.number}"
        tables = _tables_of(runtime, condition)
        if not tables:
            own = f"continual query {query.number}"
            tables = sorted(compile(query.clauses.query, own).mentions)
        names = ", ".join(f"`{name}`" for name in tables)
        program = compile(f"SELECT 1 AS found FROM {names} WHERE {condition}", owner).program
        plan = prepare(program, runtime.catalog.hierarchy)
        return bool(runtime.engine.compile(plan).rows(()))

    return holds


def _tables_of(runtime: Runtime, condition: str) -> list[str]:
    (parsed,) = statements(f"SELECT 1 WHERE {condition}")
    tables = SqlTables(runtime.catalog)
    inner = parsed.node.find(exp.From)
    named = {column.table.lower() for column in parsed.node.find_all(exp.Column) if column.table}
    return sorted(each for each in named if inner is None and tables.function(each) is not None)
