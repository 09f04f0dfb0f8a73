"""Queries as statements: evaluated, ordered, shown."""

from __future__ import annotations

from sqlglot import exp

from harken.database.evaluation import decode_rows
from harken.database.runtime import Runtime
from harken.engines.access_paths import described
from harken.engines.protocol import Engine, Query
from harken.ir.assemble import assemble
from harken.ir.clauses import Atom, Program, stored_relations
from harken.ir.printer import print_program
from harken.ir.terms import Constant
from harken.lang.sql.expression_text import canonical_text
from harken.lang.sql.ordering import OrderKeys
from harken.lang.sql.parser import Statement
from harken.lang.sql.program_draft import Draft
from harken.lang.sql.query_rows import QueryRows
from harken.lang.sql.random_calls import has_random_call
from harken.planner.change_methods import How, looked_at
from harken.planner.clock_views import untold
from harken.planner.prepare import prepare
from harken.statements.sql.lifted_queries import Found, LiftedQuery, compile_lifted
from harken.statements.sql.view_clauses import Translation, translate_query
from harken.values.encoding import encode
from harken.values.rows import Row
from harken.values.types import TEXT

CACHED = 512
"""So many queries are kept compiled."""
KEPT_OF_ONE = 16
"""Queries that are kept of one statement, which needs several if it changes something."""


SAID_ALONE = (How.IN_ORDER, How.IN_ROUNDS, How.RECOMPUTED)


class Reading:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._compiled: dict[tuple[str, str], tuple[QueryRows, Query]] = {}
        self._epoch = -1

    def show(self, statement: Statement) -> None:
        self.emit(self.ordered(statement))

    def emit(self, found: Found) -> None:
        rows = decode_rows(found.rows, found.types, self._runtime.catalog.home)
        self._runtime.emit("rows", found.names, rows, found.types)

    def rows(self, statement: Statement, node: exp.Expr) -> Found:
        """The rows of a query, in no order."""
        if statement.queries is not None:
            return self.lifted(statement, node).found(statement.values)
        translation = None
        if isinstance(node, exp.Values):
            translation = translate_query(
                statement, node, self._runtime.catalog, "query", statement.lot
            )
            found = _facts(translation)
            if found is not None:
                return found
        catalog = self._runtime.catalog
        if self._epoch != catalog.epoch or len(self._compiled) >= CACHED:
            self._compiled.clear()
            self._epoch = catalog.epoch
        rows, query = self._query(statement, node, translation)
        types = tuple(column.type for column in rows.columns)
        return Found(rows.names, types, list(query.rows(())))

    def lifted(self, statement: Statement, node: exp.Expr) -> LiftedQuery:
        """A query of a statement whose constants were lifted, compiled once."""
        assert statement.queries is not None
        text = canonical_text(node)
        known = statement.queries.get(text)
        if known is None:
            if len(statement.queries) >= KEPT_OF_ONE:
                statement.queries.clear()
            known = statement.queries[text] = compile_lifted(self._runtime, statement, node)
        assert isinstance(known, LiftedQuery)
        return known

    def _query(
        self, statement: Statement, node: exp.Expr, translation: Translation | None
    ) -> tuple[QueryRows, Query]:
        """`translation` is that of the query, if it was translated already."""
        if has_random_call(node):
            return self._compile(statement, node, translation)
        key = (statement.text, canonical_text(node))  # the text contains the names of columns
        if key not in self._compiled:
            self._compiled[key] = self._compile(statement, node, translation)
        return self._compiled[key]

    def _compile(
        self, statement: Statement, node: exp.Expr, translation: Translation | None
    ) -> tuple[QueryRows, Query]:
        catalog = self._runtime.catalog
        if translation is None:
            translation = translate_query(statement, node, catalog, "query", statement.lot)
        rows = translation.rows
        program = assemble(rows.relation, translation.definitions.values(), catalog)
        return rows, self._runtime.engine.compile(prepare(program, catalog.hierarchy))

    def ordered(self, statement: Statement) -> Found:
        """The rows of a statement, after its ORDER BY, LIMIT and OFFSET."""
        keys = OrderKeys(statement.node, Draft(statement, "query"))
        return in_order(keys, self.rows(statement, keys.query))

    def explain(self, statement: Statement) -> None:
        catalog, engine = self._runtime.catalog, self._runtime.engine
        query = translate_query(statement, statement.node, catalog, "query")
        program = assemble(query.rows.relation, query.definitions.values(), catalog)
        plan = prepare(program, catalog.hierarchy)
        parts = ["As ObjectLog:", print_program(program), "Expanded:", print_program(plan.program)]
        parts += ["As SQL:", engine.explain_sql(plan), *described(engine.reaches(plan))]
        parts += ["Its changes are found by:", *_maintenance(plan.program, engine)]
        parts += [f"Warning: {each}" for each in untold(program, catalog.hierarchy)]
        lines = [(line,) for part in parts for line in part.splitlines()]
        self._runtime.emit("rows", ("plan",), lines, (TEXT,))


def in_order(keys: OrderKeys, found: Found) -> Found:
    """The rows of a query as its ORDER BY, LIMIT and OFFSET say."""
    rows, width = found.rows, len(found.names)
    if keys.count is not None or keys.offset:  # what the order leaves open is as in a view
        for place in reversed(range(width - keys.added)):
            _sort(rows, place, descending=False, nulls_first=True)
    for place, descending, nulls_first in reversed(keys.order(width)):
        _sort(rows, place, descending, nulls_first)
    last = None if keys.count is None else keys.offset + keys.count
    shown = width - keys.added
    rows = [row[:shown] for row in rows[keys.offset : last]]
    return Found(found.names[:shown], found.types[:shown], rows)


def _facts(translation: Translation) -> Found | None:
    """Literal rows; None if anything in them must be computed."""
    rows, definitions = translation.rows, translation.definitions
    facts, waiting = list[Row](), list(definitions[rows.relation.id].clauses)
    for clause in waiting:
        match clause.body:
            case (Atom(relation=part, terms=terms),) if terms == clause.head.terms:
                waiting += definitions[part.id].clauses
                continue
        constants = [term for term in clause.head.terms if isinstance(term, Constant)]
        if clause.body or len(constants) < len(clause.head.terms):
            return None
        facts.append(tuple(encode(each.value, each.type) for each in constants))
    return Found(rows.names, tuple(column.type for column in rows.columns), facts)


def _maintenance(program: Program, engine: Engine) -> list[str]:
    """How the changes of a view with this query would be found."""
    in_lake = [name for name, each in stored_relations(program).items() if engine.is_in_lake(each)]
    looked = [
        f"{each}" if each.how in SAID_ALONE else f"recomputing {each}"
        for each in looked_at(program, in_lake)
    ]
    return looked or ["differentials of everything that changed"]


def _sort(rows: list[Row], position: int, descending: bool, nulls_first: bool) -> None:
    """Sort by one column; rows with equal values keep their order."""
    present = [row for row in rows if row[position] is not None]
    missing = [row for row in rows if row[position] is None]
    present.sort(key=lambda row: row[position], reverse=descending)
    rows[:] = [*missing, *present] if nulls_first else [*present, *missing]
