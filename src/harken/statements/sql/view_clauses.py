"""Views: from the text in the catalog to clauses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from harken.database.catalog import Catalog
from harken.database.function_tables import SqlTables
from harken.database.language_names import SQL
from harken.errors import TypeFault, counted
from harken.ir.assemble import assemble
from harken.ir.clauses import Atom, Clause, Definition
from harken.ir.relations import Column, Relation
from harken.ir.schema import Function, FunctionKind, Schema, Table
from harken.ir.terms import Variable
from harken.lang.sql.domain_statements import DomainDefinition
from harken.lang.sql.lifting import Conversion, Conversions
from harken.lang.sql.parser import Statement, statements, text_after
from harken.lang.sql.program_draft import Draft, Tables
from harken.lang.sql.queries import new_translation
from harken.lang.sql.query_rows import QueryRows
from harken.lang.sql.random_calls import number_random_calls
from harken.planner.prepare import prepare
from harken.planner.unread import without_unread_columns
from harken.stack import NESTED, room_for
from harken.statements.records import is_domain

KEPT_TRANSLATIONS = 4096
"""The number of translated definitions that a session caches, including dropped ones."""


@dataclass(frozen=True, slots=True)
class Translation:
    """A query as clauses: its rows, its auxiliary relations, and the names that it mentions."""

    rows: QueryRows
    definitions: Mapping[str, Definition]
    mentioned: frozenset[str]
    made: tuple[Conversion, ...] = ()
    """How parameters come from values that were lifted out of the statement."""


def translate_lifted(
    statement: Statement, node: exp.Expr, catalog: Catalog
) -> tuple[Translation, AskedTables]:
    """A query whose constants were lifted, and what it looked up about tables."""
    asked = AskedTables(SqlTables(catalog))
    return _translate(statement, node, asked, "query", statement.lot), asked


@room_for(NESTED)
def translate_query(
    statement: Statement,
    node: exp.Expr,
    catalog: Schema,
    owner: str,
    lot: str = "",
    stored: str | None = None,
) -> Translation:
    """The translation of a query, or of a definition whose text is `stored`.

    A translation follows from the text of the query and from the tables it refers to. So the
    translation of a stored definition is cached, and valid as long as those tables are unchanged.
    """
    assert isinstance(catalog, Catalog)
    tables = SqlTables(catalog)
    if stored is None:
        return _translate(statement, node, tables, owner, lot)
    known = _kept_translation(catalog, owner, stored)
    if known is not None:
        return known
    if len(catalog.translations) >= KEPT_TRANSLATIONS:
        catalog.translations.clear()
    asked = AskedTables(tables)
    made = _translate(statement, node, asked, owner, lot)
    catalog.translations[owner, stored] = asked, made
    return made


def _kept_translation(catalog: Catalog, owner: str, stored: str) -> Translation | None:
    asked, found = catalog.translations.get((owner, stored), (None, None))
    if asked is None or not asked.is_answered_by(SqlTables(catalog)):
        return None
    assert isinstance(found, Translation)
    return found


def _translate(
    statement: Statement, node: exp.Expr, tables: Tables, owner: str, lot: str
) -> Translation:
    draft = Draft(statement, owner, lot, Conversions(len(statement.values)))
    translation = new_translation(draft, tables)
    rows = translation.query(number_random_calls(node))
    definitions = without_unread_columns(rows.relation, draft.definitions)
    made = tuple(draft.conversions.made)
    return Translation(rows, definitions, frozenset(translation.mentioned), made)


class AskedTables:
    """Tables that remember what they were asked, and what they answered."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._answers: dict[str, Table | None] = {}
        self._names: list[str] | None = None

    def table(self, name: str) -> Table | None:
        self._answers[name] = self._tables.table(name)
        return self._answers[name]

    def table_names(self) -> Iterable[str]:
        self._names = sorted(self._tables.table_names())
        return self._names

    def is_answered_by(self, tables: Tables) -> bool:
        """Whether looking up the same tables gives the same results."""
        if self._names is not None and self._names != sorted(tables.table_names()):
            return False
        return all(tables.table(name) == answer for name, answer in self._answers.items())


def read_view(statement: Statement, catalog: Schema) -> tuple[Function, frozenset[str]]:
    """The function that CREATE [MATERIALIZED] VIEW defines, and the names that its query
    mentions."""
    node = statement.node
    assert isinstance(node, exp.Create)
    name = node.find(exp.Table).name.lower()  # type: ignore[union-attr]
    kept = any(isinstance(each, exp.MaterializedProperty) for each in node.find_all(exp.Property))
    if isinstance(node, DomainDefinition):
        text = statement.text
    else:
        text = f"CREATE {'MATERIALIZED ' if kept else ''}VIEW {text_after('VIEW', statement)}"
    owner = owner_of(name, kept)
    found = translate_query(statement, node.expression, catalog, owner, stored=text)
    function = Function(
        name=name,
        parameters=(),
        results=view_columns(node, found.rows, statement),
        kind=FunctionKind.STORED if kept else FunctionKind.DERIVED,
        bag=kept or not found.rows.relation.is_set,
        text=text,
        language=SQL,
        materialized=kept,
    )
    return function, found.mentioned


def owner_of(name: str, materialized: bool) -> str:
    """The name that auxiliary relations of a view start with: those of a materialized view are not
    parts of its table."""
    return f"materialized {name}" if materialized else name


def view_columns(node: exp.Create, rows: QueryRows, statement: Statement) -> tuple[Column, ...]:
    """The columns of a view, under the names that it gives them."""
    schema = node.this
    names = list(rows.names)
    if isinstance(schema, exp.Schema):
        given = [each.name for each in schema.expressions]
        if len(given) != len(names):
            raise TypeFault(
                (f"{counted(len(given), 'column', 'is')} named, but the query has {len(names)}"),
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
    found = stored_query(function, catalog)
    relation = function.relation
    assert relation is not None
    if len(found.rows.columns) != relation.arity:
        raise TypeFault(
            f"the columns of {function.name} are no longer those of its query", code="arity"
        )
    main = _main(relation, found.rows)
    return (main, *found.definitions.values()), found.mentioned


def stored_query(function: Function, catalog: Schema) -> Translation:
    """The query of a view in the catalog, materialized or not."""
    assert isinstance(catalog, Catalog)
    owner = owner_of(function.name, function.materialized)
    known = _kept_translation(catalog, owner, function.text)
    if known is not None:
        return known
    (statement,) = statements(function.text)
    node = statement.node
    assert isinstance(node, exp.Create)
    return translate_query(statement, node.expression, catalog, owner, stored=function.text)


def check_view(function: Function, catalog: Catalog) -> frozenset[str]:
    """Check the definition of a view; returns the names that it mentions."""
    clauses, mentioned = translate_view(function, catalog)
    prepare(assemble(clauses[0].relation, clauses, catalog), catalog.hierarchy)
    return mentioned


def _main(relation: Relation, rows: QueryRows) -> Definition:
    row = tuple(Variable(f"X{i}", column.type) for i, column in enumerate(rows.columns))
    clause = Clause(Atom(relation, row), (Atom(rows.relation, row),))
    return Definition(relation, (clause,))


def is_view(function: Function) -> bool:
    return function.kind is FunctionKind.DERIVED or function.materialized


def kind_of(function: Function) -> str:
    if is_domain(function):
        return "domain"
    return "view" if is_view(function) else "table"
