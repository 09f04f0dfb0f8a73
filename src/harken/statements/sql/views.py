"""Views: from the text kept in the catalog to clauses."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from harken.database.catalog import Catalog
from harken.database.language import SQL
from harken.errors import TypeFault, counted
from harken.ir.clauses import Atom, Clause, Definition
from harken.ir.relations import Column, Relation
from harken.ir.schema import Function, FunctionKind, Schema
from harken.ir.terms import Variable
from harken.lang.sql.chance import with_places
from harken.lang.sql.draft import Draft
from harken.lang.sql.parser import Statement, statements, text_after
from harken.lang.sql.queries import Queries
from harken.lang.sql.rows import Rows
from harken.planner.unread import without_unread_columns
from harken.stack import NESTED, room_for
from harken.statements.sql.tables import SqlTables


@room_for(NESTED)
def translate_query(
    statement: Statement, node: exp.Expr, catalog: Schema, owner: str, lot: str = ""
) -> tuple[Rows, Draft, frozenset[str]]:
    """A query that stands by itself; what it became, and the names it mentions."""
    assert isinstance(catalog, Catalog)
    draft = Draft(statement, owner, lot)
    queries = Queries(draft, SqlTables(catalog))
    rows = queries.query(with_places(node))
    draft.definitions = without_unread_columns(rows.relation, draft.definitions)
    return rows, draft, frozenset(queries.mentioned)


def read_view(statement: Statement, catalog: Schema) -> tuple[Function, frozenset[str]]:
    """The function that CREATE [MATERIALIZED] VIEW makes, and the names that its query mentions."""
    node = statement.node
    assert isinstance(node, exp.Create)
    name = node.find(exp.Table).name.lower()  # type: ignore[union-attr]
    rows, _, mentioned = translate_query(statement, node.expression, catalog, name)
    kept = any(isinstance(each, exp.MaterializedProperty) for each in node.find_all(exp.Property))
    function = Function(
        name=name,
        parameters=(),
        results=view_columns(node, rows, statement),
        kind=FunctionKind.STORED if kept else FunctionKind.DERIVED,
        bag=kept or not rows.relation.is_set,
        text=f"CREATE {'MATERIALIZED ' if kept else ''}VIEW {text_after('VIEW', statement)}",
        language=SQL,
        materialized=kept,
    )
    return function, mentioned


def view_columns(node: exp.Create, rows: Rows, statement: Statement) -> tuple[Column, ...]:
    """The columns of a view, under the names that it gives them."""
    schema = node.this
    names = list(rows.names)
    if isinstance(schema, exp.Schema):
        given = [each.name for each in schema.expressions]
        if len(given) != len(names):
            raise TypeFault(
                f"{counted(len(given), 'column', 'is')} named, and the query has {len(names)}",
                code="arity",
                span=statement.place(schema),
            )
        names = given
    lowered = [name.lower() for name in names]
    refuse_equal_names(lowered, "view", statement)
    return tuple(Column(n, c.type) for n, c in zip(lowered, rows.columns, strict=True))


def refuse_equal_names(names: Sequence[str], what: str, statement: Statement) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TypeFault(
            f"two columns of the {what} are called {twice}",
            code="exists",
            span=statement.span,
            hint="give each a name of its own with AS",
        )


def translate_view(
    function: Function, catalog: Schema
) -> tuple[tuple[Definition, ...], frozenset[str]]:
    """The clauses of a view, and the names that it mentions."""
    (statement,) = statements(function.text)
    node = statement.node
    assert isinstance(node, exp.Create)
    rows, draft, mentioned = translate_query(statement, node.expression, catalog, function.name)
    relation = function.relation
    assert relation is not None
    if len(rows.columns) != relation.arity:
        raise TypeFault(
            f"the columns of {function.name} are no longer those of its query", code="arity"
        )
    main = _main(relation, rows)
    return (main, *draft.definitions.values()), mentioned


def _main(relation: Relation, rows: Rows) -> Definition:
    row = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(rows.columns))
    clause = Clause(Atom(relation, row), (Atom(rows.relation, row),))
    return Definition(relation, (clause,))
